import re
import tomllib

import chainkit
from support.project import ROOT


def test_drawing_of_the_library__names_the_layers_that_import_linter_holds_it_to() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["name"] == "the library's rooms")

    drawn = re.findall(r"^ {8}(\S+(?:, \S+)*)  ", chainkit.__doc__ or "", re.MULTILINE)

    assert [line.split(", ") for line in drawn] == [layer.split(" | ") for layer in layers]

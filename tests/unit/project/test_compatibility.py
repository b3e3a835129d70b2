"""The versions of docs/compatibility.md are those that the tests run with."""

from __future__ import annotations

import json
import re

import pytest

from support.project import DOCS, ROOT

ROWS = re.findall(
    r"^\| .*?(@?[\w/-]+)(?:`\))? \| ([\d.]+) \|", (DOCS / "compatibility.md").read_text(), re.M
)
NPM = json.loads((ROOT / "package.json").read_text())
PYTHON = (ROOT / "requirements" / "dev.txt").read_text()


@pytest.mark.parametrize(("name", "version"), ROWS)
def test_compatibility__version__is_the_locked_one(name: str, version: str) -> None:
    packages = {**NPM.get("dependencies", {}), **NPM.get("devDependencies", {})}
    if name in packages:
        assert packages[name] == version
    else:
        assert f"\n{name}=={version} " in PYTHON


def test_compatibility__table__has_rows() -> None:
    assert len(ROWS) > 5

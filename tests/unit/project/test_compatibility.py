"""The versions of docs/compatibility.md are those that the tests run with."""

from __future__ import annotations

import json
import re

import pytest

from support.project import DOCS, ROOT
from support.vectors import load

PAGE = (DOCS / "compatibility.md").read_text()
ROWS = re.findall(r"^\| .*?(@?[\w/-]+)(?:`\))? \| (\d[\w.-]*) \|", PAGE, re.M)
NPM = json.loads((ROOT / "package-lock.json").read_text())["packages"]
HARDHAT = json.loads((ROOT / "tools" / "hardhat" / "package-lock.json").read_text())["packages"]
PYTHON = (ROOT / "requirements" / "dev.txt").read_text()

RECORDED = dict(re.findall(r"^(\S+) ([\d.]+), by ", load("protobuf_es")["source"]))
"""Versions of tools that wrote vectors once."""
RECORDED |= {each["tool"]: each["version"] for each in load("foreign_keystores")["keystores"]}


def tried(name: str) -> str:
    """Return the version of a counterpart by what installs it."""
    if name == "geth":
        [version] = re.findall(
            r"^version=v([\d.]+)$", (ROOT / "tools" / "install_geth.sh").read_text(), re.M
        )
        return str(version)
    for locked in (NPM, HARDHAT):
        if f"node_modules/{name}" in locked:
            return str(locked[f"node_modules/{name}"]["version"])
    if name in RECORDED:
        return RECORDED[name]
    [version] = re.findall(rf"^{re.escape(name)}==(\S+) ", PYTHON, re.M)
    return str(version)


@pytest.mark.parametrize(("name", "version"), ROWS)
def test_compatibility__version__is_the_locked_one(name: str, version: str) -> None:
    assert tried(name) == version


def test_compatibility__tool_that_wrote_vectors__has_a_row_of_its_version() -> None:
    assert RECORDED.items() <= dict(ROWS).items()


def test_compatibility__each_row__has_a_version_or_says_why_not() -> None:
    rows = [each for each in PAGE.splitlines() if each.startswith("| ")][1:]

    unversioned = [each for each in rows if each.split(" | ")[1] == "-"]
    assert len(rows) == len(ROWS) + len(unversioned)
    assert len(ROWS) > 10


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(\.\./(tests/[^)]+)\)", PAGE))))
def test_compatibility__test_that_a_row_names__exists(path: str) -> None:
    assert (ROOT / path).is_file()

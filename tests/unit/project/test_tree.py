"""README's tree, which leads newcomers to a room."""

import re
from pathlib import Path

import pytest

from support.project import ROOT, TESTS

TREE = (ROOT / "README.md").read_text().partition("## The tree")[2].partition("```\n")[2]
SERVICES = sorted(ROOT.glob("*/chainkit_*/__init__.py"))
ROOMS = {
    "src": ROOT / "src" / "chainkit",
    **{each.parents[1].name: each.parent for each in SERVICES},
}


@pytest.mark.parametrize("folder", ROOMS)
def test_tree__a_package__has_all_its_rooms(folder: str) -> None:
    rooms = {each.parent.name for each in ROOMS[folder].glob("*/__init__.py")}
    assert "cli" in rooms
    # Each package has a command line.
    assert rooms - {"cli"} <= _named_in(folder)


def test_tree__tests__has_all_their_folders() -> None:
    assert {each.name for each in TESTS.iterdir() if _has_files(each)} <= _named_in("tests")


def _named_in(folder: str) -> set[str]:
    """Return the folders that the entry of a folder names; an entry ends where the next begins."""
    entry = re.search(rf"^{folder}/.*\n(?: +.*\n)*", TREE, re.MULTILINE)
    assert entry is not None
    return set(re.findall(r"(\w+)/", entry[0]))


def _has_files(folder: Path) -> bool:
    return any(each.is_file() and "__pycache__" not in each.parts for each in folder.rglob("*"))

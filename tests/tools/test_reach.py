"""Code that tests alone use is found, in a project that is made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.conformance.reach import Reach

FILES = {
    "pyproject.toml": '[project.scripts]\nchainkit = "chainkit.main:main"\n',
    "docs/bot.md": "```python\nfrom chainkit.library import Bot\n\nBot().answer()\n```\n",
    "src/chainkit/main.py": """
from chainkit.rules import Limit
from chainkit.rules import check as check_rule

def main():
    check_rule(Limit())
""",
    "src/chainkit/rules.py": """
LIMIT = 5

class Limit:
    def is_kept(self):
        return _kept()

    def is_broken(self):
        return LIMIT

def check(limit: Ledger):
    return limit.is_kept()

def _kept():
    return True

class Ledger:
    def entries(self):
        return _read()

def _read():
    return []
""",
    "src/chainkit/library.py": """
class Bot:
    def answer(self): ...
    def leave(self): ...
""",
    "src/chainkit/command.py": """
import click

class Window(click.Group):
    def drawn(self): ...

@click.command("show")
def show():
    Window()
""",
    "src/chainkit/oracle.py": "def expected(): ...\n",
    "tests/test_rules.py": "from chainkit.oracle import expected\n\nexpected()\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def line_of(path: str, text: str) -> int:
    return FILES[path].split(text)[0].count("\n") + 1


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("rules.py", "def is_kept"),
        ("rules.py", "return True"),
        ("rules.py", "return limit.is_kept()"),
        ("library.py", "def answer"),
        ("command.py", "Window()"),
        ("command.py", "def drawn"),
    ],
)
def test_unused__line_that_a_program_or_a_document_leads_to__is_none(
    root: Path, file: str, text: str
) -> None:
    path = f"src/chainkit/{file}"

    assert Reach(root).unused(path, line_of(path, text)) is None
    assert Reach(root).unused(path) is None


@pytest.mark.parametrize(
    ("file", "text", "name"),
    [
        ("rules.py", "LIMIT = 5", "LIMIT"),
        ("rules.py", "return LIMIT", "is_broken"),
        ("rules.py", "return _read()", "entries"),
        ("rules.py", "return []", "_read"),
        ("library.py", "def leave", "leave"),
        ("oracle.py", "def expected", "expected"),
    ],
)
def test_unused__line_that_only_tests_or_annotations_lead_to__names_the_definition(
    root: Path, file: str, text: str, name: str
) -> None:
    path = f"src/chainkit/{file}"

    assert Reach(root).unused(path, line_of(path, text)) == f"{path}: {name}"


def test_unused__file_that_only_tests_import__is_named(root: Path) -> None:
    assert Reach(root).unused("src/chainkit/oracle.py") == "src/chainkit/oracle.py"
    assert Reach(root).unused("contracts/Log.sol") is None

"""Names the test files that a change can break, by imports and by names of files in their texts.

A test is named if it changed, if it imports a changed module, however many imports lie between, or
if its text, or that of a module which it imports, contains the name of another changed file, such
as ``findings.md``. Imports are read and not run. A contract's change may break every test that runs
on a chain, so all such tests are named; a change of a contract that only tests or a study deploy
also names the tests that contain its name.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import click

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCES: Final = ("src", "indexer", "node", "gateway", "client", "jobs", "backups", "tests", ".")
"""Folders that modules are imported from, in the order in which Python looks."""

CONTRACTS: Final = ("contracts/", "tests/solidity/")
CONTRACT_TESTS: Final = ("tests/contracts", "tests/verification", "tests/council", "tests/e2e")


def module_files(files: Iterable[str]) -> dict[str, str]:
    """Return the file of each module by its dotted name; the first folder of SOURCES decides."""
    found: dict[str, str] = {}
    for source in SOURCES:
        prefix = "" if source == "." else f"{source}/"
        for file in files:
            if file.endswith(".py") and file.startswith(prefix):
                parts = Path(file.removeprefix(prefix)).with_suffix("").parts
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                found.setdefault(name, file)
    return found


def imported_modules(text: str) -> set[str]:
    """Return the dotted names that a Python file may import, also by ``pytest_plugins``.

    A name that is imported from a package may be a module of the package, or not.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
    return names


def tests_of_change(texts: Mapping[str, str], changed: Iterable[str]) -> list[str]:
    """Return the test files that a change of some files can break, sorted.

    ``texts`` are the project's Python files by their path. A deleted file breaks all files that
    still name it.
    """
    broken = set(changed)
    modules = module_files(texts)
    importers: dict[str, set[str]] = defaultdict(set)
    for file, text in texts.items():
        for name in imported_modules(text):
            if name in modules:
                importers[modules[name]].add(file)
        folder = Path(file).parent
        for conftest in (folder, *folder.parents):
            importers[str(conftest / "conftest.py")].add(file)
    for other in [file for file in broken if not file.endswith(".py")]:
        broken.update(file for file, text in texts.items() if _named(other) in text)
        if other.startswith(CONTRACTS):
            broken.update(file for file in texts if file.startswith(CONTRACT_TESTS))
    waiting = list(broken)
    while waiting:
        for importer in importers[waiting.pop()] - broken:
            broken.add(importer)
            waiting.append(importer)
    return sorted(file for file in broken & texts.keys() if Path(file).name.startswith("test_"))


def _named(file: str) -> str:
    """Return how texts name a file: a contract beside contracts/ by its own name."""
    path = Path(file)
    is_other_contract = path.suffix == ".sol" and path.parts[0] != "contracts"
    return path.stem if is_other_contract else path.name


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@click.command()
@click.option("--base", default="HEAD", show_default=True, help="The commit to compare with.")
def main(base: str) -> None:
    """Print the test files that the change since a commit can break, a line each.

    Example: python -m tools.tests_of_change --base HEAD~1
    """
    new = _git("ls-files", "--others", "--exclude-standard")
    changed = {*_git("diff", "--name-only", base), *new}
    files = [file for file in (*_git("ls-files", "*.py"), *new) if file.endswith(".py")]
    texts = {file: (ROOT / file).read_text() for file in files if (ROOT / file).is_file()}
    for file in tests_of_change(texts, changed):
        click.echo(file)


if __name__ == "__main__":
    sys.exit(main())

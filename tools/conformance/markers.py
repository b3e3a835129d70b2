"""Finds the tests that show a demand, without running or importing any.

A test in Python has the decorator ``@pytest.mark.conforms("N4")``, one in Solidity the line
``/// conforms: 2.1-1`` above its function. Both take several numbers.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_DECORATOR: Final = "pytest.mark.conforms"
_LINE: Final = re.compile(r"/// conforms: (.+)")
_FUNCTION: Final = re.compile(r"function (\w+)")


def find_markers(root: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the tests of each number, as ``path::name`` from the root, in order.

    Raises nothing for numbers that no demand has: the check names them.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((root / "tests").rglob("*")):
        source = path.name
        if source.startswith("test_") and source.endswith(".py"):
            marked = _marked_in_python(path.read_text(encoding="utf-8"))
        elif source.endswith(".t.sol"):
            marked = _marked_in_solidity(path.read_text(encoding="utf-8"))
        else:
            continue
        for number, name in marked:
            found[number].append(f"{path.relative_to(root).as_posix()}::{name}")
    return {number: tuple(tests) for number, tests in found.items()}


def _marked_in_python(source: str) -> Iterator[tuple[str, str]]:
    # Most files have no marker: reading them as text takes a tenth of parsing them.
    if _DECORATOR not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == _DECORATOR:
                for argument in decorator.args:
                    yield ast.literal_eval(argument), node.name


def _marked_in_solidity(source: str) -> Iterator[tuple[str, str]]:
    numbers: list[str] = []
    for line in map(str.strip, source.splitlines()):
        if match := _LINE.fullmatch(line):
            numbers += re.split(r",\s*", match[1])
        elif numbers and not line.startswith("///"):
            function = _FUNCTION.match(line)
            yield from ((number, function[1] if function else "") for number in numbers)
            numbers = []

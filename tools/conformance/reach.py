"""Finds code that no program of ours uses: where only tests call a rule, no demand is met.

Sources are read, and nothing is imported. Commands, the statements of modules and what documents
name are used, and so is what a used definition names: a definition of its own module, or else each
of that name. A method also needs that its class is used. An annotation makes nothing used.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_ROOTS: Final = ("src", "indexer", "node", "gateway", "client", "jobs", "backups")
_SCRIPT: Final = re.compile(r'^\w+ = "[\w.]+:(\w+)"$', re.MULTILINE)
_DOCUMENTED: Final = re.compile(r"\.(\w+)\(|\bimport ([\w, ]+)")
_LEFT_OUT: Final = {"annotation", "returns", "ctx", "op", "ops"}


@dataclass(eq=False, slots=True)
class _Definition:
    """A function, class, method or constant; any other statement of a module has no name."""

    path: str
    name: str
    lines: range
    owner: _Definition | None
    """The class of a method."""
    bases: Sequence[str]
    is_command: bool
    """The definition's group imports it by its name."""
    uses: set[str] = field(default_factory=set)
    """Names, and ``path:name`` where the module itself defines the name."""


class Reach:
    """The definitions that the programs of a project use."""

    def __init__(self, root: Path) -> None:
        """Read the packages, the scripts of pyproject.toml, and what docs/*.md import and call."""
        self._all = [
            each
            for folder in _ROOTS
            for path in sorted((root / folder).glob("chainkit*/**/*.py"))
            if "_pb2" not in path.name
            for each in _definitions(path.relative_to(root).as_posix(), path.read_bytes())
        ]
        self._bases = {each.name: each.bases for each in self._all}
        names = set(_SCRIPT.findall((root / "pyproject.toml").read_text(encoding="utf-8")))
        for path in root.glob("docs/*.md"):
            for called, imported in _DOCUMENTED.findall(path.read_text(encoding="utf-8")):
                names |= {called, *imported.split(", ")}
        self._used: set[_Definition] = set()
        while found := {each for each in self._all if self._becomes_used(each, names)}:
            self._used |= found
            names = names.union(*(each.uses for each in found))

    def unused(self, path: str, line: int | None = None) -> str | None:
        """Return the definition around a line if no program uses it.

        Without a line, return the path if no program uses any of the file's definitions.
        """
        own = [each for each in self._all if each.path == path and each.name]
        if line is None:
            return path if own and self._used.isdisjoint(own) else None
        around = [each for each in own if line in each.lines]
        inner = min(around, key=lambda each: len(each.lines), default=None)
        return f"{path}: {inner.name}" if inner and inner not in self._used else None

    def _becomes_used(self, one: _Definition, names: set[str]) -> bool:
        if one in self._used:
            return False
        if one.owner is not None:
            may_be_called = one.name in names or self._is_foreign(one.owner.bases)
            return one.owner in self._used and (may_be_called or one.name.startswith("__"))
        is_imported = one.name in names and not one.name.startswith("_")
        return is_imported or one.is_command or not one.name or f"{one.path}:{one.name}" in names

    def _is_foreign(self, bases: Sequence[str]) -> bool:
        """Return whether a class extends a class of another library, which may call its methods."""
        return any(base not in self._bases or self._is_foreign(self._bases[base]) for base in bases)


def _definitions(path: str, source: bytes) -> list[_Definition]:
    statements = ast.parse(source).body
    found = [each for statement in statements for each in _of_statement(path, statement, None)]
    own = {each.name for each in found if each.owner is None}
    for each in found:
        each.uses = {f"{path}:{name}" if name in own else name for name in each.uses}
    return found


def _of_statement(
    path: str, statement: ast.stmt, owner: _Definition | None
) -> Iterator[_Definition]:
    """Yield the definitions of a statement, with the methods of a class."""
    lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    bases = [ast.unparse(base) for base in getattr(statement, "bases", ())]
    decorators = [ast.unparse(each) for each in getattr(statement, "decorator_list", ())]
    is_command = any(re.match(r"\w+\.(command|group)\(", each) for each in decorators)
    one = _Definition(path, _name(statement), lines, owner, bases, is_command)
    yield one
    is_class = isinstance(statement, ast.ClassDef)
    for part in ast.iter_child_nodes(statement) if is_class else [statement]:
        if is_class and isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _of_statement(path, part, one)
        else:
            one.uses.update(_uses(part))


def _name(statement: ast.stmt) -> str:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def _uses(tree: ast.AST) -> Iterator[str]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (each.name for each in node.names if each.asname)
        for name in node._fields:
            value = getattr(node, name, None) if name not in _LEFT_OUT else None
            children = value if isinstance(value, list) else [value]
            waiting += [each for each in children if isinstance(each, ast.AST)]

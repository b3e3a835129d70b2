"""The mutants of a Solidity source: each a small change that some test should notice.

Pure: a source and its syntax tree (solc's JSON) come in, mutants come out, in the order of the
source and without chance. The possible changes are in ``operators.py``.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tools.mutation.operators import Change, changes_of

Node = dict[str, Any]

DEFINITIONS = ("FunctionDefinition", "ModifierDefinition")
LEFT_ALONE = ("ImportDirective", "InlineAssembly", "OverrideSpecifier", "PragmaDirective")


@dataclass(frozen=True)
class Mutant:
    """One change to one file, named so that the name outlives changes elsewhere in the file."""

    file: str
    """Path from the project's root."""
    line: int
    """Counted from 1; not part of the name."""
    place: str
    """The function, the modifier or the contract that holds the change."""
    operator: str
    start: int
    """Offset of the replaced text in the file, in bytes."""
    before: str
    after: str
    occurrence: int = 1
    """Which one of several equal changes in the same place, counted from 1."""

    @property
    def name(self) -> str:
        """The mutant's name: it stays the same when lines move, and is unique among all mutants."""
        again = f" ({self.occurrence})" if self.occurrence > 1 else ""
        change = f"`{_one_line(self.before)}` → `{_one_line(self.after)}`"
        return f"{self.file} {self.place}: {self.operator}: {change}{again}"

    def applied_to(self, source: str) -> str:
        """Return the source with the change made; the source must be the mutant's own."""
        content = source.encode()
        end = self.start + len(self.before.encode())
        if content[self.start : end] != self.before.encode():
            raise ValueError(f"{self.name}: expected the text before the change, got another")
        return (content[: self.start] + self.after.encode() + content[end:]).decode()


def mutants_of(file: str, source: str, tree: Node) -> list[Mutant]:
    """Return every mutant of a source whose syntax tree is given, in the order of the source."""
    content = source.encode()
    found = {
        (change.start, change.end, change.text): _mutant(file, content, place, change)
        for place, node, parents in _walk(tree, file, ())
        for change in changes_of(node, parents, content)
    }
    seen: Counter[str] = Counter()
    mutants = []
    for mutant in sorted(found.values(), key=lambda one: (one.start, one.before, one.after)):
        seen[mutant.name] += 1
        mutants.append(replace(mutant, occurrence=seen[mutant.name]))
    return mutants


def _mutant(file: str, content: bytes, place: str, change: Change) -> Mutant:
    line = content.count(b"\n", 0, change.start) + 1
    before = content[change.start : change.end].decode()
    return Mutant(file, line, place, change.operator, change.start, before, change.text)


def _walk(
    node: Node, place: str, parents: tuple[Node, ...]
) -> Iterator[tuple[str, Node, tuple[Node, ...]]]:
    """Yield every node with the name of its place and its parents, the nearest last."""
    kind = node.get("nodeType")
    if kind in LEFT_ALONE:
        return
    if kind == "ContractDefinition":
        place = node["name"]
    elif kind in DEFINITIONS:
        place = node["name"] or node["kind"]
    yield place, node, parents
    for child in _children(node):
        yield from _walk(child, place, (*parents, node))


def _children(node: Node) -> Iterator[Node]:
    for value in node.values():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, dict) and "nodeType" in child:
                yield child


def _one_line(text: str) -> str:
    return " ".join(text.split())

"""The findings as a matrix of codes and nodes, and behind each cell the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from chainkit_jobs.findings import MEANINGS, Code, Meaning, Severity

MOST_SHOWN: Final = 20
"""Findings of one code about one node whose evidence is in the page."""

_LEAST_SHOWN: Final = 3
_SHOWN_IN_ALL: Final = 1_000
"""With many nodes, fewer of each: a browser has to open the page."""

_UNFOLDED: Final = 60
"""Up to this number, the page shows all findings at once, and prints them with their evidence."""

_COLUMNS: Final = 8
"""Nodes side by side."""

CHAIN: Final = "chain export"

Finding = Mapping[str, Any]
Key = tuple[Code, int | None]


@dataclass(frozen=True, slots=True)
class Group:
    """The findings of one code about one node, or about the chain export."""

    code: Code
    node_id: int | None
    """None for the chain export."""
    count: int
    shown: tuple[Finding, ...]
    """The group's first findings, in the order of findings.jsonl."""

    @property
    def anchor(self) -> str:
        """Return the id of the finding's anchor for links within the page."""
        return f"{self.code}-{'chain' if self.node_id is None else self.node_id}"

    @property
    def about(self) -> str:
        """Return the subject of the finding."""
        return CHAIN if self.node_id is None else f"node {self.node_id}"

    @property
    def meaning(self) -> Meaning:
        """Return the meaning of the code."""
        return MEANINGS[self.code]

    @property
    def hidden(self) -> int:
        """Return how many findings are in findings.jsonl alone."""
        return self.count - len(self.shown)


@dataclass(frozen=True, slots=True)
class Table:
    """A part of the matrix that fits on paper."""

    columns: tuple[int | None, ...]
    """The chain export (None) first, then nodes by id: those about which something was found."""
    rows: tuple[tuple[Code, tuple[Group | None, ...]], ...]
    """Codes that were found about these, gravest first."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """The findings by code and node."""

    tables: tuple[Table, ...]
    groups: tuple[Group, ...]
    """Codes, gravest first, then the subjects."""
    faultless: tuple[int, ...]
    """Nodes that were compared and about which nothing was found."""
    not_found: tuple[Code, ...]
    severities: Mapping[Code, Severity]
    """By the codes that were found: the severity follows from the audit's proofs and checks."""

    def severity_of(self, code: Code) -> Severity:
        """Return how grave findings of a code are in this audit."""
        return self.severities[code]

    @property
    def is_unfolded(self) -> bool:
        """Whether there are few enough findings to show them all at once."""
        return sum(len(group.shown) for group in self.groups) <= _UNFOLDED


def findings_matrix(findings: Iterable[Finding], node_ids: Sequence[int]) -> Matrix:
    """Arrange findings (columns of findings.FINDINGS); ``node_ids`` were compared."""
    held = list(findings)
    counts: Counter[Key] = Counter((Code(row["code"]), row["node_id"]) for row in held)
    groups = _groups(held, counts)
    severities = {Code(row["code"]): Severity(row["severity"]) for row in held}
    about = sorted({node_id for _, node_id in counts}, key=_chain_first)
    parts = [tuple(about[n : n + _COLUMNS]) for n in range(0, len(about), _COLUMNS)]
    return Matrix(
        tables=tuple(_table(groups, columns, severities) for columns in parts),
        groups=tuple(groups[key] for key in sorted(groups, key=_group_order(severities))),
        faultless=tuple(sorted(set(node_ids) - set(about))),
        not_found=tuple(sorted(set(Code) - {code for code, _ in counts}, key=_gravest_first())),
        severities=severities,
    )


def _table(
    groups: Mapping[Key, Group],
    columns: tuple[int | None, ...],
    severities: Mapping[Code, Severity],
) -> Table:
    found = {code for code, node_id in groups if node_id in columns}
    codes = sorted(found, key=_gravest_first(severities))
    rows = ((code, tuple(groups.get((code, node_id)) for node_id in columns)) for code in codes)
    return Table(columns, tuple(rows))


def _groups(findings: Sequence[Finding], counts: Counter[Key]) -> dict[Key, Group]:
    most = max(_LEAST_SHOWN, min(MOST_SHOWN, _SHOWN_IN_ALL // max(1, len(counts))))
    shown: dict[Key, list[Finding]] = {key: [] for key in counts}
    for row in findings:
        first = shown[Code(row["code"]), row["node_id"]]
        if len(first) < most:
            first.append(row)
    return {key: Group(*key, count, tuple(shown[key])) for key, count in counts.items()}


def _gravest_first(
    severities: Mapping[Code, Severity] = MappingProxyType({}),
) -> Callable[[Code], tuple[int, str]]:
    """Return a sort key for codes; codes that were found count by their severity in this audit."""

    def key(code: Code) -> tuple[int, str]:
        return severities.get(code, MEANINGS[code].severity).rank, code.value

    return key


def _chain_first(node_id: int | None) -> int:
    return -1 if node_id is None else node_id


def _group_order(
    severities: Mapping[Code, Severity],
) -> Callable[[Key], tuple[tuple[int, str], int]]:
    gravest_first = _gravest_first(severities)
    return lambda key: (gravest_first(key[0]), _chain_first(key[1]))

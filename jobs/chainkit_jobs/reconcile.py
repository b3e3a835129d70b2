"""The comparison: what the chain holds under one key, and what a node serves there, judged.

A key is (originator, sequence). The rows are plain, so that they are judged where they are: in
Spark's tasks or, of few, in the driver.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_jobs.coverage import COUNTS, Bins, summed

Row = Mapping[str, Any]

Key = tuple[int, Decimal]
"""Originator and sequence."""

NODE_COUNTS: Final = ("expected", "served", "matched", "outside")
"""Per node: envelopes that the chain demands, served rows, matched keys, and keys of which the
chain export cannot tell."""


@dataclass(frozen=True, slots=True)
class ComparedNode:
    """A node, and the part of the chain that its export is held against."""

    node_id: int
    first_block: int
    """A payload below it need not be served."""
    last_block: int
    """A payload above it need not be served yet."""
    highest_sequence: int | None
    """The contract's counter where the chain export ends: a higher one is invented. None where
    it was not read."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a node serves under a key, held against the chain."""

    node_id: int
    key: Key
    chain: Row | None
    """A row of expected.EXPECTED; None where the chain does not hold the key."""
    rows: Sequence[Row]
    """What the node serves (rows of served.SERVED)."""
    is_known: bool
    """The chain holds it, once."""
    is_required: bool
    is_missing: bool
    is_altered: bool
    is_invented: bool
    is_quarantined_served: bool
    is_matched: bool
    is_outside: bool
    """Served, but this chain export cannot tell: it lies before its first payload or after its
    last, in a gap, or is held twice."""

    @property
    def readable(self) -> Sequence[Row]:
        """The rows that are envelopes."""
        return [row for row in self.rows if row["unreadable"] is None]

    @property
    def is_wrong(self) -> bool:
        """Whether an envelope stands here that nobody may serve."""
        problems = ("unreadable", "signature_problem")
        is_bad = any(row[name] is not None for row in self.rows for name in problems)
        return is_bad or self.is_altered or self.is_quarantined_served


def judge(key: Key, chain: Sequence[Row], served: Sequence[Row], node: ComparedNode) -> Verdict:
    """Judge one key for one node, by what the node was bound to serve.

    ``chain`` are rows of expected.EXPECTED, ``served`` the node's of served.SERVED, all of the key.
    """
    held = min(chain, key=_chain_order, default=None)
    digests = [row["digest"] for row in served if row["unreadable"] is None]
    is_known, is_served = len(chain) == 1, bool(digests)
    is_quarantined = held is not None and held["quarantine_reason"] is not None
    is_required = (
        held is not None
        and is_known
        and not is_quarantined
        and node.first_block <= held["block_number"] <= node.last_block
    )
    is_judged = is_known and is_served
    is_equal = held is not None and all(digest == held["digest"] for digest in digests)
    is_invented = not chain and is_served and _is_impossible(key, node)
    return Verdict(
        node_id=node.node_id,
        key=key,
        chain=held,
        rows=served,
        is_known=is_known,
        is_required=is_required,
        is_missing=is_required and not served,
        is_altered=is_judged and not is_equal,
        is_invented=is_invented,
        is_quarantined_served=is_judged and is_equal and is_quarantined,
        is_matched=is_judged and is_equal and not is_quarantined,
        is_outside=is_served and not is_known and not is_invented,
    )


def _chain_order(row: Row) -> tuple[Any, ...]:
    reason = row["quarantine_reason"] or ""
    place = (row["block_number"], row["log_index"])
    return row["digest"], *place, row["transaction_hash"], reason


def _is_impossible(key: Key, node: ComparedNode) -> bool:
    """Tell whether no contract can have given a sequence out when the chain export ends."""
    originator_id, sequence_id = key
    highest = node.highest_sequence
    is_beyond = highest is not None and sequence_id > highest
    return originator_id != BLOCKCHAIN_ORIGINATOR_ID or sequence_id == 0 or is_beyond


@dataclass(slots=True)
class Tally:
    """What verdicts come to."""

    counts: dict[int, Counter[str]] = field(default_factory=dict)
    """Node id to NODE_COUNTS."""
    coverage: dict[tuple[int, int], Counter[str]] = field(default_factory=dict)
    """Node id and first block of a bin to coverage.COUNTS."""

    def add(self, verdict: Verdict, bins: Bins) -> None:
        """Count one."""
        counts = self.counts.setdefault(verdict.node_id, Counter())
        counts["expected"] += verdict.is_required
        counts["served"] += len(verdict.rows)
        counts["matched"] += verdict.is_matched
        counts["outside"] += verdict.is_outside
        if verdict.is_known and verdict.chain is not None:
            first = bins.begin(verdict.chain["block_number"])
            bin_counts = self.coverage.setdefault((verdict.node_id, first), Counter())
            _cover(bin_counts, verdict, verdict.chain["quarantine_reason"] is None)

    def text(self) -> str:
        """Serialize."""
        return json.dumps([list(self.counts.items()), list(self.coverage.items())])


def _cover(counts: Counter[str], verdict: Verdict, is_valid: bool) -> None:
    is_wrong = verdict.is_wrong
    is_matched = is_valid and verdict.is_matched and not is_wrong
    counts["expected"] += is_valid
    counts["matched"] += is_matched
    counts["missing"] += verdict.is_missing
    counts["wrong"] += is_wrong
    counts["outside"] += is_valid and not (is_matched or is_wrong or verdict.is_missing)


def read_tally(text: str) -> Tally:
    """Take a tally's text apart."""
    counts, coverage = json.loads(text)
    return Tally(
        {node_id: Counter(each) for node_id, each in counts},
        {(node_id, first): Counter(each) for (node_id, first), each in coverage},
    )


def node_counts(tallies: Iterable[Tally], nodes: Iterable[ComparedNode]) -> dict[int, Counter[str]]:
    """Return NODE_COUNTS of all tallies by node id, also of a node without any key."""
    found = {node.node_id: Counter(dict.fromkeys(NODE_COUNTS, 0)) for node in nodes}
    for tally in tallies:
        for node_id, counts in tally.counts.items():
            found[node_id].update(counts)
    return found


def covered(tallies: Iterable[Tally], bins: Bins) -> list[dict[str, int]]:
    """Return what all tallies say of the blocks (columns of coverage.COVERAGE)."""
    rows = [
        [
            {"node_id": node_id, "first_block": first, **{name: each[name] for name in COUNTS}}
            for (node_id, first), each in tally.coverage.items()
        ]
        for tally in tallies
    ]
    return summed(rows, bins)


def verdicts(
    key: Key, chain: Sequence[Row], served: Sequence[Row], nodes: Sequence[ComparedNode]
) -> Iterator[Verdict]:
    """Judge a key for each node that it concerns: all where the chain holds it."""
    own: dict[int, list[Row]] = {}
    for row in served:
        own.setdefault(row["node_id"], []).append(row)
    for node in nodes:
        if chain or node.node_id in own:
            yield judge(key, chain, own.get(node.node_id, ()), node)

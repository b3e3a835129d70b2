"""The comparison of one key: the chain's payload, and a node's envelopes.

A key is (originator, sequence). The rows are plain, so that they are compared in their place: in
Spark's tasks or, if few, in the driver.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from chainkit.protocol.envelope import breaks_the_xip
from chainkit_jobs.reconcile.bins import Bins
from chainkit_jobs.reconcile.coverage import COUNTS, summed

Row = Mapping[str, Any]

_HIGHEST: Final = 2**64 - 1

Key = tuple[int, Decimal]
"""Originator and sequence."""

NODE_COUNTS: Final = ("expected", "served", "matched", "outside", "undecided")
"""Per node: envelopes that the chain requires, served rows, matched keys, keys that the chain
export cannot decide, and those of these keys that the contracts need not have given out."""


@dataclass(frozen=True, slots=True)
class GivenOut:
    """The part that is known of the sequence ids that an originator's contracts gave out."""

    highest: int | None
    """The counter at the end of the chain export: a higher id is invented. None where the counter
    was not read, or nothing counts."""
    last: int = 0
    """Up to which sequence all were given out, by what the chain export contains; 0 where ids are
    sparse."""
    is_whole: bool = False
    """Whether the chain export is proved to be complete: an id that it does not hold is
    invented."""


@dataclass(frozen=True, slots=True)
class ComparedNode:
    """A node, and the part of the chain for the comparison with its export."""

    node_id: int
    first_block: int
    """A payload below this block need not be served."""
    last_block: int
    """A payload above this block need not be served yet."""
    given_out: Mapping[int, GivenOut]
    """By originator id: of any other, nothing was given out."""
    answered_to: Mapping[int, int] = field(default_factory=dict)
    """By originator id: a payload of a higher sequence need not be served."""


@dataclass(slots=True)
class KeyComparison:
    """A node's rows under a key, held against the chain, one row at a time."""

    node_id: int
    key: Key
    chain: Row | None
    """A row of expected.EXPECTED; None where the chain does not hold the key."""
    is_known: bool
    """The chain holds the key, once."""
    is_required: bool
    is_impossible: bool
    """No contract can have given the key out when the chain export ends."""
    is_given_out: bool
    """The contracts have given the key out, whether or not the chain export contains it."""
    readable: int = 0
    """Rows that are envelopes."""
    unreadable: int = 0
    unsigned: int = 0
    """Rows whose signature is not the node's."""
    differing: int = 0
    """Envelopes with another digest than the chain's."""

    def see(self, row: Row) -> None:
        """Take a row of served.SERVED into account: one that the node serves under the key."""
        if row["unreadable"] is not None:
            self.unreadable += 1
        else:
            self.readable += 1
            self.differing += self.chain is None or row["digest"] != self.chain["digest"]
        self.unsigned += row["signature_problem"] is not None

    @property
    def is_missing(self) -> bool:
        """Whether the node had to serve the payload, and does not."""
        return self.is_required and not self.readable and not self.unreadable

    @property
    def is_quarantined(self) -> bool:
        """Whether nobody may serve the payload."""
        reason = None if self.chain is None else self.chain["quarantine_reason"]
        return reason is not None and breaks_the_xip(reason)

    @property
    def is_matched(self) -> bool:
        """Whether the node serves the payload, with exactly the expected bytes."""
        is_equal = self.is_known and self.readable > 0 and not self.differing
        return is_equal and not self.is_quarantined

    @property
    def is_wrong(self) -> bool:
        """Whether an envelope here may not be served by any node, or cannot be read."""
        is_bad = self.unsigned + self.unreadable > 0
        return is_bad or (self.is_known and self.readable > 0 and not self.is_matched)

    @property
    def is_invented(self) -> bool:
        """Whether the node serves what cannot be."""
        return self.chain is None and self.readable > 0 and self.is_impossible

    @property
    def is_outside(self) -> bool:
        """Whether an envelope is served, but this chain export cannot decide.

        The key is before the export's first payload or after its last, in a gap, or is held twice.
        """
        return self.readable > 0 and not self.is_known and not self.is_invented

    @property
    def is_undecided(self) -> bool:
        """Whether an envelope is served, and nothing shows if a contract ever gave out its key."""
        return self.is_outside and not self.is_given_out


def begin(key: Key, chain: Sequence[Row], node: ComparedNode) -> KeyComparison:
    """Begin to compare one key for one node, by what the node must serve.

    ``chain`` are all rows of expected.EXPECTED under the key.
    """
    held = min(chain, key=_chain_order, default=None)
    is_known = len(chain) == 1
    is_required = (
        held is not None
        and is_known
        and held["quarantine_reason"] is None
        and node.first_block <= held["block_number"] <= node.last_block
        and key[1] <= node.answered_to.get(key[0], _HIGHEST)
    )
    given = node.given_out.get(key[0])
    is_impossible = given is None or _is_impossible(key[1], given, held is not None)
    is_given_out = given is not None and not is_impossible and key[1] <= _known_to(given)
    return KeyComparison(
        node.node_id, key, held, is_known, is_required, is_impossible, is_given_out
    )


def _chain_order(row: Row) -> tuple[Any, ...]:
    reason = row["quarantine_reason"] or ""
    place = (row["block_number"], row["log_index"])
    return row["digest"], *place, row["transaction_hash"], reason


def _is_impossible(sequence_id: Decimal, given: GivenOut, is_held: bool) -> bool:
    is_beyond = given.highest is not None and sequence_id > given.highest
    return sequence_id == 0 or is_beyond or (given.is_whole and not is_held)


def _known_to(given: GivenOut) -> int:
    return given.last if given.highest is None else given.highest


@dataclass(slots=True)
class KeyCounts:
    """The counts of comparisons."""

    counts: dict[int, Counter[str]] = field(default_factory=dict)
    """Node id to NODE_COUNTS."""
    coverage: dict[tuple[int, int], Counter[str]] = field(default_factory=dict)
    """Node id and first block of a bin to coverage.COUNTS."""

    def add(self, comparison: KeyComparison, bins: Bins) -> None:
        """Count one."""
        counts = self.counts.setdefault(comparison.node_id, Counter())
        counts["expected"] += comparison.is_required
        counts["served"] += comparison.readable + comparison.unreadable
        counts["matched"] += comparison.is_matched
        counts["outside"] += comparison.is_outside
        counts["undecided"] += comparison.is_undecided
        if comparison.is_known and comparison.chain is not None:
            first = bins.begin(comparison.chain["block_number"])
            bin_counts = self.coverage.setdefault((comparison.node_id, first), Counter())
            _cover(bin_counts, comparison)

    def text(self) -> str:
        """Serialize."""
        return json.dumps([list(self.counts.items()), list(self.coverage.items())])


def _cover(counts: Counter[str], comparison: KeyComparison) -> None:
    is_valid, is_wrong = not comparison.is_quarantined, comparison.is_wrong
    is_matched = comparison.is_matched and not is_wrong
    counts["expected"] += is_valid
    counts["matched"] += is_matched
    counts["missing"] += comparison.is_missing
    counts["wrong"] += is_wrong
    counts["outside"] += is_valid and not (is_matched or is_wrong or comparison.is_missing)


def read_tally(text: str) -> KeyCounts:
    """Take a tally's text apart."""
    counts, coverage = json.loads(text)
    return KeyCounts(
        {node_id: Counter(each) for node_id, each in counts},
        {(node_id, first): Counter(each) for (node_id, first), each in coverage},
    )


def node_counts(
    tallies: Iterable[KeyCounts], nodes: Iterable[ComparedNode]
) -> dict[int, Counter[str]]:
    """Return NODE_COUNTS of all tallies by node id, also of a node without any key."""
    found = {node.node_id: Counter(dict.fromkeys(NODE_COUNTS, 0)) for node in nodes}
    for tally in tallies:
        for node_id, counts in tally.counts.items():
            found[node_id].update(counts)
    return found


def covered(tallies: Iterable[KeyCounts], bins: Bins) -> list[dict[str, int]]:
    """Return the sums of all tallies for the blocks (columns of coverage.COVERAGE)."""
    rows = [
        [
            {"node_id": node_id, "first_block": first, **{name: each[name] for name in COUNTS}}
            for (node_id, first), each in tally.coverage.items()
        ]
        for tally in tallies
    ]
    return summed(rows, bins)

"""The result of screening a unit: a summary, and the rows for the comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

import pyarrow as pa

from chainkit_jobs.reconcile.expected import EXPECTED

SUMMARY: Final = "summary"
CHAIN: Final = "chain"
QUARANTINED: Final = "quarantined"
FORBIDDEN: Final = "forbidden"
SERVED: Final = "served"

RESULTS: Final = pa.schema(
    [
        pa.field("unit", pa.string(), False),
        pa.field("kind", pa.string(), False),
        ("summary", pa.string()),
        ("node_id", pa.int64()),
        ("row_index", pa.int64()),
        ("claimed_sequence_id", pa.decimal128(20, 0)),
        ("envelope", pa.binary()),
        *EXPECTED,
    ]
)
"""One row each: a unit's summary (JSON); a payload of the chain that is doubtful, one that must not
be served, one that the contracts' own events deny: once for each that applies (columns of
expected.EXPECTED); a row of a node (columns of sources.read_raw_envelopes). The other columns are
null."""

BINS: Final = 256
"""Into how many runs of blocks a unit's counts are divided, at most."""


@dataclass(slots=True)
class NodeCount:
    """A unit's counts of a node, without the rows that the comparison counts."""

    valid: dict[int, int] = field(default_factory=dict)
    """First block of a bin to its valid payloads."""
    required: dict[int, int] = field(default_factory=dict)
    """First block of a bin to the payloads that the node must serve."""
    matched: dict[int, int] = field(default_factory=dict)
    """First block of a bin to the payloads that the node serves correctly."""


@dataclass(slots=True)
class UnitSummary:
    """A unit's counts in all."""

    unit: str
    bin_blocks: int = 1
    """Blocks in a bin: a power of two."""
    payloads: int = 0
    quarantined: int = 0
    first_sequence: int | None = None
    last_sequence: int | None = None
    lowest_sequence: int | None = None
    highest_sequence: int | None = None
    first_place: list[int] | None = None
    """Block and log of the first payload."""
    last_place: list[int] | None = None
    is_consecutive: bool = True
    """Whether each payload is behind the one before, with the next sequence, as the contract
    counts."""

    malformed: dict[str, Any] | None = None
    """``block_number``, ``log_index`` and ``malformed`` of the first log that none can emit."""
    nodes: dict[int, NodeCount] = field(default_factory=dict)
    unreadable: dict[int, str] = field(default_factory=dict)
    """Node id to the reason why its rows cannot be read."""
    possibly_misplaced: int = 0
    """Doubtful rows whose envelopes may have a sequence that was found right elsewhere."""

    def is_followed_by(self, after: UnitSummary) -> bool:
        """Return whether another unit's payloads follow this one's."""
        return (
            self.last_sequence is not None
            and after.first_sequence == self.last_sequence + 1
            and (after.first_place or []) > (self.last_place or [])
        )

    def text(self) -> str:
        """Serialize: the same summary always gives the same text."""
        return json.dumps(asdict(self), sort_keys=True)


def read_summary(text: str) -> UnitSummary:
    """Take a summary's text apart."""
    content = json.loads(text)
    content["nodes"] = {
        int(node_id): NodeCount(*(_bins(count[each.name]) for each in fields(NodeCount)))
        for node_id, count in content["nodes"].items()
    }
    content["unreadable"] = {int(key): value for key, value in content["unreadable"].items()}
    return UnitSummary(**content)


def rebinned(bins: Mapping[int, int], blocks: int) -> dict[int, int]:
    """Sum counts into bins of ``blocks``, a multiple of their present size."""
    found: dict[int, int] = {}
    for first, count in bins.items():
        start = first - first % blocks
        found[start] = found.get(start, 0) + count
    return found


def _bins(bins: Mapping[str, int]) -> dict[int, int]:
    # JSON's keys are text.
    return {int(first): count for first, count in bins.items()}

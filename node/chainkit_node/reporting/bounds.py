"""How many reports of misbehavior a node hosts: a flood fills no disk, and displaces no others.

Reports are kept apart by their origin and their weight, and each of these four shares has bounds of
its own: clients' reports never take the place of the node's, nor claims that of proofs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from chainkit.misbehavior.evidence import Weight
from chainkit.protocol.originated_envelope import MAXIMUM_ORIGINATOR_ENVELOPE_LENGTH
from chainkit_node.storage.reports import FROM_CLIENT, FROM_NODE, ReportKind

ROW_BYTES: Final = 400
"""Bytes that a row takes beside its report, with its entries in the indexes."""


@dataclass(frozen=True, slots=True)
class Share:
    """Bounds of the reports of one origin and weight."""

    rows: int
    """Reports about one node, of one type."""
    accused_bytes: int
    """Bytes about one node, of all types; ROW_BYTES count for each report, also in ``bytes``."""
    bytes: int
    """Bytes about all nodes."""


def _shares() -> Mapping[tuple[str, Weight], Share]:
    return {
        (FROM_NODE, Weight.PROVED): Share(100, 64 << 20, 512 << 20),
        (FROM_NODE, Weight.CLAIMED): Share(10_000, 64 << 20, 512 << 20),
        (FROM_CLIENT, Weight.PROVED): Share(20, 32 << 20, 256 << 20),
        (FROM_CLIENT, Weight.CLAIMED): Share(200, 32 << 20, 256 << 20),
    }


@dataclass(frozen=True, slots=True)
class ReportBounds:
    """The most that is stored, 1.5 GiB in all, and that one answer holds."""

    shares: Mapping[tuple[str, Weight], Share] = field(default_factory=_shares)
    report_bytes: int = 2 * MAXIMUM_ORIGINATOR_ENVELOPE_LENGTH + 4096
    """Bytes of one report: evidence of two of the largest envelopes."""
    liveness_bytes: int = 64 << 10
    """Bytes of one report of a liveness failure: its request."""
    page: int = 1000
    """Reports of one answer to a query."""
    page_bytes: int = 16 << 20
    """Bytes of one answer, but for a single larger report."""

    def share_of(self, kind: ReportKind) -> Share:
        """Return the share that a report counts for."""
        return self.shares[kind.origin, Weight(kind.weight)]


@dataclass(frozen=True, slots=True)
class ReportRate:
    """How often one address may submit a report, beside the limits of all requests."""

    per_minute: int = 30
    """Reports in the long run, and at once; 0 for no limit."""

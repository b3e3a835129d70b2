"""The numbers of the contracts' counters at both ends of a chain export, by originator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chainkit.exports import Manifest
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID


@dataclass(frozen=True, slots=True)
class Counted:
    """The last sequence ids that were given out before and within an export."""

    before: int | None
    """In the parent of the first block; None where the counter was not read."""
    after: int | None
    """In the last block; None where the counter was not read."""


def counters_of(manifest: Manifest) -> Mapping[int, Counted]:
    """Return the counters by originator id; none for an originator that has none.

    Our own contracts share one sequence, whose numbers may not have been read, either.
    """
    if manifest.payload_contracts is None:
        own = Counted(manifest.sequence_before, manifest.sequence_after)
        return {BLOCKCHAIN_ORIGINATOR_ID: own}
    return {
        int(originator_id): Counted(each["before"], each["after"])
        for originator_id, each in sorted((manifest.counters or {}).items())
    }

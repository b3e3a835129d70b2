"""The order of timestamps, and the part of an envelope that decides an order (XIP-49 §3.3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, Place


class CausalEnvelope(Protocol):
    """The part of an envelope that decides its order."""

    @property
    def originator_id(self) -> int:
        """The node that ordered the envelope; 0 is the chain."""

    @property
    def sequence_id(self) -> int:
        """1 or more."""

    @property
    def originator_ns(self) -> int:
        """Nanoseconds since 1970, by the originator's clock."""

    @property
    def is_commit(self) -> bool:
        """Whether the envelope ends an epoch of its group."""

    @property
    def depends_on(self) -> Mapping[int, int]:
        """Originator id to the highest id of the topic that the author had seen; 0 for none."""


E = TypeVar("E", bound=CausalEnvelope)


def timestamp_key(envelope: CausalEnvelope) -> tuple[int, bool, int, int, int]:
    """Return the sort key of an envelope in timestamp order.

    Epoch, then commits, then time: a commit depends on the commit before, so a commit is the last
    envelope of the epoch that it ends. Ties are broken by place.
    """
    return (
        envelope.depends_on.get(BLOCKCHAIN_ORIGINATOR_ID, 0),
        envelope.is_commit,
        envelope.originator_ns,
        envelope.originator_id,
        envelope.sequence_id,
    )


def is_of_future(envelope: CausalEnvelope, place: Place) -> bool:
    """Return whether a place is the envelope's own, or a later one of the same originator."""
    originator_id, sequence_id = place
    return originator_id == envelope.originator_id and sequence_id >= envelope.sequence_id

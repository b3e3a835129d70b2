"""How many reports of a type suffice to disable a node: one table (XIP-49 §3.2.7).

A proof holds for everybody, so one is enough. Everything else rests on a sample of the node's
peers, and only where an honest peer who is mistaken would be alone:

- Liveness: each peer sees it by itself. The three types are counted together.
- OUT_OF_ORDER without a proof: a node that skips a sequence id does so with all peers. It is
  counted by itself: a gap is another failure than a late answer.
- A cycle accuses several originators, and honest peers may report each of them; a dependency may
  be missing only where the peer itself is cut off. People judge these, however many report them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from chainkit.misbehavior.types import Misbehavior

DEFAULT_REPORTERS: Final = 3
"""Independent peers who suffice; §3.2.7 names no number.

One may be at fault itself, and two may share a network that is: three seldom do.
"""


class Sample(StrEnum):
    """The types of failures whose reporters are counted together."""

    LIVENESS = "liveness"
    ORDER = "order"


@dataclass(frozen=True, slots=True)
class Threshold:
    """The reports that suffice, of one type."""

    proofs: int | None
    """Different proofs; None where nothing can prove this type."""
    sample: Sample | None
    """The sample in which unproved reports of this type count; None where people decide."""


THRESHOLDS: Final[Mapping[Misbehavior, Threshold]] = {
    Misbehavior.UNRESPONSIVE_NODE: Threshold(None, Sample.LIVENESS),
    Misbehavior.SLOW_NODE: Threshold(None, Sample.LIVENESS),
    Misbehavior.FAILED_REQUEST: Threshold(None, Sample.LIVENESS),
    Misbehavior.OUT_OF_ORDER: Threshold(1, Sample.ORDER),
    Misbehavior.DUPLICATE_SEQUENCE_ID: Threshold(1, None),
    Misbehavior.CAUSAL_ORDERING: Threshold(1, None),
    Misbehavior.INVALID_PAYLOAD: Threshold(1, None),
    Misbehavior.BLOCKCHAIN_INCONSISTENCY: Threshold(1, None),
}

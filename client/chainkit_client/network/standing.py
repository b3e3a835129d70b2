"""Where a payload that a node vouched for stands on the chain."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from chainkit.types import BlockReference


class Standing(StrEnum):
    """Whether the chain has a payload that a node vouched for."""

    CONFIRMED = "confirmed"
    """Exactly so, in a block up to the one that was asked for."""
    ABSENT = "absent"
    """Not now: it is not mined here yet, or a reorg took it back or moved it."""
    FALSE = "false"
    """No branch of the chain ever had it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A payload's standing, and where it stands."""

    standing: Standing
    block: BlockReference | None = None
    """The block of a confirmed one."""

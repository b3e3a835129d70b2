"""Whether a payload that a node vouched for is on the chain."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from chainkit.types import BlockReference


class ChainStatus(StrEnum):
    """Whether the chain has a payload that a node vouched for."""

    CONFIRMED = "confirmed"
    """The same payload is in a block up to the asked one."""
    ABSENT = "absent"
    """The payload is not mined here yet, or a reorg took it back or moved it."""
    FALSE = "false"
    """No branch of the chain ever had the payload."""


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a look-up, and the payload's block."""

    status: ChainStatus
    block: BlockReference | None = None
    """The block of a confirmed payload; None for any other."""

"""How many messages more the chain could take, from exact integers."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from chainkit_jobs.cost.ratios import ratio
from chainkit_jobs.cost.transactions import DAY, HOUR

RATE_DIGITS: Final = 3
SHARE_DIGITS: Final = 12

_PERIODS: Final = {"second": 1, "hour": HOUR, "day": DAY}


@dataclass(frozen=True, slots=True)
class BlockTotals:
    """Totals of the export's blocks."""

    blocks: int
    first_timestamp: int
    """Time of the first block, in seconds."""
    last_timestamp: int
    gas_limit: int
    """The blocks' limits added up."""
    gas_used: int
    """By everybody's transactions."""


@dataclass(frozen=True, slots=True)
class MessageTotals:
    """Totals of our contracts' transactions, and the gas of a message."""

    messages: int
    gas: int
    """Gas of all transactions, with or without messages."""
    message_gas: int
    """Gas of the transactions that carried messages."""
    gas_p95: int | None
    """Gas of messages that were alone in their transaction."""


def headroom(blocks: BlockTotals, messages: MessageTotals) -> dict[str, Any]:
    """Return how much the chain could carry at its gas limit, at the mean and the 95th percentile.

    The observed seconds are the time between the first and the last block, over one block less than
    there are; a rate is null where there is none. Rates have RATE_DIGITS, shares SHARE_DIGITS
    digits. ``unused`` is the limit without everybody's use; the rest has no owner.
    """
    seconds = blocks.last_timestamp - blocks.first_timestamp
    intervals = blocks.blocks - 1
    unused = blocks.gas_limit - blocks.gas_used
    mean = (messages.message_gas, messages.messages)
    p95 = (messages.gas_p95 or 0, 1)
    return {
        "blocks": blocks.blocks,
        "block_seconds": {
            "seconds": seconds,
            "intervals": intervals,
            "mean": ratio(seconds, intervals, RATE_DIGITS),
        },
        "gas_limit": Decimal(blocks.gas_limit),
        "gas_limit_per_block": ratio(blocks.gas_limit, blocks.blocks, RATE_DIGITS),
        "gas_used": Decimal(blocks.gas_used),
        "own_gas": messages.gas,
        "used_share": ratio(blocks.gas_used, blocks.gas_limit, SHARE_DIGITS),
        "own_share": ratio(messages.gas, blocks.gas_limit, SHARE_DIGITS),
        "mean_gas": ratio(*mean, RATE_DIGITS),
        "gas_p95": messages.gas_p95,
        "messages_per": {
            period: {
                "observed": _rate(messages.messages, 1, blocks, length),
                "limit_at_mean": _possible(blocks.gas_limit, mean, blocks, length),
                "limit_at_p95": _possible(blocks.gas_limit, p95, blocks, length),
                "unused_at_mean": _possible(unused, mean, blocks, length),
                "unused_at_p95": _possible(unused, p95, blocks, length),
            }
            for period, length in _PERIODS.items()
        },
    }


def _possible(
    gas: int, per_message: tuple[int, int], blocks: BlockTotals, length: int
) -> Decimal | None:
    """Return the messages that ``gas`` pays for; ``per_message`` is gas and messages."""
    return _rate(gas * per_message[1], per_message[0], blocks, length)


def _rate(numerator: int, denominator: int, blocks: BlockTotals, length: int) -> Decimal | None:
    """Return numerator / denominator, which is of all blocks, per ``length`` seconds."""
    seconds = blocks.last_timestamp - blocks.first_timestamp
    time = blocks.blocks * seconds
    return ratio(numerator * (blocks.blocks - 1) * length, denominator * time, RATE_DIGITS)

"""An endpoint's JSON to typed values; KeyError, TypeError or ValueError where it is not such."""

from __future__ import annotations

import re
from typing import Any, Final

from chainkit.types import BlockHeader, Log

_QUANTITY: Final = re.compile("0x[0-9a-fA-F]+")
_DATA: Final = re.compile("0x(?:[0-9a-fA-F]{2})*")


def parse_header(value: Any) -> BlockHeader:
    """Build a header from an endpoint's block object."""
    return BlockHeader(
        number=parse_integer(value["number"]),
        hash=parse_bytes(value["hash"], 32),
        parent_hash=parse_bytes(value["parentHash"], 32),
        timestamp=parse_integer(value["timestamp"]),
    )


def parse_log(value: Any) -> Log:
    """Build a log from an endpoint's log object."""
    return Log(
        address=parse_bytes(value["address"], 20),
        topics=tuple(parse_bytes(topic, 32) for topic in value["topics"]),
        data=parse_bytes(value["data"]),
        block_number=parse_integer(value["blockNumber"]),
        block_hash=parse_bytes(value["blockHash"], 32),
        transaction_hash=parse_bytes(value["transactionHash"], 32),
        transaction_index=parse_integer(value["transactionIndex"]),
        log_index=parse_integer(value["logIndex"]),
        removed=bool(value.get("removed", False)),
    )


def parse_integer(value: Any) -> int:
    """Return the integer of a 0x-prefixed string. Raises ValueError or TypeError."""
    if not _QUANTITY.fullmatch(value):
        raise ValueError(f"expected 0x and hex digits, got {value[:20]!r}")
    return int(value, 16)


def parse_bytes(value: str, length: int | None = None) -> bytes:
    """Return the bytes of a 0x-prefixed string. Raises ValueError for another length."""
    if not _DATA.fullmatch(value):
        raise ValueError(f"expected 0x and hex digits, got {value[:20]!r}")
    decoded = bytes.fromhex(value[2:])
    if length is not None and len(decoded) != length:
        raise ValueError(f"expected {length} bytes, got {len(decoded)}")
    return decoded

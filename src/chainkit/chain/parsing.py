"""An endpoint's JSON to typed values; KeyError, TypeError or ValueError for another form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from chainkit.text.hexadecimal import parse_bytes
from chainkit.types import BlockHeader, Log

_Value = TypeVar("_Value")

_LONGEST_QUANTITY: Final = 2 + 64
"""Characters of a uint256."""


def parse_header(value: Any) -> BlockHeader:
    """Build a header from an endpoint's block object."""
    bloom = value.get("logsBloom")
    return BlockHeader(
        number=parse_integer(value["number"]),
        hash=parse_bytes(value["hash"], 32),
        parent_hash=parse_bytes(value["parentHash"], 32),
        timestamp=parse_integer(value["timestamp"]),
        logs_bloom=None if bloom is None else parse_bytes(bloom, 256),
        transaction_count=len(value.get("transactions") or ()),
    )


def parse_logs(values: Iterable[Any]) -> list[Log]:
    """Build logs from an endpoint's log objects."""
    # Logs of one block share its hash and height, those of one contract its address and topic.
    addresses, hashes = _Parsed(lambda text: parse_bytes(text, 20)), _Parsed(_hash)
    quantities = _Parsed(parse_integer)
    # By position, in the order of the fields: by name takes longer.
    return [
        Log(
            addresses[value["address"]],
            tuple([hashes[topic] for topic in parse_list(value["topics"])]),
            parse_bytes(value["data"]),
            quantities[value["blockNumber"]],
            hashes[value["blockHash"]],
            parse_bytes(value["transactionHash"], 32),
            quantities[value["transactionIndex"]],
            quantities[value["logIndex"]],
            bool(value.get("removed", False)),
        )
        for value in parse_list(values)
    ]


def parse_log(value: Any) -> Log:
    """Build a log from an endpoint's log object."""
    return parse_logs([value])[0]


def parse_integer(value: Any) -> int:
    """Return the integer of a 0x-prefixed string. Raises ValueError or TypeError."""
    # ``int`` would also take signs, spaces, underscores and the digits of other scripts.
    is_hex = value[:2] == "0x" and value.isalnum() and value.isascii()
    if not is_hex or len(value) > _LONGEST_QUANTITY:
        raise ValueError(f"expected 0x and hex digits, got {value[:20]!r}")
    return int(value, 16)


def parse_next_base_fee(history: Any) -> int:
    """Return the last base fee of an answer to eth_feeHistory: that of the next block, in wei."""
    *_, newest = history["baseFeePerGas"]
    return parse_integer(newest)


class _Parsed(dict[str, _Value]):
    """Parsed texts, each parsed once: a look-up calls no function."""

    def __init__(self, parse: Callable[[str], _Value]) -> None:
        self._parse = parse

    def __missing__(self, text: str) -> _Value:
        self[text] = value = self._parse(text)
        return value


def _hash(text: str) -> bytes:
    return parse_bytes(text, 32)


def parse_list(values: Any) -> list[Any]:
    """Return a list as it is. Raises TypeError for anything else."""
    if not isinstance(values, list):
        raise TypeError(f"expected a list, got {type(values).__name__}")
    return values

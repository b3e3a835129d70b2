"""The batch that MultiSendCallOnly makes for a Safe: several calls, all of them or none.

Packed, not ABI-encoded: for each call its operation (1 byte, always 0, a call), target (20 bytes),
value (32 bytes, always 0 here), length of the calldata (32 bytes), and the calldata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chainkit.contracts.interface import shipped_interface
from chainkit.errors import MalformedData
from chainkit.text.hexadecimal import hex0x
from chainkit.types import ADDRESS_LENGTH

_WORD: Final = 32
_CALL: Final = b"\0"
_NO_VALUE: Final = bytes(_WORD)
_HEAD: Final = 1 + ADDRESS_LENGTH + 2 * _WORD
"""Bytes before a call's calldata."""


@dataclass(frozen=True, slots=True)
class InnerCall:
    """A call that a Safe makes, without value."""

    target: bytes
    """20 bytes, not all zero."""
    calldata: bytes

    def __post_init__(self) -> None:
        """Raise MalformedData for an invalid target.

        MultiSendCallOnly 1.5.0 takes the zero address for the Safe itself, 1.4.1 makes no call.
        """
        if len(self.target) != ADDRESS_LENGTH or not any(self.target):
            expected = f"{ADDRESS_LENGTH} bytes, not all zero"
            raise MalformedData("target of a call by the Safe", expected, hex0x(self.target))


def encode_batch(calls: Sequence[InnerCall]) -> bytes:
    """Return the calldata of ``multiSend`` that makes the calls in their order.

    Raises MalformedData without any call.
    """
    if not calls:
        raise MalformedData("batch", "at least one call", "none")
    packed = b"".join(
        _CALL + call.target + _NO_VALUE + len(call.calldata).to_bytes(_WORD, "big") + call.calldata
        for call in calls
    )
    return shipped_interface("MultiSendCallOnly").encode("multiSend", packed)


def decode_batch(calldata: bytes) -> tuple[InnerCall, ...]:
    """Return the calls that calldata of ``multiSend`` makes.

    Raises MalformedData where the calldata differs from what ``encode_batch`` makes of the calls:
    for another operation than a call, for value, for bytes cut off or left over, for no call at
    all.
    """
    packed = shipped_interface("MultiSendCallOnly").arguments("multiSend", calldata)["transactions"]
    calls: list[InnerCall] = []
    rest = packed
    while rest:
        call, rest = _first_call(rest, place=f"call {len(calls) + 1}")
        calls.append(call)
    if encode_batch(calls) != calldata:
        got = f"{len(calldata)} bytes that are encoded otherwise"
        raise MalformedData("calldata of multiSend", "its calls alone, as Solidity encodes", got)
    return tuple(calls)


def _first_call(packed: bytes, place: str) -> tuple[InnerCall, bytes]:
    """Return the first call of a batch, and the bytes behind it."""
    if len(packed) < _HEAD:
        raise MalformedData("batch", f"a call of at least {_HEAD} bytes", len(packed), place)
    if packed[:1] != _CALL:
        raise MalformedData("batch", "operation 0, a call", f"operation {packed[0]}", place)
    target, rest = packed[1 : 1 + ADDRESS_LENGTH], packed[1 + ADDRESS_LENGTH :]
    value, length = (int.from_bytes(rest[start : start + _WORD], "big") for start in (0, _WORD))
    if value:
        raise MalformedData("batch", "a call without value", f"{value} wei", place)
    rest = packed[_HEAD:]
    if length > len(rest):
        raise MalformedData("batch", f"{length} bytes of calldata", len(rest), place)
    return InnerCall(target, rest[:length]), rest[length:]

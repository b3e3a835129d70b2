"""The format of the bytes in the pipes to the engine's child process.

A frame is its length, in four bytes, and that many bytes of fields. A field is its length, in four
bytes, and its bytes. Numbers are fields of eight bytes. The highest byte comes first everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from chainkit_client.mls.engine import EngineFailed

MOST_FRAME_BYTES: Final = 64 << 20
"""The most bytes of a frame; a state of the largest group takes a tenth."""

_LENGTH_SIZE: Final = 4
_NUMBER_SIZE: Final = 8


def number(value: int) -> bytes:
    """Return a number from 0 to 2**64 - 1 as a field's bytes."""
    return value.to_bytes(_NUMBER_SIZE, "big")


def read_number(data: bytes) -> int:
    """Return the number in a field. Raises EngineFailed for other than eight bytes."""
    if len(data) != _NUMBER_SIZE:
        raise EngineFailed("number of the MLS engine", f"{_NUMBER_SIZE} bytes", len(data))
    return int.from_bytes(data, "big")


def encode_fields(fields: Iterable[bytes]) -> bytes:
    """Return the concatenated fields, each after its length."""
    return b"".join(
        part for field in fields for part in (len(field).to_bytes(_LENGTH_SIZE, "big"), field)
    )


def decode_fields(content: bytes) -> list[bytes]:
    """Return the fields of a frame. Raises EngineFailed where the lengths do not add up."""
    fields = []
    at = 0
    while at < len(content):
        start = at + _LENGTH_SIZE
        at = start + int.from_bytes(content[at:start], "big")
        if start > len(content) or at > len(content):
            raise EngineFailed("fields of the MLS engine", f"{at} bytes", len(content))
        fields.append(content[start:at])
    return fields


def encode_frame(fields: Iterable[bytes]) -> bytes:
    """Return a frame. Raises EngineFailed for more than MOST_FRAME_BYTES."""
    content = encode_fields(fields)
    _check_length(len(content))
    return len(content).to_bytes(_LENGTH_SIZE, "big") + content


class FrameReader:
    """Assembles one frame from arriving pieces."""

    def __init__(self) -> None:
        """Begin before the first byte."""
        self._pieces: list[bytes] = []
        self._received = 0
        self._length: int | None = None

    def feed(self, piece: bytes) -> list[bytes] | None:
        """Take a piece; return the frame's fields once the frame is whole.

        Raises EngineFailed where the frame announces more than MOST_FRAME_BYTES, or more arrived.
        """
        self._pieces.append(piece)
        self._received += len(piece)
        if self._length is None and self._received >= _LENGTH_SIZE:
            self._pieces = [b"".join(self._pieces)]
            self._length = int.from_bytes(self._pieces[0][:_LENGTH_SIZE], "big")
            _check_length(self._length)
        if self._length is None or self._received < _LENGTH_SIZE + self._length:
            return None
        if self._received > _LENGTH_SIZE + self._length:
            surplus = self._received - _LENGTH_SIZE - self._length
            raise EngineFailed(
                "answer of the MLS engine", "one frame", f"{surplus} bytes behind it"
            )
        return decode_fields(b"".join(self._pieces)[_LENGTH_SIZE:])


def _check_length(length: int) -> None:
    if length > MOST_FRAME_BYTES:
        raise EngineFailed("frame of the MLS engine", f"at most {MOST_FRAME_BYTES} bytes", length)

"""The TLS presentation language, as MLS uses it (RFC 9420 §2.1): read strictly, from the front.

Each byte is read once, or once for each level of vectors around it, of which there are three at
most.
"""

from __future__ import annotations

from typing import Final

from chainkit.errors import MalformedMls

_LENGTH_SIZES: Final = (1, 2, 4)
"""Bytes of a vector's length, by the two highest bits of the first; the fourth is not assigned."""

_LEAST_LENGTHS: Final = (0, 1 << 6, 1 << 14)
"""The shortest vector that a length of each of these sizes may have."""


def written_vector(content: bytes) -> bytes:
    """Return bytes with their length in front, in the shortest form (RFC 9420 §2.1.2)."""
    length = len(content)
    if length < _LEAST_LENGTHS[1]:
        return length.to_bytes(1, "big") + content
    if length < _LEAST_LENGTHS[2]:
        return (length | 0x4000).to_bytes(2, "big") + content
    return (length | 0x80000000).to_bytes(4, "big") + content


class Reader:
    """Reads fields of a message one after another; each error contains the position.

    ``subject`` names the message in errors; ``start`` is where ``data`` begins in it.
    """

    __slots__ = ("_data", "_start", "_subject", "position")

    def __init__(self, data: bytes, subject: str, start: int = 0) -> None:
        """Begin at the first byte."""
        self._data = data
        self._subject = subject
        self._start = start
        self.position = 0
        """Bytes that were read."""

    def integer(self, size: int) -> int:
        """Return an unsigned integer of ``size`` bytes. Raises MalformedMls at the end."""
        return int.from_bytes(self._take(size), "big")

    def vector(self) -> bytes:
        """Return the bytes of a vector whose length is in front (RFC 9420 §2.1.2).

        Raises MalformedMls where the length is not in its shortest form, or fewer bytes follow.
        """
        first = self.integer(1)
        if first < _LEAST_LENGTHS[1]:
            return self._take(first)
        size_class = first >> 6
        if size_class == len(_LENGTH_SIZES):
            raise self.malformed("a vector's length of 1, 2 or 4 bytes", f"0x{first:02x}")
        size = _LENGTH_SIZES[size_class]
        length = (first & 0x3F) << 8 * (size - 1) | self.integer(size - 1)
        if length < _LEAST_LENGTHS[size_class]:
            shortest = 1 if length < _LEAST_LENGTHS[1] else 2
            raise self.malformed(f"the length {length} in {shortest} bytes", f"{size} bytes")
        return self._take(length)

    def items(self) -> Reader:
        """Return a reader of what a vector contains. Raises as ``vector``."""
        content = self.vector()
        return Reader(content, self._subject, self._start + self.position - len(content))

    def read(self, start: int) -> bytes:
        """Return the bytes that were read since a position."""
        return self._data[start : self.position]

    @property
    def is_at_end(self) -> bool:
        """True where nothing is left to read."""
        return self.position == len(self._data)

    def finish(self) -> None:
        """Raise MalformedMls where bytes are left."""
        if not self.is_at_end:
            raise self.malformed("the end", f"{len(self._data) - self.position} more bytes")

    def malformed(self, expected: object, got: object) -> MalformedMls:
        """Return an error about the field that was read last, with its place."""
        return MalformedMls(self._subject, expected, got, f"byte {self._start + self.position}")

    def _take(self, size: int) -> bytes:
        end = self.position + size
        taken = self._data[self.position : end]
        if len(taken) != size:
            raise self.malformed(f"{size} more bytes", len(taken))
        self.position = end
        return taken

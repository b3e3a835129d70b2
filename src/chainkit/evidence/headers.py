"""The headers of a bundle: from the trusted block back to the first, each named by the next."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from chainkit.documents.untrusted import open_file
from chainkit.errors import MalformedData
from chainkit.ethereum import DecodedHeader, decode_header
from chainkit.evidence.bundle import HEADERS_NAME
from chainkit.signatures import keccak256
from chainkit.types import HASH_LENGTH, BlockReference

_PREFIX_LENGTH: Final = 3
_LIST_OF_TWO_LENGTH_BYTES: Final = 0xF9
"""Most bytes of a header: with its bloom filter a header is longer than 255 bytes, and none is
longer than 65,535."""

_PARENT: Final = slice(_PREFIX_LENGTH + 1, _PREFIX_LENGTH + 1 + HASH_LENGTH)

Advance = Callable[[int], None]
"""Takes how many bytes more were read."""


class ProvedHeaders:
    """The headers that some findings need, each read again from the file when it is asked for."""

    def __init__(self, path: Path, places: dict[int, tuple[int, bytes]]) -> None:
        """Take a file, and by height the offset and the hash of each proved header."""
        self._path = path
        self._places = places

    def __getitem__(self, number: int) -> DecodedHeader:
        """Return a header. Raises MalformedData if it is not proved, or no longer there."""
        subject = f"block {number}"
        if number not in self._places:
            raise MalformedData(subject, f"a header in {HEADERS_NAME}", "none")
        offset, hash_ = self._places[number]
        with open_file(self._path) as file:
            file.seek(offset)
            data = next(_encoded_headers(file), b"")
        if keccak256(data) != hash_:
            raise MalformedData(subject, "a file that nobody writes to", "a changed one")
        header = decode_header(data)
        if header.header.number != number:
            place = f"{HEADERS_NAME}, byte {offset}"
            raise MalformedData(subject, "a header of this height", header.header.number, place)
        return header


def prove_headers(
    path: Path,
    first_block: int,
    trusted: BlockReference,
    needed: Collection[int],
    advance: Advance = lambda read: None,
) -> ProvedHeaders:
    """Prove a file of headers from a block that is trusted; ``needed`` are heights to be asked for.

    Raises MalformedData where a header is not the parent that the next one names, the last is
    not the trusted block, or there are more or fewer than the heights between.
    """
    places: dict[int, tuple[int, bytes]] = {}
    number, offset, hash_ = first_block, 0, b""
    wanted = {*needed, trusted.number}
    with open_file(path) as file:
        for data in _encoded_headers(file):
            if number > first_block and data[_PARENT] != hash_:
                expected, got = f"parent 0x{hash_.hex()}", f"0x{data[_PARENT].hex()}"
                raise MalformedData(f"block {number}", expected, got, HEADERS_NAME)
            hash_ = keccak256(data)
            if number in wanted:
                places[number] = (offset, hash_)
            offset += len(data)
            number += 1
            advance(len(data))
    found = BlockReference(number - 1, hash_)
    if not hash_ or found != trusted:
        expected = f"headers up to the trusted block {trusted.number} 0x{trusted.hash.hex()}"
        got = f"{found.number} 0x{hash_.hex()}" if hash_ else "none"
        raise MalformedData("bundle", expected, got, HEADERS_NAME)
    headers = ProvedHeaders(path, places)
    # Links alone prove the number of headers, but not the height of the first.
    _ = headers[trusted.number]
    return headers


def _encoded_headers(file: BinaryIO) -> Iterator[bytes]:
    """Cut a file into RLP lists. Raises MalformedData where there is none of a header's length."""
    while prefix := file.read(_PREFIX_LENGTH):
        length = int.from_bytes(prefix[1:], "big")
        rest = file.read(length)
        if prefix[0] != _LIST_OF_TWO_LENGTH_BYTES or len(rest) != length or length < _PARENT.stop:
            place = f"{HEADERS_NAME}, byte {file.tell() - len(prefix) - len(rest)}"
            raise MalformedData("bundle", "the RLP of a header", "other bytes", place)
        yield prefix + rest

"""Lines to an encrypted file and back: gzip, then zeros, then age, each of them streamed.

Compression comes first: a ciphertext does not compress, and one whose parts were encrypted one by
one would show the number and the lengths of the messages. `age --decrypt | gunzip` opens the file
as well; gunzip ignores the zeros.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Final

import pyrage
from pyrage import x25519

from chainkit.errors import ConfigurationError, MalformedData
from chainkit_client.history.padding import padded_length

LONGEST_LINE: Final = 1 << 23
"""Bytes of a line: a message of 4 MiB in base64, and the fields beside it."""
MOST_BYTES: Final = 1 << 33
"""Bytes of all lines."""

_GZIP: Final = 16 + zlib.MAX_WBITS
_CHUNK: Final = 1 << 16
_LONGEST_HEADER: Final = 4096
"""Bytes of age's header: one recipient takes 200."""
_SUBJECT: Final = "history file"


class NotOpened(MalformedData):
    """The key does not open the file, or the file was cut or altered."""


def new_key() -> str:
    """Return a random key, an age identity: each file has one of its own."""
    return str(x25519.Identity.generate())


def recipient_of(key: str) -> str:
    """Return the public half of a key, to which a file is encrypted."""
    return str(_identity(key).to_public())


def pack(lines: Iterable[bytes], file: BinaryIO, recipient: str) -> None:
    """Write lines, each without its end, to a file that the key of a recipient opens.

    Each file has a random key of its own, which age encrypts to the recipient (H13). Raises
    MalformedData for a recipient that is none.
    """
    try:
        found = x25519.Recipient.from_str(recipient)
    except pyrage.RecipientError as error:
        raise MalformedData("recipient", "an age recipient", "another text") from error
    pyrage.encrypt_io(_Source(_padded(_compressed(lines))), file, [found])


def unpack(
    file: BinaryIO, key: str, take: Callable[[bytes], None], most_bytes: int = MOST_BYTES
) -> None:
    """Hand each line of a file to ``take``, as the file is read from where it is.

    The lines may be those of a file that was cut: nothing may be used before this returns. Raises
    ConfigurationError for a key that is none, NotOpened, MalformedData for what is not compressed
    lines or too much of it, and what ``take`` raises.
    """
    identity = _identity(key)
    begin = file.tell()
    if b"\n--- " not in file.read(_LONGEST_HEADER):
        raise NotOpened(_SUBJECT, "a file of age", "another file")
    file.seek(begin)
    sink = _Lines(take, most_bytes)
    try:
        pyrage.decrypt_io(file, sink, [identity])
    except pyrage.DecryptError as error:
        raise NotOpened(_SUBJECT, "one that the key opens", error) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise NotOpened(_SUBJECT, "a whole and unaltered file", error) from error
    sink.end()


def _identity(key: str) -> x25519.Identity:
    try:
        return x25519.Identity.from_str(key)
    except pyrage.IdentityError as error:
        raise ConfigurationError("key", "an age identity", "another text") from error


def _compressed(lines: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(wbits=_GZIP)
    for line in lines:
        yield compressor.compress(line + b"\n")
    yield compressor.flush()


def _padded(chunks: Iterable[bytes]) -> Iterator[bytes]:
    length = 0
    for chunk in chunks:
        length += len(chunk)
        yield chunk
    missing = padded_length(length) - length
    while missing:
        zeros = min(missing, _CHUNK)
        yield bytes(zeros)
        missing -= zeros


class _Source:
    """Chunks as a file that is read."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, and none at the end."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._rest = chunk
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken


class _Lines:
    """A file that is written: decompresses, and hands on lines."""

    def __init__(self, take: Callable[[bytes], None], most_bytes: int) -> None:
        self._take = take
        self._most = most_bytes
        self._inflater = zlib.decompressobj(wbits=_GZIP)
        self._line = bytearray()
        self._total = 0

    def write(self, data: bytes) -> int:
        """Take the next bytes of the compressed file."""
        rest = data
        while rest and not self._inflater.eof:
            try:
                # A few bytes may stand for gigabytes: they come in pieces.
                piece = self._inflater.decompress(rest, _CHUNK)
            except zlib.error as error:
                raise MalformedData(_SUBJECT, "compressed lines", error) from error
            rest = self._inflater.unconsumed_tail
            self._split(piece)
        after = self._inflater.unused_data or rest
        if self._inflater.eof and after.strip(b"\0"):
            raise MalformedData(_SUBJECT, "zeros behind the compressed lines", "other bytes")
        return len(data)

    def flush(self) -> None:
        """Do nothing: whoever writes calls this."""

    def end(self) -> None:
        """Raise MalformedData unless the compressed lines ended."""
        if not self._inflater.eof or self._line:
            raise MalformedData(_SUBJECT, "whole lines", "a part")

    def _split(self, piece: bytes) -> None:
        self._total += len(piece)
        if self._total > self._most:
            raise MalformedData(_SUBJECT, f"at most {self._most} bytes of lines", "more")
        *whole, rest = piece.split(b"\n")
        for each in whole:
            self._line += each
            self._check_length()
            self._take(bytes(self._line))
            self._line.clear()
        self._line += rest
        self._check_length()

    def _check_length(self) -> None:
        if len(self._line) > LONGEST_LINE:
            raise MalformedData(_SUBJECT, f"lines of at most {LONGEST_LINE} bytes", "a longer one")

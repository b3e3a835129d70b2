"""A request's body as it comes: the bytes themselves, or one file of multipart/form-data (XIP-31).

Bytes are passed on as they were sent: nothing is decompressed or decoded, so that a small body
never becomes a large file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import BodyPartReader, MultipartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from chainkit_backups.types import Refused, TooSlow

CHUNK_BYTES: Final = 256 << 10

LEAST_BYTES_PER_SECOND: Final = 8 << 10
"""The rate below which a transfer is ended."""

MOST_SECONDS: Final = 3600.0
"""How long a transfer may take; a download goes on with a range."""

_MULTIPART: Final = "multipart/form-data"


class Pace:
    """The time by which a transfer must have come further, on the event loop's clock."""

    def __init__(self, patience: float) -> None:
        """Begin now; ``patience`` is the time that the body may take beside that of its bytes."""
        self._start = asyncio.get_running_loop().time()
        self._patience = patience
        self._bytes = 0

    def moved(self, length: int) -> None:
        """Count bytes that came or went."""
        self._bytes += length

    @property
    def deadline(self) -> float:
        """The moment at which the transfer ends unless more bytes move."""
        allowed = self._patience + self._bytes / LEAST_BYTES_PER_SECOND
        return self._start + min(allowed, MOST_SECONDS)


async def file_chunks(request: web.Request, patience: float) -> AsyncIterator[bytes]:
    """Yield the bytes of the one file of a body.

    Raises TooSlow, Refused for a body of another form, and ConnectionError for one that breaks off.
    """
    is_form = request.content_type == _MULTIPART
    pace = Pace(patience)
    chunks = _part_chunks(request) if is_form else _raw_chunks(request)
    while True:
        try:
            async with asyncio.timeout_at(pace.deadline):
                data = await anext(chunks, b"")
        except TimeoutError as error:
            expected = f"at least {LEAST_BYTES_PER_SECOND} bytes a second"
            raise TooSlow("body", expected, "fewer") from error
        except web.RequestPayloadError as error:
            raise ConnectionResetError("the body broke off") from error
        except (ValueError, HttpProcessingError) as error:
            # The library's words may quote the body.
            raise Refused("body", "multipart/form-data with one file", "another form") from error
        if not data:
            return
        pace.moved(len(data))
        yield data


async def _raw_chunks(request: web.Request) -> AsyncIterator[bytes]:
    while data := await request.content.readany():
        yield data


async def _part_chunks(request: web.Request) -> AsyncIterator[bytes]:
    form = await request.multipart()
    part = await form.next()
    if not isinstance(part, BodyPartReader):
        raise ValueError("no file")
    while not part.at_eof():
        if data := await part.read_chunk(CHUNK_BYTES):
            yield data
    await _check_end(form)


async def _check_end(form: MultipartReader) -> None:
    if await form.next() is not None or not form.at_eof():
        raise ValueError("more than one file, or no end")

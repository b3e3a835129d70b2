"""Reads files of a folder that came from a stranger."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from chainkit.documents.files import open_regular
from chainkit.errors import MalformedData

LONGEST_LINE: Final = 2**28
"""Bytes of a line: envelope, transaction and receipt of the largest block fit many times."""

_CHUNK: Final = 2**20


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading, never a link, a device or a pipe.

    Raises ConfigurationError for anything else.
    """
    return open_regular(path, f"evidence file {path}", follows_link=False)


def read_small(path: Path, most: int) -> bytes:
    """Return a file of up to ``most`` bytes; raises MalformedData for a longer one."""
    with open_file(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise MalformedData(f"evidence file {path}", f"up to {most} bytes", "more")
    return data


def check_file(path: Path, size: int, sha256: str, advance: Callable[[int], None]) -> None:
    """Raise MalformedData unless a file has this size and digest."""
    digest = hashlib.sha256()
    with open_file(path) as file:
        if (found := os.fstat(file.fileno()).st_size) != size:
            raise MalformedData(f"bundle file {path}", f"{size} bytes", found)
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            advance(len(chunk))
    if digest.hexdigest() != sha256:
        raise MalformedData(f"bundle file {path}", f"sha256 {sha256}", digest.hexdigest())


def lines_of(file: BinaryIO, subject: str) -> Iterator[tuple[int, bytes]]:
    """Return the lines of a file, each with its offset.

    Raises MalformedData for a line that is longer than any valid one.
    """
    offset = file.tell()
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise MalformedData(subject, f"lines of up to {LONGEST_LINE} bytes", "a longer one")
        yield offset, line
        offset += len(line)

"""h2load's load: many calls with one body, by a program in C that costs less than any node.

A node stores the same payload as often as it comes, so that one body is enough.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Final

from benchmarks.node.load import Rate
from chainkit.errors import ConfigurationError, MalformedAnswer

_CONNECTIONS: Final = 10
_MICROSECONDS: Final = 1e6
_OK: Final = "200"


def h2load_program() -> str:
    """Return the program's path. Raises ConfigurationError where it is missing."""
    program = shutil.which("h2load")
    if program is None:
        expected = "a program on the PATH (Debian: apt install nghttp2-client)"
        raise ConfigurationError("h2load", expected, "none")
    return program


def call_often(folder: Path, url: str, request: bytes, calls: int, callers: int) -> Rate:
    """Call a method so many times, and time each call; files go to an empty place of a folder.

    Raises MalformedAnswer where a call got no HTTP answer. Its gRPC status is not looked at.
    """
    body, log = folder / "h2load.body", folder / "h2load.log"
    # gRPC's message: not compressed, and its length.
    body.write_bytes(struct.pack(">BI", 0, len(request)) + request)
    log.unlink(missing_ok=True)
    subprocess.run(
        [
            *(h2load_program(), "-n", str(calls), "-c", str(_CONNECTIONS)),
            *("-m", str(callers // _CONNECTIONS), "-d", str(body), "--log-file", str(log)),
            *("-H", "content-type: application/grpc", "-H", "te: trailers", url),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return read_log(log.read_text(), calls)


def read_log(text: str, calls: int) -> Rate:
    """Return what h2load logged: begin in µs, HTTP status and duration in µs of each call."""
    rate, begins, ends = Rate(), [], []
    for begin, status, taken in (map(str, line.split("\t")) for line in text.splitlines()):
        if status == _OK:
            rate.taken.append(int(taken) / _MICROSECONDS)
            begins.append(int(begin))
            ends.append(int(begin) + int(taken))
    if len(begins) != calls:
        raise MalformedAnswer("h2load", f"{calls} answers", len(begins))
    rate.count, rate.seconds = calls, (max(ends) - min(begins)) / _MICROSECONDS
    return rate

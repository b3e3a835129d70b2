"""Honest clients beside attackers, and what the attackers cost a service."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Final

import grpc

_BUSY: Final = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
_AGAIN_SECONDS: Final = 0.1


@dataclass
class Reader:
    """Asks again and again from a thread of its own, until ``close``.

    A question that a busy service refuses is asked again, and takes until it is answered.
    """

    ask: Callable[[], object]
    pause: float = 0.01
    """Seconds between an answer and the next question."""
    seconds: list[float] = field(default_factory=list)
    refused: int = 0
    error: Exception | None = None
    _ended: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        if self.error is not None:
            raise self.error

    def quantile(self, share: float) -> float:
        return sorted(self.seconds)[int(share * (len(self.seconds) - 1))]

    def _run(self) -> None:
        try:
            while not self._ended.wait(self.pause):
                began = time.monotonic()
                while not self._is_answered():
                    time.sleep(_AGAIN_SECONDS)
                self.seconds.append(time.monotonic() - began)
        except Exception as error:
            self.error = error

    def _is_answered(self) -> bool:
        try:
            self.ask()
        except grpc.RpcError as error:
            if error.code() not in _BUSY:
                raise
            self.refused += 1
            return False
        return True


def resident_bytes(pid: int) -> int:
    [kib] = re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(kib) << 10


def refused(monitor: str) -> float:
    """Count all that a service refused or ended, by its metrics."""
    with urllib.request.urlopen(f"{monitor}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    names = r"^chainkit_\w+_(?:edge_ended|refusals)_total\{.*\} (\S+)$"
    return sum(map(float, re.findall(names, text, re.MULTILINE)))

"""The node's page and its snapshot over HTTP, on the threads of the monitor's server.

A look reads the database and waits for a turn of the event loop, so it is taken once a second at
most, whoever asks. The page is one file: no script, style or picture comes from elsewhere, and
its Content-Security-Policy allows its own by their hashes alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Final, Protocol

from chainkit.errors import StoreError
from chainkit.service.monitor_server import Answer
from chainkit_indexer.storage.store import Store
from chainkit_node.inspection.building import build_status
from chainkit_node.inspection.json_form import as_json
from chainkit_node.inspection.live import LiveParts, LoopSilent
from chainkit_node.inspection.snapshot import NodeStatus
from chainkit_node.inspection.words import shown

STATUS_PATH: Final = "/status.json"
PAGE_PATHS: Final = ("/", "/status")
CACHE_SECONDS: Final = 1.0
"""How long a snapshot is answered again."""
WAIT_SECONDS: Final = 1.5
"""How long a request waits for another request's look, which may wait a second for the loop."""

_HEADERS: Final = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_SCRIPT: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_STYLE: Final = re.compile(r"<style>(.*?)</style>", re.DOTALL)


class Looks(Protocol):
    """Looks at the running node."""

    def look(self) -> LiveParts:
        """Return the live parts, soon. Raises LoopSilent."""


class StatusPage:
    """Answers for several threads; ``close`` before the database is closed."""

    def __init__(
        self,
        store: Store,
        live: Looks,
        wall_clock: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the database, and the view of the running node.

        ``wall_clock`` is in seconds since 1970; ``clock`` only grows.
        """
        self._store = store
        self._live = live
        self._wall_clock = wall_clock
        self._clock = clock
        self._lock = threading.Lock()
        self._is_closed = False
        self._answer: Answer | None = None
        self._taken_at = float("-inf")
        self._page = page_answer()

    def paths(self) -> Mapping[str, Callable[[], Answer]]:
        """Return the answers by their paths."""
        pages = {path: lambda: self._page for path in PAGE_PATHS}
        return {**pages, STATUS_PATH: self.status}

    def status(self) -> Answer:
        """Answer the snapshot as JSON, at most CACHE_SECONDS old; 503 without a database."""
        # A database that hangs takes one of the server's threads, and leaves /metrics the others.
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            return _json(503, {"error": "another look at the database has not ended yet"})
        try:
            is_old = self._clock() - self._taken_at >= CACHE_SECONDS
            if self._answer is None or is_old or self._is_closed:
                self._answer = self._look()
                self._taken_at = self._clock()
            return self._answer
        finally:
            self._lock.release()

    def close(self) -> None:
        """Take no more looks, once a look that has begun is over."""
        with self._lock:
            self._is_closed = True

    def _look(self) -> Answer:
        if self._is_closed:
            return _json(503, {"error": "the node is ending"})
        try:
            return _json(200, as_json(self._snapshot()))
        except StoreError as error:
            return _json(503, {"error": shown(str(error))})

    def _snapshot(self) -> NodeStatus:
        live: LiveParts | None = None
        no_live = None
        try:
            live = self._live.look()
        except LoopSilent as error:
            no_live = str(error)
        return build_status(self._store, self._wall_clock(), live, no_live)


def _json(status: int, content: Mapping[str, object]) -> Answer:
    body = json.dumps(content, separators=(",", ":")).encode() + b"\n"
    return Answer(status, "application/json", body, _HEADERS)


def page_answer() -> Answer:
    """Answer the page, with the hashes of its own script and style."""
    page = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes(_SCRIPT, page)}",
            f"style-src {_hashes(_STYLE, page)}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
    headers = {**_HEADERS, "Content-Security-Policy": policy}
    return Answer(200, "text/html; charset=utf-8", page.encode(), headers)


def _hashes(pattern: re.Pattern[str], page: str) -> str:
    digests = (hashlib.sha256(each.encode()).digest() for each in pattern.findall(page))
    return " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in digests)

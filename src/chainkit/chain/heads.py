"""Wakes the caller that waits for the next block: by a WebSocket's ``newHeads``, else after a time.

A notification only wakes the caller, which asks the endpoint that it trusts for the head. So a
subscription may lie, repeat itself or fall silent: at worst the caller polls.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

import orjson
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from chainkit.chain.backoff import Backoff
from chainkit.chain.location import location_of

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 60.0
_CONNECT_SECONDS: Final = 10.0
_CLOSE_SECONDS: Final = 2.0
_SLICE_SECONDS: Final = 0.05
SHORTEST_INTERVAL_SECONDS: Final = 0.02
"""The shortest time between two notifications that wake the caller: a flood of notifications must
not cause a flood of polls."""

_LONGEST_NOTIFICATION_BYTES: Final = 2**20
_SUBSCRIBE: Final = orjson.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]}
).decode()


class SubscriptionState(StrEnum):
    """The state of the subscription."""

    OFF = "off"
    """There is none to be had: polling alone."""
    CONNECTING = "connecting"
    SUBSCRIBED = "subscribed"
    WAITING = "waiting"
    """The subscription was lost or refused; the watcher subscribes again after a pause."""


@dataclass(frozen=True, slots=True)
class HeadStatistics:
    """The subscription's counters since the start."""

    state: SubscriptionState
    notifications: int
    wake_ups: int
    """Calls that one or more notifications woke; fewer than notifications where these come in a
    flood."""
    reconnects: int
    """How often the subscription was lost or refused, and tried again."""
    mute: int
    """How often the subscription was given up: it was silent while polls saw the head move."""
    last_error: str | None
    """In a few words, without the URL."""


class _Mute(Exception):
    """The subscription sends nothing although the head moves."""


class HeadWatcher:
    """Use as a context manager. Without a URL the watcher only polls."""

    def __init__(
        self, websocket_url: str | None, poll_seconds: float, watchdog_seconds: float = 30.0
    ) -> None:
        """Take a ws(s) URL, or None. Raises ConfigurationError for another one.

        A subscription that sends nothing for ``watchdog_seconds`` after polls saw the head move is
        closed and opened again.
        """
        self.name = location_of(websocket_url, "WebSocket", "ws") if websocket_url else "none"
        self._url = websocket_url
        self._poll_seconds = poll_seconds
        self._watchdog = Watchdog(watchdog_seconds)
        self._wake_up = WakeUp()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="newHeads", daemon=True)
        self._connection: ClientConnection | None = None
        self._state = SubscriptionState.OFF
        self._notifications, self._reconnects, self._mute = 0, 0, 0
        self._last_error: str | None = None

    def __repr__(self) -> str:
        """Show the host only."""
        return f"{type(self).__name__}({self.name})"

    def __enter__(self) -> Self:
        """Open the subscription, in a thread of its own."""
        if self._url is not None:
            self._state = SubscriptionState.CONNECTING
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the subscription."""
        self._closing.set()
        if (connection := self._connection) is not None:
            connection.close()
        if self._url is not None:
            self._thread.join(_CLOSE_SECONDS)
        # A thread that still waits for a server may still write to the socket.
        if not self._thread.is_alive():
            self._wake_up.close()

    def wait(self, is_stopped: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait for a new head, for ``seconds`` at most (``poll_seconds`` if not given).

        Returns whether a notification ended the wait, also a notification that came before the
        call. Ends within a twentieth of a second once ``is_stopped``.
        """
        deadline = time.monotonic() + (self._poll_seconds if seconds is None else seconds)
        while not is_stopped():
            left = deadline - time.monotonic()
            if self._wake_up.wait(min(max(left, 0.0), _SLICE_SECONDS)):
                return True
            if left <= 0:
                break
        return False

    def saw_head(self, block_hash: bytes) -> None:
        """Report to the watchdog the head that a poll found: else missed heads go unnoticed."""
        self._watchdog.saw_head(block_hash)

    def statistics(self) -> HeadStatistics:
        """Return what happened so far."""
        return HeadStatistics(
            self._state,
            self._notifications,
            self._wake_up.count,
            self._reconnects,
            self._mute,
            self._last_error,
        )

    def _follow(self) -> None:
        backoff = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, jitter=0.5)
        in_vain = 0
        while not self._closing.is_set():
            before = self._notifications
            try:
                self._listen()
            except _Mute:
                self._mute += 1
                self._last_error = "a subscription that says nothing"
            except Exception as error:
                # Polling goes on after any error, and the subscription is tried again.
                self._last_error = _reason(error)
            if self._notifications > before:
                in_vain = 0
            self._state = SubscriptionState.WAITING
            self._closing.wait(backoff.pause(in_vain))
            self._reconnects += not self._closing.is_set()
            in_vain += 1

    def _listen(self) -> None:
        assert self._url is not None
        self._state = SubscriptionState.CONNECTING
        # At DEBUG the library logs the handshake with the path, which may hold a key.
        logger = logging.getLogger("websockets.client")
        logger.setLevel(logging.INFO)
        connection = connect(
            self._url,
            open_timeout=_CONNECT_SECONDS,
            close_timeout=1,
            max_size=_LONGEST_NOTIFICATION_BYTES,
            logger=logger,
        )
        with connection:
            self._connection = connection
            connection.send(_SUBSCRIBE)
            subscription = _object(connection.recv(timeout=_CONNECT_SECONDS)).get("result")
            if not isinstance(subscription, str):
                raise ValueError("no subscription")
            self._state = SubscriptionState.SUBSCRIBED
            self._watchdog.subscribed()
            while not self._closing.is_set():
                self._hear(connection)

    def _hear(self, connection: ClientConnection) -> None:
        try:
            message = connection.recv(timeout=self._watchdog.interval)
        except TimeoutError:
            if self._watchdog.is_mute():
                raise _Mute from None
            return
        if _object(message).get("method") == "eth_subscription":
            self._notifications += 1
            self._watchdog.notified()
            self._wake_up.set()
        elif self._watchdog.is_mute():
            raise _Mute


class WakeUp:
    """A flag that a thread sets and another one waits for, without a lock: a pipe."""

    def __init__(self) -> None:
        """Not set yet."""
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._poll = select.poll()
        self._poll.register(self._reader, select.POLLIN)
        self._last = -SHORTEST_INTERVAL_SECONDS
        self.count = 0

    def set(self) -> None:
        """Wake whoever waits, or is about to."""
        try:
            os.write(self._writer, b"!")
        except BlockingIOError:
            return  # The queue is full of earlier notifications.

    def wait(self, seconds: float) -> bool:
        """Return whether the event was set since the last call; wait for the event if need be.

        The first call returns at once, later ones at most once in SHORTEST_INTERVAL_SECONDS.
        """
        if not self._poll.poll(1000 * seconds):
            return False
        time.sleep(max(0.0, self._last + SHORTEST_INTERVAL_SECONDS - time.monotonic()))
        self._last = time.monotonic()
        os.read(self._reader, 2**16)
        self.count += 1
        return True

    def close(self) -> None:
        """Give the pipe back; nothing may be called any more."""
        os.close(self._reader)
        os.close(self._writer)


class Watchdog:
    """Compares what polls saw with what was notified; each move of the head needs one or more."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Allow as many seconds for a notification; ``interval`` is how often to look."""
        self.interval = min(seconds / 4, 1.0)
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._head: bytes | None = None
        self._is_covered = False
        self._missed_since: float | None = None

    def subscribed(self) -> None:
        """Forget what an earlier subscription missed."""
        with self._lock:
            self._missed_since = None

    def notified(self) -> None:
        """Take note of a notification."""
        with self._lock:
            # The notification may be a late one of a move that was seen already, or precede the
            # poll.
            self._is_covered = self._missed_since is None
            self._missed_since = None

    def saw_head(self, block_hash: bytes) -> None:
        """Take note of the head that a poll found."""
        with self._lock:
            moved = self._head is not None and block_hash != self._head
            self._head = block_hash
            if moved and not self._is_covered and self._missed_since is None:
                self._missed_since = self._clock()
            self._is_covered = self._is_covered and not moved

    def is_mute(self) -> bool:
        """Return whether the head moved long ago without a notification."""
        with self._lock:
            since = self._missed_since
            return since is not None and self._clock() - since >= self._seconds


def _reason(error: Exception) -> str:
    # The error's text may name the URL, which may hold a key.
    if isinstance(error, InvalidStatus):
        return f"HTTP {error.response.status_code}"
    return type(error).__name__


def _object(message: str | bytes) -> dict[str, Any]:
    """Return a message's JSON object. Raises ValueError for anything else."""
    value = orjson.loads(message)
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    return value

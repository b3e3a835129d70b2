"""Whether another process signs with this node's key: then this one originates nothing more.

Two processes with one key give one sequence id to two envelopes, each a proof against the key
(XIP-49 §3.2.7) that nobody can take back. The lock of the database keeps a second process out only
where both have one database. Three signs show a twin (ADR 65), and nobody else can make any:

- an envelope of this node's key, dated after this process began to originate, that it did not sign,
- a signature, by this node's key, on a question of this process that it did not answer itself: the
  question goes to the URL of this node,
- a token of this node for itself, issued since the start, that is none of this process. The twin
  asked the same question here. It will not originate, so this node only shows it.

A process that saw one of the first two signs stays as it is until it is started again: then it
takes back what the twin signed before it originates.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from chainkit.protocol.proto import node_api_pb2
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.refusals import NotReady
from chainkit.types import NANOSECONDS_PER_SECOND, TopicKind
from chainkit_indexer.monitoring.health import Check

SHOWN_SECONDS: Final = 120.0
"""How long a token of a twin is shown: the twin asks several times meanwhile."""

_MOST_TOKENS: Final = 1_000
"""Own tokens that are remembered: some five hours of them, and each is refused after one."""
_MOST_QUESTIONS: Final = 8


class TwinFound(NotReady):
    """Another process signs with this node's key."""


class Envelope(Protocol):
    """An envelope that another node brought, verified."""

    @property
    def originator_id(self) -> int:
        """The node that signed it."""

    @property
    def sequence_id(self) -> int:
        """Its id."""

    @property
    def originator_ns(self) -> int:
        """Nanoseconds since 1970, by its signer's clock."""


class TwinCheck:
    """All methods are for any thread."""

    def __init__(
        self,
        own_id: Callable[[], int | None],
        clock_ns: Callable[[], int],
        steady: Callable[[], float],
    ) -> None:
        """Take this node's id by the registry, and the clocks.

        ``clock_ns`` counts from 1970, ``steady`` in seconds of a clock that only grows.
        """
        self._own_id = own_id
        self._clock_ns = clock_ns
        self._steady = steady
        self._lock = threading.Lock()
        self._started_ns = clock_ns()
        self._began_ns: int | None = None
        self._signed = range(0)
        self._questions: deque[bytes] = deque(maxlen=_MOST_QUESTIONS)
        self._answered: deque[bytes] = deque(maxlen=_MOST_QUESTIONS)
        self._tokens: deque[str] = deque(maxlen=_MOST_TOKENS)
        self._shown_at = float("-inf")
        self._is_shown = False
        self._found: str | None = None
        """The sign that another process signs, for good."""

    def begins(self) -> None:
        """Record that this process originates from now on: it has taken back what came before."""
        self._began_ns = self._clock_ns()

    def signed(self, sequence_ids: Iterable[int]) -> None:
        """Record ids that this process gave, which rise; before anybody else gets them."""
        ids = sorted(sequence_ids)
        if ids:
            start = self._signed.start if self._signed else ids[0]
            self._signed = range(start, ids[-1] + 1)

    def took(self, stored: Sequence[Envelope], disputed: Sequence[Envelope]) -> None:
        """Take envelopes that others brought: those that were not held, and seconds under an id."""
        began_ns, own_id = self._began_ns, self._own_id()
        if began_ns is None:
            return
        # A database that fell back to an older state lacks what this process itself has signed.
        found = [each for each in stored if each.sequence_id not in self._signed]
        for each in (*found, *disputed):
            if each.originator_id == own_id and each.originator_ns >= began_ns:
                self._find(f"envelope {each.sequence_id}, which this process did not sign")
                return

    def question(self) -> bytes:
        """Return a topic that nobody asked for before: a head of it is signed for this question."""
        topic = bytes([TopicKind.GROUP_MESSAGE]) + os.urandom(32)
        with self._lock:
            self._questions.append(topic)
        return topic

    def signs_head(self, topic: bytes) -> None:
        """Record that this process itself signs a head, before anybody gets it."""
        with self._lock:
            if topic in self._questions and topic not in self._answered:
                self._answered.append(topic)

    def was_answered(self, topic: bytes) -> None:
        """Take that somebody signed a head of a question's topic with this node's key."""
        with self._lock:
            is_own = topic in self._answered
        if not is_own:
            self._find("another process with its key at its URL in the registry")

    def wrote(self, token: str) -> None:
        """Record a token of this process for itself, before it is used."""
        with self._lock:
            self._tokens.append(token)

    def was_shown(self, token: str, issued_at: int) -> None:
        """Take a valid token of this node for itself, issued in seconds since 1970."""
        # An older one may be of the process before this one, and repeated by whoever saw it.
        is_new = issued_at * NANOSECONDS_PER_SECOND > self._started_ns
        with self._lock:
            is_own = token in self._tokens
        if is_new and not is_own:
            self._shown_at = self._steady()
            if not self._is_shown:
                text = "a process with this node's key asks here: stop one of the two"
                log_event(LogEvent("twin_asks", text, level=logging.ERROR))
            self._is_shown = True

    def check(self) -> None:
        """Raise TwinFound where this process must not sign."""
        if self._found is not None:
            expected = "no other process with this node's key"
            raise TwinFound("own key", expected, self._found)

    def wrong(self) -> str | None:
        """Return the sign of a twin in words, or None."""
        if self._found is not None:
            return f"nothing is originated: {self._found}; stop one of the two"
        if self._steady() - self._shown_at <= SHOWN_SECONDS:
            return "another process with this node's key asks here: stop one of the two"
        self._is_shown = False
        return None

    def readiness(self) -> Check:
        """Return the check of ``/readyz``."""
        is_alone = self.wrong() is None
        return Check("twin", is_alone, "none" if is_alone else "found", "none", "")

    def _find(self, sign: str) -> None:
        with self._lock:
            is_new, self._found = self._found is None, self._found or sign
        if is_new:
            text = f"a twin: {sign}; this process originates nothing until it is started again"
            log_event(LogEvent("twin_found", text, level=logging.ERROR))


def question_request(topic: bytes) -> bytes:
    """Return the QueryTopicHeads that asks a question."""
    query = node_api_pb2.TopicHeadQuery(topic=topic)
    return node_api_pb2.QueryTopicHeadsRequest(queries=[query]).SerializeToString()

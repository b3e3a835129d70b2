"""Envelopes of other nodes that name ids which this node has not given yet (§3.3.5).

An honest originator holds all that its payloads name, so the originator of such an envelope lied.
It is reported at once: later this node may give the id, and nobody can see the lie any more. Until
then this node takes no payload of the topic that names the envelope: the two would name each other,
and others could not tell which of the two originators lied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from sqlalchemy import Connection

from chainkit.errors import StoreError
from chainkit.misbehavior.received_batch import Offence
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.received_envelope import ReceivedEnvelope
from chainkit.service.refusals import NotReady
from chainkit_indexer.storage.envelopes import read_last

LOOK_SECONDS: Final = 1.0

MOST_TOPICS: Final = 10_000
"""Topics of one originator on which its envelopes are told apart: with more, payloads of all topics
that name one of its envelopes from the first such one on are refused."""

_ANY_TOPIC: Final = b""


@dataclass(frozen=True, slots=True)
class _Ahead:
    """Envelopes of one originator on one topic that name ids which this node has not given."""

    first_id: int
    """The lowest id of such an envelope."""
    named_id: int
    """The highest id of this node that they name."""

    def __add__(self, other: _Ahead) -> _Ahead:
        named_id = max(self.named_id, other.named_id)
        return _Ahead(min(self.first_id, other.first_id), named_id)


@dataclass(slots=True)
class UngivenIds:
    """For several threads. ``run`` reads what was stored before the start."""

    own_id: Callable[[], int | None]
    """Returns this node's id, None where the registry does not list this node."""
    knows_own: Callable[[], bool]
    """Returns whether all that this node ever signed is held: False after a restored backup."""
    _ahead: dict[int, dict[bytes, _Ahead]] = field(default_factory=dict)
    """By originator and topic."""
    _is_whole: bool = False
    _lock: Lock = field(default_factory=Lock)

    def take(
        self, connection: Connection, received: Sequence[ReceivedEnvelope]
    ) -> tuple[Offence, ...]:
        """Record envelopes in the transaction that stores them; return the offences among them.

        No payload that names one of them can be judged before the transaction ends.
        """
        own_id = self.own_id()
        named = [each for each in received if own_id in each.depends_on]
        if own_id is None or not named:
            return ()
        last = read_last(connection, own_id)
        last_id = 0 if last is None else last[0]
        ahead = [each for each in named if each.depends_on[own_id] > last_id]
        with self._lock:
            for each in ahead:
                self._record(each, each.depends_on[own_id])
        if not self.knows_own():
            return ()
        kind = Misbehavior.CAUSAL_ORDERING
        return tuple(Offence(each.originator_id, kind, (each.envelope,)) for each in ahead)

    def named_on(self, topic: bytes, last_id: int) -> Mapping[int, int]:
        """Return the first id of each originator that no payload of a topic may name yet.

        ``last_id`` is the last id that this node has given.
        """
        found: dict[int, int] = {}
        with self._lock:
            for originator_id, of_topic in list(self._ahead.items()):
                for each in (topic, _ANY_TOPIC):
                    ahead = of_topic.get(each)
                    if ahead is not None and ahead.named_id <= last_id:
                        del of_topic[each]
                    elif ahead is not None:
                        found[originator_id] = min(
                            ahead.first_id, found.get(originator_id, ahead.first_id)
                        )
        return found

    def check(self) -> None:
        """Raise NotReady until ``run`` has read what was stored before the start."""
        if not self._is_whole:
            got = "not yet; try again in a second"
            raise NotReady("node", "the last envelopes of other nodes, read", got)

    async def run(self, recent: Callable[[], Iterable[ReceivedEnvelope]]) -> None:
        """Read the last envelopes of other nodes once; ``recent`` may raise StoreError."""
        while not self._is_whole:
            # The indexer logs that a database is away.
            with suppress(StoreError):
                await asyncio.to_thread(self._take_recent, recent)
            if not self._is_whole:
                await asyncio.sleep(LOOK_SECONDS)

    def _take_recent(self, recent: Callable[[], Iterable[ReceivedEnvelope]]) -> None:
        own_id = self.own_id()
        if own_id is None:
            # This node originates nothing as long as the registry does not list it.
            return
        named = [each for each in recent() if own_id in each.depends_on]
        with self._lock:
            for each in named:
                self._record(each, each.depends_on[own_id])
            self._is_whole = True

    def _record(self, received: ReceivedEnvelope, named_id: int) -> None:
        of_topic = self._ahead.setdefault(received.originator_id, {})
        is_full = received.topic not in of_topic and len(of_topic) >= MOST_TOPICS
        topic = _ANY_TOPIC if is_full else received.topic
        ahead = _Ahead(received.sequence_id, named_id)
        of_topic[topic] = of_topic[topic] + ahead if topic in of_topic else ahead

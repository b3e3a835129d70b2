"""Answers to publishes, until their topics have them: a node may sign and store nothing.

An originator's signature under a sequence id is a promise: each later topic head of the originator
has the envelope. The envelope is kept until it is read back, or a head lists it. A head that denies
the envelope proves that its originator lied, whoever holds the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from chainkit.errors import MalformedData
from chainkit.protocol.envelope import stated_place
from chainkit.types import NANOSECONDS_PER_SECOND, Place, TopicKind
from chainkit_client.reading.verified import Keys, VerifiedEnvelope, read_envelope
from chainkit_client.storage.evidence import forget_promises, keep_promise, read_promises
from chainkit_client.storage.store import Store
from chainkit_client.topics.following import Topic

PROMISE_SECONDS: Final = 86_400
"""How long a promise is kept that nothing settles: nodes of another make have no heads."""


class Promises:
    """The promises of a client's database, and those that this process adds."""

    def __init__(self, store: Store, now_ns: Callable[[], int]) -> None:
        """Take the database and a clock since 1970; nothing is read yet."""
        self._store = store
        self._now_ns = now_ns
        self._open: dict[Place, VerifiedEnvelope] | None = None
        self._asked: Counter[Place] = Counter()

    def keep(self, envelope: VerifiedEnvelope) -> None:
        """Store an answer to a publish, which its originator signed. Raises StoreError."""
        with self._store.writing() as connection:
            keep_promise(connection, envelope, self._now_ns())
        if self._open is not None:
            self._open.setdefault(envelope.place, envelope)

    def of(self, topic: bytes, keys: Keys) -> list[VerifiedEnvelope]:
        """Return the promises on a topic. Raises StoreError."""
        return [each for each in self._promises(keys).values() if each.topic == topic]

    def of_unread_topics(self, keys: Keys, most: int) -> list[VerifiedEnvelope]:
        """Return promises on topics that are not read after a publish, the least returned first.

        Those are all topics but those of groups. Raises StoreError.
        """
        found = [
            each
            for each in self._promises(keys).values()
            if each.topic[0] != TopicKind.GROUP_MESSAGE
        ]
        least = sorted(found, key=lambda each: (self._asked[each.place], each.place))[:most]
        self._asked.update(each.place for each in least)
        return least

    def settle(self, topic: Topic, promised: Sequence[VerifiedEnvelope]) -> None:
        """Forget what a topic was promised and has now, or its heads decided. Raises StoreError."""
        still = set(topic.promised())
        settled = [each.place for each in promised if each.place not in still]
        if settled:
            with self._store.writing() as connection:
                forget_promises(connection, settled)
            for place in settled:
                (self._open or {}).pop(place, None)

    def _promises(self, keys: Keys) -> dict[Place, VerifiedEnvelope]:
        if self._open is None:
            after_ns = self._now_ns() - PROMISE_SECONDS * NANOSECONDS_PER_SECOND
            with self._store.writing() as connection:
                kept = read_promises(connection, after_ns)
            self._open = {}
            for data in kept:
                # An endpoint may answer a registry without the node.
                with suppress(MalformedData):
                    envelope = read_envelope(data, stated_place(data)[0], keys).envelope
                    if envelope is not None:
                        self._open[envelope.place] = envelope
        return self._open

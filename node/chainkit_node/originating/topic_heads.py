"""Signed heads of the topics on which this node originates.

The node's own envelopes on a topic are only ever added to: the entries of those that were pruned
stay. So the hash of the entries read so far is kept, and the next head reads only the newer ones.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection

from chainkit.errors import StoreUnavailable
from chainkit.protocol.topic_heads import (
    MOST_ENTRIES,
    Chain,
    Entry,
    TopicHead,
    entry_of,
    sign_topic_head,
)
from chainkit.signatures import SigningKey
from chainkit_indexer.storage.envelopes import read_topic_log
from chainkit_node.storage.pruned_entries import read_pruned_entries
from chainkit_node.storage.range_digests import read_highest_id

MOST_READ_BYTES: Final = 16 << 20
"""Envelopes that one request reads and hashes: some 0.4 s."""

_MOST_KEPT: Final = 10_000
"""Topics whose hashes are kept: some 4 MB."""
_PAGE: Final = 500
_PAGE_BYTES: Final = 1 << 20
_ENTRY_BYTES: Final = 100
"""Counted for each pruned entry."""


class TopicHeads:
    """Signs heads of topics; for several threads."""

    def __init__(
        self,
        node_id: Callable[[], int],
        key: SigningKey,
        signs: Callable[[bytes], None] = lambda topic: None,
    ) -> None:
        """Take a function of this node's id, which may raise NotReady, and the node's key.

        ``signs`` gets each topic before its head is signed.
        """
        self._node_id = node_id
        self._key = key
        self._signs = signs
        self._chains: OrderedDict[bytes, Chain] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, connection: Connection, most_bytes: int = MOST_READ_BYTES) -> HeadsRequest:
        """Begin to answer a request, within one transaction. Raises NotReady."""
        return HeadsRequest(self, connection, self._node_id(), most_bytes)

    def kept(self, topic: bytes) -> Chain:
        """Return the hash chain that is kept of a topic."""
        with self._lock:
            return self._chains.get(topic, Chain())

    def keep(self, topic: bytes, chain: Chain) -> None:
        """Keep the hash chain of a topic."""
        with self._lock:
            # Another thread may have read more envelopes.
            self._chains[topic] = max(chain, self._chains.get(topic, chain), key=_count)
            self._chains.move_to_end(topic)
            if len(self._chains) > _MOST_KEPT:
                self._chains.popitem(last=False)

    def signed(self, head: TopicHead) -> bytes:
        """Return the SignedTopicHead."""
        self._signs(head.topic)
        return sign_topic_head(head, self._key)


class HeadsRequest:
    """One request: all heads see the same state of the log."""

    def __init__(
        self, heads: TopicHeads, connection: Connection, node_id: int, most_bytes: int
    ) -> None:
        self._heads = heads
        self._connection = connection
        self._node_id = node_id
        self._through = read_highest_id(connection, node_id)
        self._most_bytes = most_bytes
        self._most_entries = MOST_ENTRIES

    def head(self, topic: bytes) -> bytes:
        """Return the SignedTopicHead of a topic.

        Raises StoreUnavailable where too many envelopes are new for one request: the hash of those
        read is kept.
        """
        chain = self._heads.kept(topic)
        while entries := self._entries(topic, chain.last_id, _PAGE):
            chain = chain.extended(entries)
            self._heads.keep(topic, chain)
        # A request that began later may have read on: its envelopes are in the head, so the head
        # must not say that the log ends before them.
        through = max(self._through, chain.last_id)
        return self._heads.signed(TopicHead(self._node_id, topic, through, chain))

    def entries(self, topic: bytes, after: int) -> list[Entry]:
        """Return the next entries of a topic behind an id; MOST_ENTRIES in one request."""
        if not self._most_entries:
            return []
        entries = self._entries(topic, after, self._most_entries)
        self._most_entries -= len(entries)
        return entries

    def _entries(self, topic: bytes, after: int, limit: int) -> list[Entry]:
        if self._most_bytes <= 0:
            raise StoreUnavailable("topic heads", "known envelopes", "many new ones; ask again")
        place = self._connection, topic, self._node_id, after, limit
        rows, pruned = read_topic_log(*place, _PAGE_BYTES), read_pruned_entries(*place)
        size = sum(len(row.envelope) for row in rows)
        self._most_bytes -= size + _ENTRY_BYTES * len(pruned)
        if size > _PAGE_BYTES:
            # The rows were cut: those behind come before the pruned ones behind.
            pruned = [each for each in pruned if each.sequence_id < rows[-1].sequence_id]
        # Entries are stored before their envelopes are deleted: some come from both.
        found = {each.sequence_id: each for each in pruned}
        found |= {row.sequence_id: entry_of(row.envelope) for row in rows}
        return sorted(found.values())[:limit]


def _count(chain: Chain) -> int:
    return chain.count

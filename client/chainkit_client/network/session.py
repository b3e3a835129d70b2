"""A client's connections: nodes, registry, chain and gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

from chainkit.misbehavior.types import Misbehavior
from chainkit.nodes.connection import NodeConnection, NodeEntry
from chainkit.nodes.gateway import Gateway
from chainkit.nodes.pool import Nodes
from chainkit.types import Node
from chainkit_client.breach import Breach
from chainkit_client.network.chain import Chain
from chainkit_client.network.chain_status import ChainStatus, Found
from chainkit_client.network.publisher import GatewayPublisher
from chainkit_client.network.signers import signing_node
from chainkit_client.network.topic_reader import TopicReader
from chainkit_client.reading.verified import Keys, VerifiedEnvelope
from chainkit_client.storage.evidence import keep_breaches
from chainkit_client.storage.store import Store
from chainkit_client.topics.following import PATIENCE_SECONDS, Followed, Topic

MOST_READS: Final = 4
"""How often one topic is read, each time without the payloads that the chain lacks."""

_PAUSE_SECONDS: Final = 0.25

REGISTRY_SECONDS: Final = 10.0
"""How long the registry and the head of the chain stay valid."""


class NetworkSession:
    """The connections of one event loop, used between ``refresh`` and ``close``."""

    def __init__(
        self,
        chain: Chain,
        gateway: Gateway,
        store: Store,
        now_ns: Callable[[], int] = time.time_ns,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the chain, the gateway, the store of evidence, and clocks; nothing is asked yet."""
        self.chain = chain
        self.gateway = gateway
        self.nodes = Nodes({})
        self.now_ns = now_ns
        self._store = store
        self._clock = clock
        self._keys = Keys({}, chain.originator_ids, chain.sparse_ids)
        self._registered: dict[int, Node] = {}
        self._read_at = float("-inf")
        self.publisher = GatewayPublisher(gateway, lambda: self._keys, now_ns, self.keep)

    async def refresh(self) -> None:
        """Read the registry and the head again after REGISTRY_SECONDS.

        Raises ChainError, and ConfigurationError where no node is enabled.
        """
        if self._clock() - self._read_at < REGISTRY_SECONDS:
            return
        _, nodes = await asyncio.to_thread(self.chain.read_nodes)
        self._registered = {each.node_id: each for each in nodes}
        self._keys = Keys(
            {each.node_id: each.signing_key for each in nodes},
            self.chain.originator_ids,
            self.chain.sparse_ids,
        )
        await self.nodes.update(
            {
                each.node_id: NodeEntry(each.http_address, each.signing_key)
                for each in nodes
                if each.is_enabled
            }
        )
        self._read_at = self._clock()

    @property
    def keys(self) -> Keys:
        """The registry's keys at the last refresh."""
        return self._keys

    def nodes_for(self, topic: bytes) -> Sequence[NodeConnection]:
        """Return the enabled nodes in the order in which a topic prefers them (C15)."""
        return self.nodes.for_topic(topic)

    def reader(self, topic: Topic) -> TopicReader:
        """Return a reader of a topic."""
        return TopicReader(
            topic, lambda: self.nodes_for(topic.topic), lambda: self._keys, self.now_ns
        )

    async def read_topic(self, topic: bytes) -> list[VerifiedEnvelope]:
        """Return a whole topic in its order, without copies and payloads that the chain lacks.

        Where the chain lacks a served payload, the topic is read again without that payload:
        another node may serve another payload in its place. Raises NodesSilent, and ChainError.
        """
        doubted: set[bytes] = set()
        envelopes: list[VerifiedEnvelope] = []
        for _ in range(MOST_READS):
            found = await self._read_whole(Topic(topic, doubted=frozenset(doubted)))
            envelopes = [each.envelope for each in found.applied if not each.is_copy]
            served = (*envelopes, *(each.served for each in found.conflicts))
            new = [each.digest for each in served if not await self.is_confirmed(each)]
            if not new:
                break
            doubted.update(new)
        return [each for each in envelopes if each.digest not in doubted]

    async def _read_whole(self, topic: Topic) -> Followed:
        """Read a topic until all is here that heads of its originators name, or is given up."""
        reader, whole = self.reader(topic), Followed()
        deadline = self._clock() + 2 * PATIENCE_SECONDS
        while True:
            found = await reader.read()
            self.keep(found.breaches)
            whole.add(found)
            if not topic.lacks_of_heads or self._clock() > deadline:
                return whole
            await asyncio.sleep(_PAUSE_SECONDS)

    async def is_confirmed(self, envelope: VerifiedEnvelope) -> bool:
        """Return whether an envelope is a node's own, or the chain has it."""
        return envelope.transaction_hash is None or (
            (await self.find(envelope)).status is ChainStatus.CONFIRMED
        )

    async def find(self, envelope: VerifiedEnvelope) -> Found:
        """Look up a payload on the chain (C10); store evidence where its node vouched falsely.

        Raises ChainError.
        """
        node_id = self.server_of(envelope.envelope)
        if node_id is None or envelope.transaction_hash is None:
            return Found(ChainStatus.ABSENT)
        head = (await asyncio.to_thread(self.chain.endpoint.head)).reference
        node = self._registered[node_id]
        found = await asyncio.to_thread(
            self.chain.find, node, head, envelope.envelope, envelope.transaction_hash
        )
        if found.status is ChainStatus.FALSE:
            self.keep([_not_of_chain(node_id, envelope)])
        return found

    def server_of(self, envelope: bytes) -> int | None:
        """Return the node that signed an OriginatorEnvelope, None where no registered one did."""
        return signing_node(envelope, self._keys)

    def keep(self, breaches: Sequence[Breach]) -> None:
        """Store broken rules, each once. Raises StoreError."""
        if breaches:
            with self._store.writing() as connection:
                keep_breaches(connection, breaches, self.now_ns())

    async def close(self) -> None:
        """End all connections."""
        await self.nodes.close()
        await self.gateway.close()


def _not_of_chain(node_id: int, envelope: VerifiedEnvelope) -> Breach:
    kind = Misbehavior.BLOCKCHAIN_INCONSISTENCY
    reason = f"payload {envelope.sequence_id} is not the chain's"
    return Breach(node_id, kind, reason, (envelope.envelope,))

"""A client's connections: nodes, registry, chain and gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from chainkit.misbehavior.types import Misbehavior
from chainkit.nodes.connection import NodeConnection, NodeEntry
from chainkit.nodes.gateway import Gateway
from chainkit.nodes.pool import Nodes
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.types import BlockReference, Node
from chainkit_client.breach import Breach
from chainkit_client.network.chain import Chain
from chainkit_client.network.chain_status import ChainStatus, Found
from chainkit_client.network.posted import PostedUpdates
from chainkit_client.network.promises import Promises
from chainkit_client.network.proved import ProvedNodes
from chainkit_client.network.publisher import GatewayPublisher
from chainkit_client.network.signers import signing_node
from chainkit_client.network.topic_reader import ROUND_SECONDS, TopicReader
from chainkit_client.reading.verified import Keys, VerifiedEnvelope
from chainkit_client.storage.evidence import keep_breaches, keep_unknown, read_breaches
from chainkit_client.storage.store import Store
from chainkit_client.topics.following import PATIENCE_SECONDS, Applied, Followed, Topic

MOST_ASKED: Final = 10
"""Answers to publishes on topics that are not read, of which originators are asked at a time."""

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
        self.posted = PostedUpdates(chain, store, now_ns)
        self._store = store
        self._clock = clock
        self._keys = Keys({}, chain.originator_ids, chain.sparse_ids)
        self._registered: dict[int, Node] = {}
        self._read_at = float("-inf")
        self._proved = ProvedNodes()
        self._has_judged = False
        self._promises = Promises(store, now_ns)
        self.publisher = GatewayPublisher(
            gateway, lambda: self._keys, now_ns, self.keep, self._promises.keep
        )

    async def refresh(self) -> None:
        """Read the registry and the head again after REGISTRY_SECONDS.

        Raises ChainError, and ConfigurationError where no node is enabled.
        """
        if self._clock() - self._read_at < REGISTRY_SECONDS:
            return
        head, nodes = await asyncio.to_thread(self.chain.read_nodes)
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
        if not self._has_judged:
            await self._judge_kept(head)
            self._has_judged = True
        self._read_at = self._clock()

    @property
    def keys(self) -> Keys:
        """The registry's keys at the last refresh."""
        return self._keys

    def nodes_for(self, topic: bytes) -> Sequence[NodeConnection]:
        """Return the enabled nodes in the order in which a topic prefers them (C15)."""
        return self.nodes.for_topic(topic)

    def reader(
        self, topic: Topic, at_once: int = 2, round_seconds: float = ROUND_SECONDS
    ) -> TopicReader:
        """Return a reader of a topic, which asks so many nodes for all that is new."""
        return TopicReader(
            topic,
            lambda: self.nodes_for(topic.topic),
            lambda: self._keys,
            self.now_ns,
            at_once,
            self._proved,
            round_seconds,
        )

    async def read(self, reader: TopicReader) -> Followed:
        """Do one round of a topic, and store broken rules. Raises NodesSilent, and StoreError."""
        promised = self._promises.of(reader.topic.topic, self._keys)
        reader.topic.promise(promised)
        found = await reader.read()
        self.keep(found.breaches)
        self._promises.settle(reader.topic, promised)
        return found

    async def ask_for_promised(self) -> None:
        """Ask originators whether topics that are not read have what was published to them.

        Raises StoreError.
        """
        promises = self._promises.of_unread_topics(self._keys, MOST_ASKED)
        await asyncio.gather(*map(self._ask_for, promises))

    async def _ask_for(self, promise: VerifiedEnvelope) -> None:
        node = self.nodes.node(promise.originator_id)
        if node is not None:
            reader = self.reader(Topic(promise.topic))
            reader.topic.promise([promise])
            self.keep((await reader.ask_head(node)).breaches)
            self._promises.settle(reader.topic, [promise])

    async def read_topic(self, topic: bytes) -> list[VerifiedEnvelope]:
        """Return a whole topic of nodes in its order, without copies.

        All is there that heads of its originators name, or was given up. Raises NodesSilent.
        """
        reader, applied = self.reader(Topic(topic)), list[Applied]()
        deadline = self._clock() + 2 * PATIENCE_SECONDS
        while True:
            applied += (await self.read(reader)).applied
            if not reader.topic.lacks_of_heads or self._clock() > deadline:
                return [each.envelope for each in applied if not each.is_copy]
            await asyncio.sleep(_PAUSE_SECONDS)

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
            self._proved.add(node_id)
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
            self._proved.judge(breaches, self._keys)

    def keep_unknown(self, envelopes: Iterable[VerifiedEnvelope]) -> None:
        """Store payloads that the chain does not have, by the node that vouched for each.

        Raises StoreError.
        """
        by_node: dict[int, list[bytes]] = {}
        for each in envelopes:
            if (node_id := self.server_of(each.envelope)) is not None:
                by_node.setdefault(node_id, []).append(each.envelope)
        if by_node:
            with self._store.writing() as connection:
                for node_id, payloads in by_node.items():
                    keep_unknown(connection, node_id, payloads, self.now_ns())

    async def _judge_kept(self, head: BlockReference) -> None:
        """Find the nodes against which an earlier process has stored a proof."""
        with self._store.reading() as connection:
            kept = read_breaches(connection)

        def is_false(node_id: int, envelope: bytes) -> bool:
            transaction_hash = parse_originator_envelope(envelope).transaction_hash
            node = self._registered[node_id]
            found = self.chain.find(node, head, envelope, transaction_hash)
            return found.status is ChainStatus.FALSE

        await asyncio.to_thread(self._proved.judge_kept, kept, self._keys, is_false)

    async def close(self) -> None:
        """End all connections."""
        await self.nodes.close()
        await self.gateway.close()


def _not_of_chain(node_id: int, envelope: VerifiedEnvelope) -> Breach:
    kind = Misbehavior.BLOCKCHAIN_INCONSISTENCY
    reason = f"payload {envelope.sequence_id} is not the chain's"
    return Breach(node_id, kind, reason, (envelope.envelope,))

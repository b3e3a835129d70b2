"""A gateway: the product's handlers, publisher and journal, over simulated nodes and a chain."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chainkit.errors import EndpointUnavailable
from chainkit.nodes.connection import signer_of
from chainkit.nodes.outcomes import NodeLost, NodeUnreached
from chainkit.protocol.envelope import parse_originator_envelope, stated_place
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.proto.envelopes_pb2 import OriginatorEnvelope
from chainkit.protocol.proto.payer_api_pb2 import PublishClientEnvelopesRequest
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.service.grpc_methods import Caller
from chainkit.types import Place
from chainkit_gateway.clients import Clients, RateLimits
from chainkit_gateway.handlers import PayerHandlers
from chainkit_gateway.journal import Journal
from chainkit_gateway.publishing import Payer, Publisher
from chainkit_gateway.retention import RetentionPolicy
from chainkit_gateway.types import Mined, Publication, Sent
from support.client.stories.link import over_link
from support.client.stories.nodes import SimulatedNode
from support.client.stories.story_chain import transaction_of
from support.publishes import PAYER

if TYPE_CHECKING:
    from support.client.stories.story import Story

PAGE = 100


class Gateway:
    """One for all clients."""

    def __init__(self, story: Story, path: Path) -> None:
        self._story = story
        self._journal = Journal.open(path)
        nodes = _Nodes({each.node_id: _Node(story, each) for each in story.nodes}, story)
        publisher = Publisher(Payer(PAYER, nodes, _ChainWay(story, self._journal), self._journal))
        limits = RateLimits(envelopes_per_second=10**6, burst=10**6, bytes_per_second=10**9)
        clients = Clients(None, limits, lambda: story.now)
        self._handlers = PayerHandlers(nodes, publisher, clients, RetentionPolicy())

    async def publish(
        self, client_envelopes: Sequence[bytes], seconds: float, retention_days: int | None = None
    ) -> Sequence[bytes]:
        """As ``nodes.gateway.Gateway``: whatever it answers, the payload may have arrived."""
        request = PublishClientEnvelopesRequest(
            envelopes=client_envelopes, retention_days=retention_days
        ).SerializeToString()
        caller = Caller("ipv4:127.0.0.1:1", seconds=seconds)
        for each in client_envelopes:
            self._story.note_author(each)
        answer = await over_link(
            self._story,
            "gateway",
            lambda: self._handlers.publish_client_envelopes(request, caller),
            seconds,
        )
        return Envelopes.FromString(answer).envelopes

    def shut(self) -> None:
        """Close the journal."""
        self._journal.close()

    async def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class _Node:
    """A node, for the gateway."""

    story: Story
    node: SimulatedNode

    @property
    def node_id(self) -> int:
        return self.node.node_id

    async def publish(self, payer_envelope: bytes, seconds: float) -> bytes:
        async def ask() -> bytes:
            if self.node.is_down:
                raise NodeUnreached(f"node {self.node_id}", "a connection", "none")
            return self.node.originate(payer_envelope)

        return await over_link(self.story, f"node {self.node_id}", ask, seconds)

    async def behind(
        self, topic: bytes, cursor: Mapping[int, int], seconds: float
    ) -> Sequence[bytes]:
        query = message_api_pb2.EnvelopesQuery(
            topics=[topic], last_seen={"node_id_to_sequence_id": dict(cursor)}
        )
        request = message_api_pb2.QueryEnvelopesRequest(query=query, limit=PAGE)
        return await self.node.served(request)

    def has_signed(self, envelope: bytes) -> bool:
        return signer_of(envelope) == self.node.key.public_key

    async def indexed(
        self, topic: bytes, place: Place, transaction_hash: bytes, seconds: float
    ) -> bytes:
        originator_id, sequence_id = place
        end = self.story.now + seconds
        while self.story.now < end:
            try:
                page = await self.behind(topic, {originator_id: sequence_id - 1}, seconds)
            except NodeUnreached as error:
                raise NodeLost(f"stream of node {self.node_id}", "a payload", error) from error
            for envelope in page:
                is_of_chain = stated_place(envelope)[0] == originator_id
                if (
                    is_of_chain
                    and parse_originator_envelope(envelope).transaction_hash == transaction_hash
                ):
                    return envelope
            await asyncio.sleep(2)
        raise NodeLost(f"stream of node {self.node_id}", f"payload {sequence_id}", "its end")


@dataclass(frozen=True)
class _Nodes:
    nodes: Mapping[int, _Node]
    story: Story

    @property
    def urls(self) -> Mapping[int, str]:
        return {each: f"http://node-{each}.test" for each in self.nodes}

    def for_topic(self, topic: bytes) -> Sequence[_Node]:
        """In any order: so all nodes originate, as where there are several gateways."""
        nodes = list(self.nodes.values())
        self.story.random.shuffle(nodes)
        return nodes

    def node(self, node_id: int) -> _Node | None:
        return self.nodes.get(node_id)

    def __iter__(self) -> Iterator[_Node]:
        return iter(self.nodes.values())


@dataclass(frozen=True)
class _ChainWay:
    """As ``ChainPublisher``, but it does not wait: a payload that is not mined yet is an error."""

    story: Story
    journal: Journal

    def publish(self, publication: Publication) -> Mined:
        data, chain = publication.client_envelope, self.story.chain
        hash_ = transaction_of(data)
        for block in chain.blocks:
            if data in block.payloads:
                place = block.payloads.index(data)
                unsigned = block.unsigned(place, data)
                envelope = OriginatorEnvelope(unsigned_originator_envelope=unsigned)
                envelope.blockchain_proof.transaction_hash = hash_
                written = envelope.SerializeToString()
                return Mined(hash_, block.first_id + place, block.header.reference, written)
        if not self.journal.transactions_of(publication.digest):
            nonce, now = self.journal.next_nonce(), self.story.now_ns
            sent = Sent(hash_, publication.digest, nonce, b"raw", now, 1, 1, 1)
            self.journal.add_transaction(publication, sent)
        if data not in chain.pool:
            chain.pool.append(data)
        raise EndpointUnavailable("chain", "a block with the payload", "none yet")

"""Publishes each envelope once: on the chain, or through the first node that accepts it.

Today's clients send the same bytes again after any error. The digest names a ClientEnvelope: a
request waits for an envelope that is being published, gets the first answer again for a published
envelope, and looks for an envelope of unknown outcome before sending it again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

import grpc
from google.protobuf.message import DecodeError

from chainkit.errors import ChainError, ConfigurationError, MalformedEnvelope, MalformedLog
from chainkit.nodes.outcomes import NodeLost, NodeUnreached
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.payer_envelope import parse_payer_envelope, sign_payer_envelope
from chainkit.protocol.proto.envelopes_pb2 import OriginatorEnvelope, UnsignedOriginatorEnvelope
from chainkit.service.refusals import NotReady, PassedOn
from chainkit.signatures import SigningKey
from chainkit.types import TopicKind
from chainkit_gateway.chain_publisher import Mined
from chainkit_gateway.inbox_rules import check_update
from chainkit_gateway.journal import Begun, Journal
from chainkit_gateway.types import Publication

NODE_SECONDS: Final = 10.0
"""How long a node may take to answer, or to index a mined payload."""

CHAIN_THREADS: Final = 64
"""Payloads that wait for the chain at one time; more payloads queue."""

_SEND_AGAIN: Final = "send the same bytes again"
_UNSIGNED: Final = "one that the registered key did not sign"


class Node(Protocol):
    """A node's methods, as ``NodeConnection`` has them."""

    @property
    def node_id(self) -> int:
        """The node's id in the registry."""
        ...

    async def publish(self, payer_envelope: bytes, seconds: float) -> bytes:
        """Return the OriginatorEnvelope."""
        ...

    async def behind(
        self, topic: bytes, cursor: Mapping[int, int], seconds: float
    ) -> Sequence[bytes]:
        """Return a page of a topic."""
        ...

    def has_signed(self, envelope: bytes) -> bool:
        """Return whether the node's registered key signed an envelope."""
        ...

    async def indexed(
        self, topic: bytes, sequence_id: int, transaction_hash: bytes, seconds: float
    ) -> bytes:
        """Return a payload of the chain once the node serves it."""
        ...


class NodeList(Protocol):
    """The nodes, as ``Nodes`` knows them."""

    @property
    def urls(self) -> Mapping[int, str]:
        """The URLs by node id."""
        ...

    def for_topic(self, topic: bytes) -> Sequence[Node]:
        """Return the nodes in a topic's order of preference."""
        ...

    def node(self, node_id: int) -> Node | None:
        """Return a node by id, or None."""
        ...

    def __iter__(self) -> Iterator[Node]:
        """Yield all nodes."""
        ...


class Chain(Protocol):
    """The part of ``ChainPublisher`` that is used."""

    def publish(self, publication: Publication) -> Mined:
        """Publish a payload, and wait until it is mined."""
        ...


@dataclass(frozen=True, slots=True)
class Payer:
    """The payer's key, nodes, chain and journal."""

    key: SigningKey
    nodes: NodeList
    chain: Chain
    journal: Journal


class Publisher:
    """Publishes; made and used on the event loop's thread."""

    def __init__(self, payer: Payer) -> None:
        """Take the payer."""
        self._payer = payer
        self._under_way: dict[bytes, asyncio.Task[bytes]] = {}
        self._newest: dict[int, int] = {}
        # A pool of its own: in the shared pool, other work would wait for the chain.
        self._waiting_for_chain = ThreadPoolExecutor(CHAIN_THREADS, "chain")

    async def publish(self, publication: Publication) -> bytes:
        """Publish once, and return the OriginatorEnvelope, the same for each repetition.

        Raises a Refusal.
        """
        digest = publication.digest
        task = self._under_way.get(digest)
        if task is None:
            task = asyncio.create_task(self._published(publication))
            self._under_way[digest] = task
            task.add_done_callback(lambda _: self._under_way.pop(digest, None))
        # A client that disconnects ends its own wait, not the publication.
        return await asyncio.shield(task)

    async def _published(self, publication: Publication) -> bytes:
        journal = self._payer.journal
        begun = await asyncio.to_thread(journal.find, publication.digest)
        if publication.is_for_chain:
            if begun is None:
                await self._check(publication)
            # A reorg may have dropped the answered payload: ask the chain again.
            envelope = await self._by_chain(publication)
        elif begun is not None and begun.envelope is not None:
            return begun.envelope
        else:
            envelope = await self._by_nodes(publication, begun)
        await asyncio.to_thread(journal.complete, publication.digest, envelope)
        return envelope

    async def _check(self, publication: Publication) -> None:
        """Refuse a payload that nodes would not serve, before it is paid for."""
        if publication.kind is TopicKind.IDENTITY_UPDATE:
            nodes = self._payer.nodes.for_topic(publication.topic)
            await check_update(publication, [each.behind for each in nodes], NODE_SECONDS)

    async def _by_chain(self, publication: Publication) -> bytes:
        """Publish a payload on the chain; answer once a node serves it."""
        loop = asyncio.get_running_loop()
        try:
            mined = await loop.run_in_executor(
                self._waiting_for_chain, self._payer.chain.publish, publication
            )
        except (ChainError, ConfigurationError, MalformedLog) as error:
            raise NotReady("chain", "the payload in a block", error) from error
        topic, hash_ = publication.topic, mined.transaction_hash
        sequence_id = mined.sequence_id
        nodes = list(self._payer.nodes)
        waits = [node.indexed(topic, sequence_id, hash_, NODE_SECONDS) for node in nodes]
        answers = await asyncio.gather(*waits, return_exceptions=True)
        got: object = "no node"
        for node, answer in zip(nodes, answers, strict=True):
            if isinstance(answer, bytes) and node.has_signed(answer):
                return answer
            got = _UNSIGNED if isinstance(answer, bytes) else answer
        raise NotReady("nodes", f"payload {sequence_id} of the chain to be served", got)

    async def _by_nodes(self, publication: Publication, begun: Begun | None) -> bytes:
        nodes = list(self._payer.nodes.for_topic(publication.topic))
        asked = None if begun is None or begun.node_id is None else begun.node_id
        node = None if asked is None else self._payer.nodes.node(asked)
        if begun is not None and node is not None:
            found = await self._found(publication, node, begun.behind_sequence_id or 0)
            if found is not None:
                return found
            # This node lost an answer before: ask the following nodes first.
            place = [each.node_id for each in nodes].index(node.node_id) + 1
            nodes = nodes[place:] + nodes[:place]
        return await self._by_first_node(publication, nodes)

    async def _by_first_node(self, publication: Publication, nodes: Sequence[Node]) -> bytes:
        got: object = "no node"
        for node in nodes:
            try:
                return await self._by_node(publication, node)
            except NodeLost as lost:
                # The node may have stored the envelope: the next try looks for it at this node.
                raise NotReady("node", "an answer", f"none yet: {lost}", _SEND_AGAIN) from lost
            except PassedOn as refusal:
                await self._forget(publication)
                if refusal.code is not grpc.StatusCode.UNAVAILABLE:
                    raise
                got = refusal
            except NodeUnreached as unreached:
                await self._forget(publication)
                got = unreached
        raise NotReady("nodes", "one that takes the payload", got)

    async def _by_node(self, publication: Publication, node: Node) -> bytes:
        begin, node_id = self._payer.journal.begin_at_node, node.node_id
        behind = self._newest.get(node_id, 0)
        await asyncio.to_thread(begin, publication, time.time_ns(), node_id, behind)
        envelope = sign_payer_envelope(publication.client_envelope, node_id, self._payer.key)
        answer = await node.publish(envelope, NODE_SECONDS)
        if not _is_of(answer, node_id, publication):
            raise NodeLost(f"node {node_id}", "the envelope of what it was sent", "another")
        if not node.has_signed(answer):
            raise NodeLost(f"node {node_id}", "an envelope that it has signed", _UNSIGNED)
        self._newest[node_id] = max(_place(answer)[1], self._newest.get(node_id, 0))
        return answer

    async def _found(self, publication: Publication, node: Node, behind: int) -> bytes | None:
        """Look for an envelope that a node may have stored although the answer was lost."""
        cursor = {node.node_id: behind}
        try:
            while page := await node.behind(publication.topic, dict(cursor), NODE_SECONDS):
                for envelope in page:
                    is_it = _is_of(envelope, node.node_id, publication)
                    if is_it and node.has_signed(envelope):
                        return envelope
                # Skip other originators' envelopes of the topic, which would fill each page again.
                before = dict(cursor)
                for originator_id, sequence_id in map(_place, page):
                    cursor[originator_id] = max(cursor.get(originator_id, 0), sequence_id)
                if cursor == before:
                    raise NodeLost(f"node {node.node_id}", "envelopes behind a cursor", "others")
        except (NodeLost, NodeUnreached, PassedOn) as error:
            raise NotReady("node", "to be asked for the payload", error, _SEND_AGAIN) from error
        return None

    async def _forget(self, publication: Publication) -> None:
        await asyncio.to_thread(self._payer.journal.forget, publication.digest)


def _is_of(envelope: bytes, node_id: int, publication: Publication) -> bool:
    """Return whether a node originated this envelope, with this payload."""
    try:
        stored = parse_originated(envelope).envelope
        payload = parse_payer_envelope(stored.payer_envelope).client_envelope
    except MalformedEnvelope:
        # An envelope of the chain, on the same topic.
        return False
    return stored.originator_id == node_id and payload == publication.client_envelope


def _place(envelope: bytes) -> tuple[int, int]:
    """Return the originator and sequence id that any OriginatorEnvelope states."""
    signed, unsigned = OriginatorEnvelope(), UnsignedOriginatorEnvelope()
    try:
        signed.ParseFromString(envelope)
        unsigned.ParseFromString(signed.unsigned_originator_envelope)
    except DecodeError as error:
        raise NodeLost("envelope", "an OriginatorEnvelope", error) from error
    return unsigned.originator_node_id, unsigned.originator_sequence_id

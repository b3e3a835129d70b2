"""Publishes each envelope once: on the chain, or through the first node that accepts it.

Today's clients send the same bytes again after any error. The digest names a ClientEnvelope: a
request waits for an envelope that is being published, gets the first answer again for a published
envelope, and looks for an envelope of unknown outcome before sending it again.

A client takes an error for "not published", and encrypts a commit anew. So the gateway waits until
the caller's deadline once a transaction was sent: for its block, and then for a node that serves
the payload. Where no node does, the answer names the payload's place on the chain (ADR 46).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
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
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.refusals import NotReady, PassedOn, Unfinished
from chainkit.signatures import SigningKey
from chainkit.types import TopicKind
from chainkit_gateway.inbox_rules import check_update
from chainkit_gateway.journal import AtNode, Begun, Journal
from chainkit_gateway.payer_account import is_reverted
from chainkit_gateway.serving import TURN_SECONDS, served_envelope
from chainkit_gateway.together import Together
from chainkit_gateway.types import Mined, Node, NodeList, Publication, Published

NODE_SECONDS: Final = 10.0
"""How long a node may take to answer, or to serve a payload before the chain is asked again."""

CHAIN_THREADS: Final = 64
"""Payloads that wait for the chain at one time; more payloads queue."""

_SEND_AGAIN: Final = "send the same bytes again"
_UNSIGNED: Final = "one that the registered key did not sign"
_OF_ONE_NODE: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAUTHENTICATED)
"""Refusals after which another node may take the payload: one originates nothing now, or nothing of
this payer."""


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
        self._find = Together(payer.journal.find_all)
        self._begin: Together[AtNode, None] = Together(payer.journal.begin_at_nodes)
        self._complete: Together[tuple[bytes, bytes], None] = Together(payer.journal.complete_all)
        self._under_way: dict[bytes, asyncio.Task[Mined | Published]] = {}
        self._newest: dict[int, int] = {}
        # A pool of its own: in the shared pool, other work would wait for the chain.
        self._waiting_for_chain = ThreadPoolExecutor(CHAIN_THREADS, "chain")

    async def place(self, publication: Publication, deadline: float) -> Mined | Published:
        """Publish once, and return a payload's place on the chain, or an envelope's answer.

        The next payload of a topic may be sent after that. The next identity update is judged by
        the updates that nodes serve: an identity update has its place once a node serves it.
        Raises a Refusal: Unfinished at the deadline.
        """
        place = await self._placed(publication, deadline)
        if publication.kind is TopicKind.IDENTITY_UPDATE:
            return await self.answer(publication, place, deadline)
        return place

    async def answer(
        self, publication: Publication, place: Mined | Published, deadline: float
    ) -> Published:
        """Return the envelope as a node serves it, the same for each repetition.

        At the deadline, a payload in a block is answered with its place alone. Raises a Refusal
        where a reorg took the payload out of its block and the contract no longer takes it.
        """
        of_all = True
        while not isinstance(place, Published):
            mined = place
            until = min(deadline, _now() + NODE_SECONDS)
            nodes, topic = self._payer.nodes, publication.topic
            envelope = await served_envelope(nodes, topic, mined, until, of_all=of_all)
            of_all = False
            if envelope is not None:
                return Published(envelope)
            if until == deadline:
                return _unserved(mined)
            try:
                # A reorg may have moved the payload meanwhile.
                place = await self._placed(publication, deadline)
            except Unfinished:
                return _unserved(mined)
        return place

    async def _placed(self, publication: Publication, deadline: float) -> Mined | Published:
        """Wait for a publication's place; a sent transaction is waited for until the deadline."""
        while _now() < deadline:
            try:
                async with asyncio.timeout_at(deadline):
                    return await self._once(publication)
            except TimeoutError:
                break
            except (ChainError, ConfigurationError, MalformedLog) as error:
                if not await self._is_sent(publication):
                    raise NotReady("chain", "the payload in a block", error) from error
            await asyncio.sleep(TURN_SECONDS)
        is_sent = await self._is_sent(publication)
        got = "was sent and is not mined so far" if is_sent else "is under way"
        raise Unfinished("payload", None, got, _SEND_AGAIN)

    async def _once(self, publication: Publication) -> Mined | Published:
        digest = publication.digest
        task = self._under_way.get(digest)
        if task is None:
            way = self._by_chain if publication.is_for_chain else self._by_node_or_journal
            task = asyncio.create_task(way(publication))
            self._under_way[digest] = task
            task.add_done_callback(lambda done: self._end(digest, done))
        # A client that disconnects ends its own wait, not the publication.
        return await asyncio.shield(task)

    def _end(self, digest: bytes, done: asyncio.Task[Mined | Published]) -> None:
        del self._under_way[digest]
        if not done.cancelled():
            # Nobody else looks at the error where all callers have left: asyncio would log it.
            done.exception()

    async def _is_sent(self, publication: Publication) -> bool:
        """Return whether a transaction was journalled, which is sent until it is mined."""
        sent = await asyncio.to_thread(self._payer.journal.transactions_of, publication.digest)
        return bool(sent) and not is_reverted(sent)

    async def _by_chain(self, publication: Publication) -> Mined | Published:
        """Publish a payload on the chain. A reorg may drop a mined payload: ask the chain again."""
        begun = await self._find(publication.digest)
        if begun is None and publication.kind is TopicKind.IDENTITY_UPDATE:
            # Refuse an update that nodes would not serve, before it is paid for.
            nodes = self._payer.nodes.for_topic(publication.topic)
            await check_update(publication, [each.behind for each in nodes], NODE_SECONDS)
        loop, publish = asyncio.get_running_loop(), self._payer.chain.publish
        return await loop.run_in_executor(self._waiting_for_chain, publish, publication)

    async def _by_node_or_journal(self, publication: Publication) -> Mined | Published:
        begun = await self._find(publication.digest)
        if begun is not None and begun.envelope is not None:
            return Published(begun.envelope)
        envelope = await self._by_nodes(publication, begun)
        await self._complete((publication.digest, envelope))
        return Published(envelope)

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
                if refusal.code not in _OF_ONE_NODE:
                    raise
                got = refusal
            except NodeUnreached as unreached:
                await self._forget(publication)
                got = unreached
        raise NotReady("nodes", "one that takes the payload", got)

    async def _by_node(self, publication: Publication, node: Node) -> bytes:
        node_id = node.node_id
        behind = self._newest.get(node_id, 0)
        await self._begin(AtNode(publication, time.time_ns(), node_id, behind))
        envelope = sign_payer_envelope(
            publication.client_envelope, node_id, self._payer.key, publication.retention_days
        )
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


def _now() -> float:
    return asyncio.get_running_loop().time()


def _unserved(mined: Mined) -> Published:
    """Return the answer for a payload in a block that no node serves: it is published."""
    hash_ = f"0x{mined.transaction_hash.hex()}"
    text = (
        f"payload {mined.sequence_id} of the chain is published by transaction {hash_} in block "
        f"{mined.block}, and served by no node yet"
    )
    facts = {"sequence_id": mined.sequence_id, "transaction": hash_, "block": mined.block.number}
    log_event(LogEvent("payload_unserved", text, facts, level=logging.WARNING))
    return Published(mined.envelope, is_served=False)


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

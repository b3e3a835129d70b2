"""PublishClientEnvelopes: signs, pays, chooses where each envelope goes, and publishes it once.

Today's clients send the same bytes again after any error. The digest of a ClientEnvelope is its
name: an envelope that is on its way is waited for, one that was published is answered again, and
one whose outcome is unknown is looked for before it is sent again.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

import grpc

from chainkit.errors import ChainError
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.payer_envelope import parse_payer_envelope, sign_payer_envelope
from chainkit.protocol.proto.payer_api_pb2 import (
    GetNodesResponse,
    PublishClientEnvelopesRequest,
)
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.protocol.publish_rules.refusal import PublishRefused
from chainkit.service.refusals import InvalidRequest, NotReady, Refusal
from chainkit.signatures import SigningKey
from chainkit_gateway.chain_publisher import ChainPublisher
from chainkit_gateway.journal import Journal
from chainkit_gateway.nodes import NodeConnection, Nodes
from chainkit_gateway.routing import route
from chainkit_gateway.types import Publication

NODE_SECONDS: Final = 10.0
"""How long a node may take to answer, or to index what was mined."""

MOST_ENVELOPES: Final = 1000
"""Envelopes of one request."""


@dataclass(frozen=True, slots=True)
class Payer:
    """The payer's key, and the ways by which envelopes leave."""

    key: SigningKey
    nodes: Nodes
    chain: ChainPublisher
    journal: Journal


class ClientDesk:
    """The methods of PayerApi."""

    def __init__(self, payer: Payer) -> None:
        """Take who signs and pays."""
        self._payer = payer
        self._under_way: dict[bytes, asyncio.Task[bytes]] = {}
        self._newest: dict[int, int] = {}

    async def get_nodes(self, data: bytes) -> bytes:
        """Answer with the nodes' URLs by their ids."""
        return GetNodesResponse(nodes=self._payer.nodes.urls).SerializeToString()

    async def publish_client_envelopes(self, data: bytes) -> bytes:
        """Publish all envelopes of a request; answer with theirs, in the same order."""
        try:
            request = PublishClientEnvelopesRequest.FromString(data)
        except ValueError as error:
            raise InvalidRequest("request", "a PublishClientEnvelopesRequest", error) from error
        if len(request.envelopes) > MOST_ENVELOPES:
            count = len(request.envelopes)
            raise InvalidRequest("envelopes", f"at most {MOST_ENVELOPES}", count)
        publications = [_routed(each) for each in request.envelopes]
        published = await asyncio.gather(*map(self._once, publications))
        return Envelopes(envelopes=published).SerializeToString()

    async def _once(self, publication: Publication) -> bytes:
        digest = publication.digest
        task = self._under_way.get(digest)
        if task is None:
            task = asyncio.create_task(self._published(publication))
            self._under_way[digest] = task
            task.add_done_callback(lambda _: self._under_way.pop(digest, None))
        # A client that hangs up ends its own wait, not the publication.
        return await asyncio.shield(task)

    async def _published(self, publication: Publication) -> bytes:
        journal = self._payer.journal
        begun = await asyncio.to_thread(journal.find, publication.digest)
        if begun is not None and begun.envelope is not None and not publication.is_for_chain:
            return begun.envelope
        # A reorg may have dropped what was answered for the chain: it is asked again.
        if publication.is_for_chain:
            envelope = await self._by_chain(publication)
        elif begun is not None and begun.node_id is not None:
            envelope = await self._found_or_sent_again(publication, begun.node_id)
        else:
            envelope = await self._by_first_node(publication)
        await asyncio.to_thread(journal.complete, publication.digest, envelope)
        return envelope

    async def _by_chain(self, publication: Publication) -> bytes:
        """Put it on the chain; the answer waits until the nodes serve it."""
        try:
            mined = await asyncio.to_thread(self._payer.chain.publish, publication)
        except ChainError as error:
            raise NotReady("chain", "the payload in a block", error) from error
        topic, hash_ = publication.topic, mined.transaction_hash
        sequence_id = mined.sequence_id
        waits = [
            node.indexed(topic, sequence_id, hash_, NODE_SECONDS) for node in self._payer.nodes
        ]
        answers = await asyncio.gather(*waits, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, bytes):
                return answer
        raise NotReady("nodes", f"payload {sequence_id} of the chain to be served", answers[0])

    async def _by_first_node(self, publication: Publication) -> bytes:
        error: grpc.aio.AioRpcError | None = None
        for node in self._payer.nodes.for_topic(publication.topic):
            try:
                return await self._by_node(publication, node)
            except grpc.aio.AioRpcError as failed:
                # Only a node that cannot have stored it lets us ask another one.
                if not _was_refused(failed):
                    raise _passed_on(failed) from failed
                error = failed
                await asyncio.to_thread(self._payer.journal.forget, publication.digest)
                if failed.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise _passed_on(failed) from failed
        raise NotReady("nodes", "one that answers", "none" if error is None else error.details())

    async def _by_node(self, publication: Publication, node: NodeConnection) -> bytes:
        payer = self._payer
        behind = self._newest.get(node.node_id, 0)
        await asyncio.to_thread(
            payer.journal.begin_at_node,
            publication.digest,
            time.time_ns(),
            node.node_id,
            behind,
        )
        envelope = sign_payer_envelope(publication.client_envelope, node.node_id, payer.key)
        [answer] = await node.publish([envelope], NODE_SECONDS)
        parsed = parse_originated(answer).envelope
        newest = max(parsed.sequence_id, self._newest.get(node.node_id, 0))
        self._newest[node.node_id] = newest
        return answer

    async def _found_or_sent_again(self, publication: Publication, node_id: int) -> bytes:
        """Look for what may have been stored although its answer was lost."""
        begun = await asyncio.to_thread(self._payer.journal.find, publication.digest)
        node = self._payer.nodes.node(node_id)
        if node is None or begun is None:
            return await self._by_first_node(publication)
        behind = begun.behind_sequence_id or 0
        while page := await node.behind(publication.topic, node_id, behind):
            for envelope in page:
                parsed = parse_originated(envelope).envelope
                if _contains(parsed.payer_envelope, publication.client_envelope):
                    return envelope
                behind = parsed.sequence_id
        return await self._by_node(publication, node)


def _routed(client_envelope: bytes) -> Publication:
    try:
        return route(client_envelope)
    except PublishRefused as error:
        place = error.place or error.reason
        raise InvalidRequest(error.subject, error.expected, error.got, place) from error


def _contains(payer_envelope: bytes, client_envelope: bytes) -> bool:
    return parse_payer_envelope(payer_envelope).client_envelope == client_envelope


def _was_refused(error: grpc.aio.AioRpcError) -> bool:
    """Tell whether a node certainly stored nothing: it said no, or was never reached."""
    return error.code() in (
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAVAILABLE,
    )


def _passed_on(error: grpc.aio.AioRpcError) -> Refusal:
    refusal = Refusal("node", "the envelope to be stored", error.details() or error.code().name)
    refusal.code = error.code()
    return refusal

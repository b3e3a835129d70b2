"""A connection to one node: publishes, queries, and errors that show whether the node acted."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from chainkit.errors import (
    MalformedData,
    MalformedEnvelope,
)
from chainkit.nodes.channel import connect, wait_until_connected
from chainkit.nodes.outcomes import NodeLost, sorted_out
from chainkit.protocol import methods
from chainkit.protocol.envelope import parse_originator_envelope, recover_node_key
from chainkit.protocol.envelope_queries import topics_behind
from chainkit.protocol.originated_envelope import parse_originated, recover_originator
from chainkit.protocol.proto import message_api_pb2, node_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.protocol.topic_heads import Entry, read_entry
from chainkit.types import Place

_GRACE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """A node as the registry lists it."""

    url: str
    """``http://host:port`` or ``https://host:port``, after the check."""
    public_key: bytes
    """65 bytes: the key that signs the node's envelopes."""


class NodeConnection:
    """One node, as an asyncio client: requests and answers are bytes."""

    def __init__(self, node_id: int, entry: NodeEntry) -> None:
        """Take the registry's entry; nothing is connected yet.

        Raises ConfigurationError for a URL of another form.
        """
        self.node_id = node_id
        self.entry = entry
        self._channel = connect(f"URL of node {node_id}", entry.url)
        self._publish: Any = self._channel.unary_unary(methods.PUBLISH_PAYER_ENVELOPES)
        self._query: Any = self._channel.unary_unary(methods.QUERY_ENVELOPES)
        self._inboxes: Any = self._channel.unary_unary(methods.GET_INBOX_IDS)
        self._heads: Any = self._channel.unary_unary(methods.QUERY_TOPIC_HEADS)
        self._ranges: Any = self._channel.unary_unary(methods.COMPARE_RANGES)
        self._submit: Any = self._channel.unary_unary(methods.SUBMIT_REPORT)
        self._subscribe: Any = self._channel.unary_stream(methods.SUBSCRIBE_ENVELOPES)

    async def publish(self, payer_envelope: bytes, seconds: float) -> bytes:
        """Let the node originate, and return its OriginatorEnvelope.

        Raises PassedOn where the node refuses, NodeUnreached and NodeLost.
        """
        await self.connect()
        request = Envelopes(envelopes=[payer_envelope]).SerializeToString()
        [envelope] = await self._asked(self._publish(request, timeout=seconds), 1)
        return envelope

    async def behind(
        self, topic: bytes, cursor: Mapping[int, int], seconds: float
    ) -> Sequence[bytes]:
        """Return a page of a topic behind a cursor; errors are those of ``publish``."""
        request = message_api_pb2.QueryEnvelopesRequest(query=topics_behind([topic], cursor))
        return await self.query(request, seconds)

    async def query(
        self, request: message_api_pb2.QueryEnvelopesRequest, seconds: float
    ) -> Sequence[bytes]:
        """Return the envelopes of a query's answer; errors are those of ``publish``."""
        await self.connect()
        return await self._asked(self._query(request.SerializeToString(), timeout=seconds))

    async def inbox_id(self, address: str, seconds: float) -> str | None:
        """Return the inbox id that the node has for an address, None where the node has none.

        The answer is not signed. Errors are those of ``publish``.
        """
        await self.connect()
        request = message_api_pb2.GetInboxIdsRequest()
        request.requests.add(identifier=address)
        subject = f"node {self.node_id}"
        try:
            data = await self._inboxes(request.SerializeToString(), timeout=seconds)
            [answer] = message_api_pb2.GetInboxIdsResponse.FromString(data).responses
        except grpc.aio.AioRpcError as error:
            raise sorted_out(subject, error) from error
        except (DecodeError, ValueError) as error:
            raise NodeLost(subject, "one inbox id", error) from error
        return answer.inbox_id if answer.HasField("inbox_id") else None

    async def topic_head(
        self, topic: bytes, entries_after: int | None, seconds: float
    ) -> tuple[bytes, Sequence[Entry]]:
        """Return the node's SignedTopicHead of a topic, with a page of entries behind an id.

        Errors are those of ``publish``.
        """
        await self.connect()
        query = node_api_pb2.TopicHeadQuery(topic=topic, entries_after_sequence_id=entries_after)
        request = node_api_pb2.QueryTopicHeadsRequest(queries=[query]).SerializeToString()
        subject = f"node {self.node_id}"
        try:
            data = await self._heads(request, timeout=seconds)
            [answer] = node_api_pb2.QueryTopicHeadsResponse.FromString(data).answers
        except grpc.aio.AioRpcError as error:
            raise sorted_out(subject, error) from error
        except (DecodeError, ValueError) as error:
            raise NodeLost(subject, "one topic head", error) from error
        return answer.head.SerializeToString(), [read_entry(each) for each in answer.entries]

    async def clock_ns(self, seconds: float) -> int | None:
        """Return the node's clock in nanoseconds since 1970; None where the node does not send it.

        Errors are those of ``publish``.
        """
        await self.connect()
        request = node_api_pb2.CompareRangesRequest(originator_node_id=self.node_id)
        subject = f"node {self.node_id}"
        try:
            data = await self._ranges(request.SerializeToString(), timeout=seconds)
            return node_api_pb2.CompareRangesResponse.FromString(data).now_ns or None
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return None
            raise sorted_out(subject, error) from error
        except DecodeError as error:
            raise NodeLost(subject, "its clock", error) from error

    async def submit_report(self, unsigned_report: bytes, seconds: float) -> None:
        """Hand in an UnsignedMisbehaviorReport, which the node judges, signs and hosts (§3.2.8).

        Errors are those of ``publish``.
        """
        await self.connect()
        report = message_api_pb2.UnsignedMisbehaviorReport.FromString(unsigned_report)
        request = message_api_pb2.SubmitMisbehaviorReportRequest(report=report)
        try:
            await self._submit(request.SerializeToString(), timeout=seconds)
        except grpc.aio.AioRpcError as error:
            raise sorted_out(f"node {self.node_id}", error) from error

    async def indexed(
        self, topic: bytes, place: Place, transaction_hash: bytes, seconds: float
    ) -> bytes:
        """Wait until the node serves a payload of the chain; return the envelope.

        Raises NodeLost where the node does not serve the payload in time.
        """
        originator_id, sequence_id = place
        query = topics_behind([topic], {originator_id: sequence_id - 1})
        request = message_api_pb2.SubscribeEnvelopesRequest(query=query).SerializeToString()
        got: object = "its end"
        call = self._subscribe(request, timeout=seconds)
        try:
            async for frame in call:
                for envelope in Envelopes.FromString(frame).envelopes:
                    if _is_of(envelope, transaction_hash):
                        return envelope
        except (grpc.aio.AioRpcError, DecodeError) as error:
            got = error.details() if isinstance(error, grpc.aio.AioRpcError) else error
        finally:
            call.cancel()
        raise NodeLost(f"stream of node {self.node_id}", f"payload {sequence_id}", got)

    def has_signed(self, envelope: bytes) -> bool:
        """Return whether the node's key signed an envelope, the node's own or a chain's."""
        return signer_of(envelope) == self.entry.public_key

    async def close(self) -> None:
        """End the connection; open calls may still use their full time."""
        await self._channel.close(_GRACE_SECONDS)

    async def connect(self) -> None:
        """Connect before a call: a call's error would not show that the connection failed.

        Raises NodeUnreached.
        """
        await wait_until_connected(f"node {self.node_id}", self.entry.url, self._channel)

    async def _asked(self, call: Awaitable[bytes], count: int | None = None) -> Sequence[bytes]:
        subject = f"node {self.node_id}"
        try:
            envelopes = Envelopes.FromString(await call).envelopes
        except grpc.aio.AioRpcError as error:
            raise sorted_out(subject, error) from error
        except DecodeError as error:
            raise NodeLost(subject, "envelopes", error) from error
        if count is not None and len(envelopes) != count:
            raise NodeLost(subject, f"{count} envelopes", len(envelopes))
        return envelopes


def signer_of(envelope: bytes) -> bytes | None:
    """Return the 65-byte key that signed an OriginatorEnvelope, None where there is none.

    The signer is the originator, or a node that vouches for a payload of the chain.
    """
    try:
        try:
            return recover_originator(parse_originated(envelope))
        except MalformedEnvelope:
            return recover_node_key(parse_originator_envelope(envelope))
    except MalformedData:
        return None


def _is_of(envelope: bytes, transaction_hash: bytes) -> bool:
    try:
        return parse_originator_envelope(envelope).transaction_hash == transaction_hash
    except MalformedEnvelope:
        # An envelope of another originator, on the same topic.
        return False

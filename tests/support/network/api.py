"""A node's or gateway's gRPC methods, called with bytes as any client may send them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import grpc
from google.rpc import status_pb2

from chainkit.protocol.log_ranges import LogRange, RangeContent
from chainkit.protocol.proto import (
    envelopes_pb2,
    message_api_pb2,
    node_api_pb2,
    payer_api_pb2,
)
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes

REPLICATION = "xmtp.xmtpv4.message_api.ReplicationApi"
MISBEHAVIOR = "xmtp.xmtpv4.message_api.MisbehaviorApi"
LOG = "chainkit.node_api.v1.LogApi"
TOPIC_API = "chainkit.node_api.v1.TopicApi"
PAYER = "xmtp.xmtpv4.payer_api.PayerApi"
SECONDS = 30.0


class Api:
    """A connection; answers come as envelopes' bytes."""

    def __init__(
        self, url: str, is_own_connection: bool = False, roots: bytes | None = None
    ) -> None:
        options = [("grpc.use_local_subchannel_pool", int(is_own_connection))]
        target = url.partition("://")[2]
        if url.startswith("https:"):
            credentials = grpc.ssl_channel_credentials(roots)
            self.channel = grpc.secure_channel(target, credentials, options)
        else:
            self.channel = grpc.insecure_channel(target, options)

    def close(self) -> None:
        self.channel.close()

    def call(self, method: str, request: bytes, service: str = REPLICATION) -> bytes:
        answer: bytes = self.channel.unary_unary(f"/{service}/{method}")(request, timeout=SECONDS)
        return answer

    def publish(self, *payer_envelopes: bytes, service: str = REPLICATION) -> list[bytes]:
        request = Envelopes(envelopes=payer_envelopes).SerializeToString()
        answer = self.call("PublishPayerEnvelopes", request, service)
        return list(Envelopes.FromString(answer).envelopes)

    def publish_for_clients(self, *client_envelopes: bytes) -> list[bytes]:
        request = payer_api_pb2.PublishClientEnvelopesRequest(envelopes=client_envelopes)
        answer = self.call("PublishClientEnvelopes", request.SerializeToString(), PAYER)
        return list(Envelopes.FromString(answer).envelopes)

    def query(self, limit: int = 0, service: str = REPLICATION, **wanted: Any) -> list[bytes]:
        request = message_api_pb2.QueryEnvelopesRequest(query=query(**wanted), limit=limit)
        answer = self.call("QueryEnvelopes", request.SerializeToString(), service)
        return list(Envelopes.FromString(answer).envelopes)

    def newest(self, *topics: bytes) -> list[bytes]:
        request = message_api_pb2.GetNewestEnvelopeRequest(topics=topics)
        answer = self.call("GetNewestEnvelope", request.SerializeToString())
        results = message_api_pb2.GetNewestEnvelopeResponse.FromString(answer).results
        return [each.originator_envelope.SerializeToString() for each in results]

    def ranges(self, originator_id: int, *ranges: LogRange) -> tuple[int, list[RangeContent]]:
        """Return an originator's highest sequence id, and what the node has of some ranges."""
        request = node_api_pb2.CompareRangesRequest(
            originator_node_id=originator_id, through_sequence_id=2**63
        )
        for each in ranges:
            request.ranges.add(level=each.level, number=each.number)
        answer = node_api_pb2.CompareRangesResponse.FromString(
            self.call("CompareRanges", request.SerializeToString(), LOG)
        )
        contents = [RangeContent(each.digests, each.expired) for each in answer.contents]
        return answer.highest_sequence_id, contents

    def heads(self, *topics: bytes) -> list[bytes]:
        """Return the SignedTopicHeads of some topics."""
        queries = [node_api_pb2.TopicHeadQuery(topic=each) for each in topics]
        request = node_api_pb2.QueryTopicHeadsRequest(queries=queries).SerializeToString()
        answer = node_api_pb2.QueryTopicHeadsResponse.FromString(
            self.call("QueryTopicHeads", request, TOPIC_API)
        )
        return [each.head.SerializeToString() for each in answer.answers]

    def inbox_ids(self, *addresses: str) -> list[str | None]:
        request = message_api_pb2.GetInboxIdsRequest()
        for address in addresses:
            request.requests.add(identifier=address)
        answer = self.call("GetInboxIds", request.SerializeToString())
        responses = message_api_pb2.GetInboxIdsResponse.FromString(answer).responses
        assert [each.identifier for each in responses] == list(addresses)
        return [each.inbox_id if each.HasField("inbox_id") else None for each in responses]

    def submit_report(self, report: bytes) -> None:
        parsed = message_api_pb2.UnsignedMisbehaviorReport.FromString(report)
        request = message_api_pb2.SubmitMisbehaviorReportRequest(report=parsed)
        assert self.call("SubmitMisbehaviorReport", request.SerializeToString(), MISBEHAVIOR) == b""

    def query_reports(self, after_ns: int = 0) -> list[message_api_pb2.MisbehaviorReport]:
        request = message_api_pb2.QueryMisbehaviorReportsRequest(after_ns=after_ns)
        answer = self.call("QueryMisbehaviorReports", request.SerializeToString(), MISBEHAVIOR)
        return list(message_api_pb2.QueryMisbehaviorReportsResponse.FromString(answer).reports)

    def subscribe(self, **wanted: Any) -> Stream:
        request = message_api_pb2.SubscribeEnvelopesRequest(query=query(**wanted))
        return Stream(self._stream("SubscribeEnvelopes", request.SerializeToString()))

    def subscribe_topics(self, filters: Mapping[bytes, Mapping[int, int]]) -> Any:
        request = message_api_pb2.SubscribeTopicsRequest()
        for topic, cursor in filters.items():
            request.filters.add(topic=topic).last_seen.node_id_to_sequence_id.update(cursor)
        return self._stream("SubscribeTopics", request.SerializeToString())

    def _stream(self, method: str, request: bytes) -> Any:
        return self.channel.unary_stream(f"/{REPLICATION}/{method}")(request, timeout=SECONDS)


class Stream:
    """The envelopes of a stream, one after the other."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self._envelopes = self._read()

    def first_frame(self) -> bytes:
        frame: bytes = next(self.call)
        return frame

    def take(self, count: int) -> list[bytes]:
        return [next(self._envelopes) for _ in range(count)]

    def close(self) -> None:
        self.call.cancel()

    def _read(self) -> Iterator[bytes]:
        for frame in self.call:
            yield from Envelopes.FromString(frame).envelopes


def query(
    topics: Sequence[bytes] = (),
    originators: Sequence[int] = (),
    cursor: Mapping[int, int] | None = None,
) -> message_api_pb2.EnvelopesQuery:
    """Return a query. A cursor that is left out is not there."""
    message = message_api_pb2.EnvelopesQuery(topics=topics, originator_node_ids=originators)
    if cursor is not None:
        message.last_seen.node_id_to_sequence_id.update(cursor)
    return message


def cursor_in(error: grpc.RpcError) -> dict[int, int]:
    """Return the cursor in the details of a refusal."""
    metadata: Any = error.trailing_metadata()  # type: ignore[attr-defined]
    [status] = [value for key, value in metadata if key == "grpc-status-details-bin"]
    cursor = envelopes_pb2.Cursor()
    [detail] = status_pb2.Status.FromString(status).details
    assert detail.Unpack(cursor)
    return dict(cursor.node_id_to_sequence_id)

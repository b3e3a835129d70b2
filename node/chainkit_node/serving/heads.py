"""QueryTopicHeads: the node's signed heads of topics."""

from __future__ import annotations

from chainkit.protocol.proto import node_api_pb2
from chainkit.protocol.topic_heads import written_entry
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.originating.topic_heads import TopicHeads
from chainkit_node.serving import requests
from chainkit_node.settings import ServingLimits


class TopicHeadsHandler:
    """Answers from the log, in threads that may wait for a database."""

    def __init__(self, log: EnvelopeLog, heads: TopicHeads, limits: ServingLimits) -> None:
        """Take the log, the signer of heads, and how many topics one request may ask for."""
        self._log = log
        self._heads = heads
        self._limits = limits

    async def query_topic_heads(self, data: bytes) -> bytes:
        """Answer one head for each topic, in the request's order.

        Raises InvalidRequest, NotReady while this node may originate nothing, and StoreUnavailable
        where there are too many new envelopes for one answer.
        """
        request = requests.parsed(node_api_pb2.QueryTopicHeadsRequest, data)
        requests.check_count("queries", len(request.queries), self._limits.topic_heads)
        requests.check_topics((each.topic for each in request.queries), self._limits)
        return await self._log.in_thread(lambda: self._answer(request))

    def _answer(self, request: node_api_pb2.QueryTopicHeadsRequest) -> bytes:
        answer = node_api_pb2.QueryTopicHeadsResponse()
        with self._log.reading() as connection:
            heads = self._heads.begin(connection)
            for query in request.queries:
                one = answer.answers.add()
                one.head.ParseFromString(heads.head(query.topic))
                if query.HasField("entries_after_sequence_id"):
                    after = min(query.entries_after_sequence_id, requests.LARGEST_ID)
                    one.entries.extend(map(written_entry, heads.entries(query.topic, after)))
        return answer.SerializeToString()

"""CompareRanges: the digests by which another node finds where its log differs from this one's."""

from __future__ import annotations

import time

from chainkit.protocol.log_ranges import MOST_LEVEL, LogRange
from chainkit.protocol.proto import node_api_pb2
from chainkit.service.refusals import InvalidRequest
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.serving import requests
from chainkit_node.settings import ServingLimits


class LogComparer:
    """Answers from the log, in threads that may wait for a database."""

    def __init__(self, log: EnvelopeLog, limits: ServingLimits) -> None:
        """Take the log, and how many ranges one request may ask for."""
        self._log = log
        self._limits = limits

    async def compare_ranges(self, data: bytes) -> bytes:
        """Answer the contents of some ranges, in the request's order.

        Raises InvalidRequest for ranges that no log has, and for an originator of the chain; and
        StoreUnavailable while the ranges' digests are being computed.
        """
        request = requests.parsed(node_api_pb2.CompareRangesRequest, data)
        requests.check_count("ranges", len(request.ranges), self._limits.ranges)
        ranges = [LogRange(each.level, each.number) for each in request.ranges]
        for each in ranges:
            # The level first: the numbers of a higher one take long to multiply.
            if each.level > MOST_LEVEL or each.first > requests.LARGEST_ID:
                expected = f"a level up to {MOST_LEVEL}, and ids up to {requests.LARGEST_ID}"
                raise InvalidRequest("range", expected, f"level {each.level}, number {each.number}")
        through = min(request.through_sequence_id, requests.LARGEST_ID)
        held = await self._log.read_ranges(request.originator_node_id, through, ranges)
        answer = node_api_pb2.CompareRangesResponse(
            highest_sequence_id=held.highest, now_ns=time.time_ns()
        )
        for content in held.contents:
            answer.contents.add(digests=content.digests, expired=content.expired)
        return answer.SerializeToString()

"""A comparison of this node's log with a peer's, and the envelopes that it found to be missing.

The calls are functions from a request's bytes to an answer's, so that any transport may carry them.
Errors of calls are raised.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final, Protocol

from google.protobuf.message import DecodeError

from chainkit.errors import MalformedAnswer
from chainkit.nodes.highest import find_highest
from chainkit.protocol.envelope_queries import page_behind
from chainkit.protocol.log_comparison import Comparison, Differences
from chainkit.protocol.log_ranges import MOST_ASKED, LogRange, RangeContent
from chainkit.protocol.originated_envelope import OriginatedEnvelope, parse_originated
from chainkit.protocol.proto import node_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.service.grpc_methods import Unary
from chainkit_node.types import HeldRanges

MOST_FETCHED: Final = 1000
"""Envelopes of one answer."""


class ComparedLog(Protocol):
    """The envelopes of the node that compares."""

    async def read_ranges(
        self, originator_id: int, through: int, ranges: Sequence[LogRange]
    ) -> HeldRanges:
        """Return the contents of ranges of a node's ids, up to ``through`` or to the highest id."""


async def compare(call: Unary, log: ComparedLog, originator_id: int, after: int = 0) -> Differences:
    """Find where a peer's envelopes of an originator differ from this node's.

    ``call`` is the peer's CompareRanges. Ids up to ``after`` are not compared: pass
    ``compared_through`` of the last comparison, where that was not complete.

    Raises MalformedAnswer where the peer contradicts itself, as an honest peer does whose log is
    repaired meanwhile; and StoreUnavailable while this node's digests are being computed.
    """
    highest = (await log.read_ranges(originator_id, 0, ())).highest
    comparison = Comparison(originator_id, highest, after)
    while comparison.asked:
        there: list[RangeContent] = []
        for start in range(0, len(comparison.asked), MOST_ASKED):
            some = comparison.asked[start : start + MOST_ASKED]
            request = _question(originator_id, comparison.through, some)
            there += _contents(comparison, await call(request))
        here = await log.read_ranges(originator_id, comparison.through, comparison.asked)
        comparison.compare(here.contents, there)
    return comparison.differences()


async def compare_by_queries(
    call: Unary, log: ComparedLog, originator_id: int, missing: Sequence[range]
) -> tuple[Differences, OriginatedEnvelope | None]:
    """Find what a peer without comparisons has behind this node's envelopes of an originator.

    ``call`` is the peer's QueryEnvelopes, which XIP-49 demands of each node. ``missing`` are ids
    that this node lacks below its highest one. A query does not tell what has expired from what the
    peer never had: both are called expired. Returns the peer's last envelope that has not expired,
    too, as the peer states it. Errors are those of ``fetch``.
    """

    async def behind(after: int) -> OriginatedEnvelope | None:
        found = await _page(call, originator_id, after, 1)
        return parse_originated(found[0][1]).envelope if found else None

    async def first_behind(after: int) -> int | None:
        found = await behind(after)
        return None if found is None else found.sequence_id

    here = (await log.read_ranges(originator_id, 0, ())).highest
    there = await find_highest(first_behind, here)
    if there is None:
        expected = f"one end of originator {originator_id}'s log"
        raise MalformedAnswer("answers", expected, "several")
    through, runs = min(here, there), tuple(missing)
    found = Differences(through, through, there, only_there=runs, expired_there=runs)
    return found, await behind(there - 1) if there else None


async def fetch(
    call: Unary, originator_id: int, runs: Iterable[range]
) -> AsyncIterator[Sequence[bytes]]:
    """Yield a peer's OriginatorEnvelopes of some runs of sequence ids, as they came, in order.

    ``call`` is the peer's QueryEnvelopes. Ids that the peer does not serve are left out. Raises
    MalformedAnswer where the peer answers something else, and MalformedEnvelope. No signature is
    checked.
    """
    for run in runs:
        after, last = run.start - 1, run[-1]
        while after < last:
            limit = min(last - after, MOST_FETCHED)
            found = await _page(call, originator_id, after, limit)
            ids = [sequence_id for sequence_id, _ in found]
            if ids != sorted(set(ids)) or len(ids) > limit or (ids and ids[0] <= after):
                expected = f"up to {limit} in order, behind {after}"
                raise MalformedAnswer(f"envelopes of originator {originator_id}", expected, ids[:9])
            # A query has no end: where ids are missing, the page goes on behind the run.
            wanted = [envelope for sequence_id, envelope in found if sequence_id <= last]
            if wanted:
                yield wanted
            after = ids[-1] if ids else last


def _question(originator_id: int, through: int, ranges: Sequence[LogRange]) -> bytes:
    request = node_api_pb2.CompareRangesRequest(
        originator_node_id=originator_id, through_sequence_id=through
    )
    for each in ranges:
        request.ranges.add(level=each.level, number=each.number)
    return request.SerializeToString()


def _contents(comparison: Comparison, answer: bytes) -> list[RangeContent]:
    try:
        message = node_api_pb2.CompareRangesResponse.FromString(answer)
    except DecodeError as error:
        raise MalformedAnswer("answer", "a CompareRangesResponse", error) from error
    comparison.learn_highest(message.highest_sequence_id)
    return [RangeContent(each.digests, each.expired) for each in message.contents]


async def _page(call: Unary, originator_id: int, after: int, limit: int) -> list[tuple[int, bytes]]:
    answer = await call(page_behind(originator_id, after, limit).SerializeToString())
    try:
        envelopes = Envelopes.FromString(answer).envelopes
    except DecodeError as error:
        raise MalformedAnswer("answer", "a QueryEnvelopesResponse", error) from error
    found = []
    for each in envelopes:
        stated = parse_originated(each).envelope
        if stated.originator_id != originator_id:
            expected = f"those of originator {originator_id}"
            raise MalformedAnswer("envelopes", expected, f"one of {stated.originator_id}")
        found.append((stated.sequence_id, each))
    return found

"""Two nodes compare their databases, and one fetches what it lacks; peers may answer anything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import MalformedAnswer, MalformedEnvelope
from chainkit.protocol.log_comparison import Differences
from chainkit.protocol.proto import node_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.service.refusals import InvalidRequest
from chainkit.types import BlockHeader
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.types import Idle
from chainkit_node.repairing.comparison import compare, compare_by_queries, fetch
from chainkit_node.repairing.range_keeper import RangeKeeper
from chainkit_node.settings import ServingLimits
from support.indexer.comparing_node import LONG_AGO, ComparingNode, signed
from support.log_sides import ORIGINATOR

HIGHEST = 3_000
OTHER_ID = ORIGINATOR + 100
HEAD = BlockHeader(1, bytes(32), bytes(32), 1)
IDLE = Idle(HEAD.reference, HEAD, final_block=0)
Call = Callable[[bytes], Awaitable[bytes]]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[ComparingNode]:
    node = ComparingNode(tmp_path / "here.db")
    yield node
    node.close()


@pytest.fixture
def there(tmp_path: Path) -> Iterator[ComparingNode]:
    # Few on a page: what is missing takes several.
    node = ComparingNode(tmp_path / "there.db", ServingLimits(page=3))
    yield node
    node.close()


def compared(here: ComparingNode, call: Call, after: int = 0) -> Differences:
    return asyncio.run(compare(call, here.log, ORIGINATOR, after))


def fetched(call: Call, runs: Sequence[range]) -> list[bytes]:
    async def collect() -> list[bytes]:
        return [each async for some in fetch(call, ORIGINATOR, runs) for each in some]

    return asyncio.run(collect())


def answers(*envelopes: bytes) -> Call:
    async def answer(request: bytes) -> bytes:
        return Envelopes(envelopes=envelopes).SerializeToString()

    return answer


def test_compare_and_fetch__two_nodes__find_and_repair_what_differs(
    here: ComparingNode, there: ComparingNode
) -> None:
    ids = range(1, HIGHEST + 1)
    here.hold(each for each in ids if each not in (5, 64, 65, 66, 67, 68, 1025, 2000))
    there.hold(each for each in ids if each not in (70, 1500, 2000))
    here.lose([2500])
    here.hold([2500], version=2)
    for node in (here, there):
        RangeKeeper(node.store).succeeded(IDLE, 0.0)

    found = compared(here, there.compare_ranges)

    assert found.only_there == (range(5, 6), range(64, 69), range(1025, 1026))
    assert found.only_here == (range(70, 71), range(1500, 1501))
    assert found.differing == (range(2500, 2501),)
    assert found.is_complete
    assert len(there.asked) == 3

    missing = fetched(there.query_envelopes, found.only_there)

    missing_ids = [5, 64, 65, 66, 67, 68, 1025]
    assert missing == [signed(each) for each in missing_ids]
    here.store_raw(dict(zip(missing_ids, missing, strict=True)))
    assert compared(here, there.compare_ranges).only_there == ()


def test_compare__nothing_here_or_nothing_there__has_nothing_to_compare(
    here: ComparingNode, there: ComparingNode
) -> None:
    there.hold(range(1, 10))

    assert compared(here, there.compare_ranges) == Differences(0, 0, highest_there=9)
    assert compared(there, here.compare_ranges) == Differences(0, 0, highest_there=0)


def test_compare__expired_there__is_told_apart(here: ComparingNode, there: ComparingNode) -> None:
    here.hold([1, 2, 5])
    there.hold([1, 2, 3, 5])
    there.hold([4], expires_at=LONG_AGO)

    found = compared(here, there.compare_ranges)

    assert (found.only_there, found.expired_there) == ((range(3, 4),), (range(4, 5),))
    assert fetched(there.query_envelopes, [range(3, 5)]) == [signed(3)]


@pytest.mark.conforms("T8")
def test_compare__one_node_has_pruned__finds_no_difference_and_asks_for_the_root_alone(
    here: ComparingNode, there: ComparingNode
) -> None:
    expired = [each for each in range(1, HIGHEST + 1) if each % 5 == 0]
    for node in (here, there):
        node.hold(each for each in range(1, HIGHEST + 1) if each % 5)
        node.hold(expired, expires_at=LONG_AGO)
        RangeKeeper(node.store).succeeded(IDLE, 0.0)
    pruned = there.prune()
    assert pruned == [each for each in expired if each <= HIGHEST // 64 * 64]

    same = Differences(HIGHEST, HIGHEST, highest_there=HIGHEST)
    assert compared(here, there.compare_ranges) == same
    assert len(there.asked) == 1
    assert compared(there, here.compare_ranges) == same

    # A repair in a leaf with pruned envelopes keeps their digests.
    for node in (here, there):
        node.lose([7])
        node.hold([7])
    there.asked.clear()
    assert compared(here, there.compare_ranges) == same
    assert len(there.asked) == 1
    there.lose([7])
    assert compared(here, there.compare_ranges).only_here == (range(7, 8),)


def test_compare__node_that_never_had_what_was_pruned__is_told_that_it_expired(
    here: ComparingNode, there: ComparingNode
) -> None:
    there.hold(each for each in range(1, 200) if each % 5)
    there.hold(range(5, 200, 5), expires_at=LONG_AGO)
    RangeKeeper(there.store).succeeded(IDLE, 0.0)
    pruned = there.prune()
    here.hold(each for each in range(1, 200) if each not in pruned)

    found = compared(here, there.compare_ranges)

    assert [each[0] for each in found.expired_there] == pruned
    assert found.only_there == found.only_here == found.differing == ()


def test_compare__more_ranges_than_one_request_has__asks_in_portions(
    here: ComparingNode, there: ComparingNode
) -> None:
    count = 64 * 130
    there.hold(range(1, count + 1))
    here.hold(each for each in range(1, count + 1) if each % 64)
    here.hold([count])
    for node in (here, there):
        RangeKeeper(node.store).succeeded(IDLE, 0.0)

    found = compared(here, there.compare_ranges)

    assert [run.start for run in found.only_there] == list(range(64, count, 64))
    sizes = [len(node_api_pb2.CompareRangesRequest.FromString(each).ranges) for each in there.asked]
    assert sizes == [1, 9, 128, 1]


def test_compare__stored_bytes_are_damaged__is_a_difference(
    here: ComparingNode, there: ComparingNode
) -> None:
    for node in (here, there):
        node.hold([1, 2])
    here.store_raw({3: signed(3)})
    there.store_raw({3: b"\0" + signed(3)[1:]})

    assert compared(here, there.compare_ranges).differing == (range(3, 4),)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"\xff", "answer: expected a CompareRangesResponse"),
        (b"", "peer's ranges of originator 100: expected 1 ranges, got 0"),
    ],
)
def test_compare__peer_answers_no_contents__is_refused(
    here: ComparingNode, answer: bytes, words: str
) -> None:
    here.hold([1])

    async def call(request: bytes) -> bytes:
        return answer

    with pytest.raises(MalformedAnswer, match=words):
        compared(here, call)


@pytest.mark.parametrize("there_ids", [range(1, 6), [2, 4, 9, 40], []], ids=str)
def test_compare_by_queries__peer_has_no_comparisons__finds_its_last_envelope(
    here: ComparingNode, there: ComparingNode, there_ids: Sequence[int]
) -> None:
    here.hold([1, 5])
    there.hold(there_ids)
    missing = [range(2, 5)]

    found, last = asyncio.run(
        compare_by_queries(there.query_envelopes, here.log, ORIGINATOR, missing)
    )

    highest = max(there_ids, default=0)
    assert (found.through, found.highest_there) == (min(5, highest), highest)
    assert (found.only_there, found.expired_there) == (tuple(missing), tuple(missing))
    assert (0 if last is None else last.sequence_id) == highest
    assert len(there.asked) < 20


def test_compare_by_queries__peer_contradicts_itself__is_refused(here: ComparingNode) -> None:
    here.hold([1, 5])

    with pytest.raises(MalformedAnswer, match="one end"):
        asyncio.run(compare_by_queries(answers(signed(3)), here.log, ORIGINATOR, []))


def test_fetch__peer_sends_what_lies_behind_the_run__is_left_out(there: ComparingNode) -> None:
    there.hold([1, 3, 9, 10])

    assert fetched(there.query_envelopes, [range(2, 5), range(6, 8)]) == [signed(3)]
    assert len(there.asked) == 2


@pytest.mark.parametrize(
    "lies",
    [
        [signed(4)],
        [signed(6), signed(6)],
        [signed(7), signed(6)],
        [signed(each) for each in range(5, 9)],
        [signed(5, originator_id=ORIGINATOR + 100)],
    ],
    ids=["seen before", "twice", "out of order", "too many", "another originator"],
)
def test_fetch__peer_sends_what_was_not_asked_for__is_refused(lies: list[bytes]) -> None:
    with pytest.raises(MalformedAnswer, match=r"envelopes.*expected"):
        fetched(answers(*lies), [range(5, 8)])


def test_fetch__peer_sends_no_envelopes__is_refused() -> None:
    with pytest.raises(MalformedEnvelope):
        fetched(answers(b"\0"), [range(5, 8)])

    async def call(request: bytes) -> bytes:
        return b"\xff"

    with pytest.raises(MalformedAnswer, match="expected a QueryEnvelopesResponse"):
        fetched(call, [range(5, 8)])


def request_of(*ranges: tuple[int, int], **values: Any) -> bytes:
    request = node_api_pb2.CompareRangesRequest(**{"originator_node_id": ORIGINATOR, **values})
    for level, number in ranges:
        request.ranges.add(level=level, number=number)
    return request.SerializeToString()


@pytest.mark.parametrize(
    ("request_bytes", "words"),
    [
        (b"\xff", "expected bytes of CompareRangesRequest"),
        (request_of(*[(0, 0)] * 129), "ranges: expected at most 128, got 129"),
        (request_of((16, 0)), "range: expected a level up to 15, .*, got level 16, number 0"),
        (request_of((2**32 - 1, 2**64 - 1)), "got level 4294967295"),
        (request_of((0, 2**57)), "range: expected .* ids up to 9223372036854775807"),
        (request_of(originator_node_id=0), "originator: expected a node, got 0, which is the"),
    ],
)
def test_compare_ranges__request_that_no_node_sends__is_refused(
    there: ComparingNode, request_bytes: bytes, words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        asyncio.run(there.compare_ranges(request_bytes))


def test_compare_ranges__ranges_and_ids_behind_the_end__are_empty(there: ComparingNode) -> None:
    there.hold([1, 2])
    request = request_of((0, 2**57 - 1), (15, 0), through_sequence_id=2**64 - 1)

    answer = node_api_pb2.CompareRangesResponse.FromString(
        asyncio.run(there.compare_ranges(request))
    )

    assert answer.highest_sequence_id == 2
    assert [len(each.digests) for each in answer.contents] == [0, 20]


def test_keep_ranges__no_time__stores_one_piece_at_each_step(there: ComparingNode) -> None:
    there.hold(range(1, 64 * 150))
    seconds = iter(range(100))
    keeper = RangeKeeper(there.store, lambda: float(next(seconds)))
    root = request_of((2, 0), through_sequence_id=2**63)

    asked = []
    for _ in range(3):
        keeper.succeeded(IDLE, 0.0)
        with there.store.reading() as connection:
            count = connection.exec_driver_sql("SELECT count(*) FROM range_digests WHERE level = 0")
            asked.append(count.scalar_one())

    assert asked == [64, 128, 149]
    answer = node_api_pb2.CompareRangesResponse.FromString(asyncio.run(there.compare_ranges(root)))
    assert len(answer.contents[0].digests) == 10 * 20


def test_keep_ranges__several_originators__take_turns(there: ComparingNode) -> None:
    there.hold(range(1, 64 * 70))
    rows = [
        StoredEnvelope(OTHER_ID, each, each, b"", None, signed(each, originator_id=OTHER_ID))
        for each in range(1, 64 * 3)
    ]
    with there.store.writing() as connection:
        there.store.insert_envelopes(connection, rows)
    seconds = iter(range(100))
    keeper = RangeKeeper(there.store, lambda: float(next(seconds)))
    query = "SELECT count(*) FROM range_digests WHERE level = 0 AND originator_id = ?"

    for _ in range(2):
        keeper.succeeded(IDLE, 0.0)

    with there.store.reading() as connection:
        stored = [
            connection.exec_driver_sql(query, (each,)).scalar_one()
            for each in (ORIGINATOR, OTHER_ID)
        ]
    assert stored == [64, 2]

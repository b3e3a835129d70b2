"""Ranges and digests as they are written down for every implementation."""

from __future__ import annotations

import pytest
from eth_utils import keccak

from chainkit.protocol.log_ranges import (
    ABSENT,
    MOST_LEVEL,
    LogRange,
    disputed_digest,
    envelope_digest,
    range_digest,
    root_of,
    split,
)
from chainkit.protocol.proto.envelopes_pb2 import OriginatorEnvelope

SOME = b"\1" * 20


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        (LogRange(0, 0), 1, 64),
        (LogRange(0, 3), 193, 256),
        (LogRange(1, 2), 2049, 3072),
        (LogRange(4, 0), 1, 4_194_304),
    ],
)
def test_log_range__level_and_number__name_the_ids(asked: LogRange, first: int, last: int) -> None:
    assert (asked.first, asked.last) == (first, last)


@pytest.mark.parametrize(
    ("asked", "through", "parts"),
    [
        (LogRange(0, 1), 64, 0),
        (LogRange(0, 1), 65, 1),
        (LogRange(0, 1), 10**9, 64),
        (LogRange(1, 0), 0, 0),
        (LogRange(1, 0), 64, 1),
        (LogRange(1, 0), 65, 2),
        (LogRange(1, 0), 10**9, 16),
        (LogRange(2, 1), 16_384, 0),
        (LogRange(2, 1), 16_385, 1),
    ],
)
def test_part_count__ids_end_somewhere__counts_parts_that_begin_before(
    asked: LogRange, through: int, parts: int
) -> None:
    assert asked.part_count(through) == parts


def test_part_ids__of_ids_and_of_ranges__are_those_of_the_children() -> None:
    assert LogRange(0, 2).part_ids(3) == range(132, 133)
    for place in (0, 15):
        child = LogRange(2, 1).child(place)
        assert LogRange(2, 1).part_ids(place) == range(child.first, child.last + 1)


@pytest.mark.parametrize(
    ("through", "level"), [(0, 0), (64, 0), (65, 1), (1024, 1), (1025, 2), (2**63 - 1, MOST_LEVEL)]
)
def test_root_of__highest_id__is_the_smallest_range_with_all(through: int, level: int) -> None:
    assert root_of(through) == LogRange(level, 0)


def test_envelope_digest__two_signatures__is_of_what_was_signed() -> None:
    digests = set()
    for signature in (b"a" * 65, b"b" * 65):
        envelope = OriginatorEnvelope(unsigned_originator_envelope=b"unsigned")
        envelope.originator_signature.bytes = signature
        digests.add(envelope_digest(envelope.SerializeToString()))

    assert digests == {keccak(b"originator|unsigned")[:20]}


def test_envelope_digest__damaged_bytes__is_one_of_their_own() -> None:
    assert envelope_digest(b"\xff\1") != envelope_digest(b"\xff\2")


def test_disputed_digest__originator_and_id__is_of_both() -> None:
    expected = keccak(b"disputed|" + bytes([0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 1, 0]))

    assert disputed_digest(100, 256) == expected[:20]


def test_range_digest__leaf_or_range_above__hashes_its_level_and_all_parts() -> None:
    leaf = keccak(b"range|\0" + SOME + bytes(63 * 20))[:20]
    above = keccak(b"range|\1" + ABSENT + SOME + bytes(14 * 20))[:20]

    assert range_digest(0, SOME) == range_digest(0, SOME + ABSENT) == leaf
    assert range_digest(1, ABSENT + SOME) == above


@pytest.mark.parametrize("digests", [b"", ABSENT, ABSENT * 16])
def test_range_digest__nothing_in_it__is_that_of_nothing(digests: bytes) -> None:
    assert range_digest(3, digests) == ABSENT


def test_split__digests__are_there_one_by_one() -> None:
    assert split(SOME + ABSENT) == [SOME, ABSENT]

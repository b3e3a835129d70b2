"""The time of the chain's envelopes, by ADR 45."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chainkit.errors import MalformedEnvelope
from chainkit.protocol.chain_time import (
    MAXIMUM_BLOCK_TIMESTAMP,
    NANOSECONDS_PER_PAYLOAD,
    block_timestamp,
    chain_time,
    is_of_block,
    originator_ns,
)
from support.chain_times import chain_ns

SECOND = 10**9
timestamps = st.integers(0, MAXIMUM_BLOCK_TIMESTAMP)
sequence_ids = st.integers(1, 2**64 - 1) | st.integers(1, 3_000_000)


@pytest.mark.conforms("3.2.1-2")
@given(timestamps, sequence_ids)
@example(1_735_689_600, 42)
@example(MAXIMUM_BLOCK_TIMESTAMP, 2**64 - 1)
def test_originator_ns__of_a_payload__is_the_next_second_and_its_id_in_microseconds(
    timestamp: int, sequence_id: int
) -> None:
    found = originator_ns(timestamp, sequence_id)

    assert found == chain_ns(timestamp, sequence_id)
    assert (timestamp + 1) * SECOND <= found < min((timestamp + 2) * SECOND, 2**63)


def test_originator_ns__latest_block__is_the_last_that_the_field_holds() -> None:
    assert originator_ns(MAXIMUM_BLOCK_TIMESTAMP, 999_999) < 2**63
    assert chain_time(MAXIMUM_BLOCK_TIMESTAMP + 1, 999_999) >= 2**63


@pytest.mark.parametrize("timestamp", [-1, MAXIMUM_BLOCK_TIMESTAMP + 1])
def test_originator_ns__timestamp_that_no_field_holds__is_refused(timestamp: int) -> None:
    with pytest.raises(MalformedEnvelope, match="block time: expected seconds from 0"):
        originator_ns(timestamp, 1)


@given(st.lists(st.integers(0, 2), min_size=2, max_size=50), st.integers(1, 10**12))
@example([0] * 50, 999_960)
def test_originator_ns__blocks_in_succession__rise_but_at_a_multiple_of_a_million(
    seconds: list[int], first_id: int
) -> None:
    timestamp, last_ns = 1_735_689_600, 0
    for sequence_id, later in enumerate(seconds, first_id):
        timestamp += later
        found = originator_ns(timestamp, sequence_id)
        if sequence_id > first_id and (later or sequence_id % 10**6):
            # Messages that name the one before have times between the two.
            assert found >= last_ns + NANOSECONDS_PER_PAYLOAD
        elif sequence_id > first_id:
            assert last_ns - found < SECOND
            assert block_timestamp(found) == block_timestamp(last_ns)
        last_ns = found


def test_originator_ns__ten_blocks_of_thousands_in_one_second__are_all_different() -> None:
    found = [originator_ns(1_735_689_600, sequence_id) for sequence_id in range(70_000, 120_000)]

    assert found == sorted(set(found))


@given(timestamps, sequence_ids)
def test_block_timestamp__of_a_payload_s_time__is_its_block_s(
    timestamp: int, sequence_id: int
) -> None:
    time_ns = originator_ns(timestamp, sequence_id)

    assert block_timestamp(time_ns) == timestamp
    assert is_of_block(time_ns, sequence_id)


@given(st.integers(-(2**63), 2**63 - 1), sequence_ids)
@example(1_735_689_600 * SECOND, 1)
@example(-SECOND + 1_000, 1)
@example(2**63 - 1, 854_775)
def test_is_of_block__any_time__is_what_the_rule_gives_to_some_block(
    time_ns: int, sequence_id: int
) -> None:
    second, rest = divmod(time_ns, SECOND)
    is_of_rule = rest == sequence_id % 10**6 * 1_000
    is_of_time = 1 <= second <= MAXIMUM_BLOCK_TIMESTAMP + 1

    assert is_of_block(time_ns, sequence_id) == (is_of_rule and is_of_time)


def test_chain_time__columns__are_those_of_each_payload() -> None:
    rows = [(1, 1), (1_735_689_600, 999_999), (MAXIMUM_BLOCK_TIMESTAMP, 2**64 - 1)]
    columns = np.array(rows, dtype=np.uint64).T

    found = chain_time(*columns)

    assert found.dtype == np.uint64
    assert found.tolist() == [originator_ns(*row) for row in rows]

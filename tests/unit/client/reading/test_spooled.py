"""Envelopes in a file: every answer is the one of envelopes in memory."""

from __future__ import annotations

import io
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from chainkit.misbehavior.received_batch import HeldEnvelope
from chainkit_client.reading.held import MemoryLogs
from chainkit_client.reading.spooled import SpooledLogs

ORIGINATORS = (0, 100)
LARGEST = 2**63 - 1
ids = st.one_of(st.integers(1, 12), st.just(LARGEST))
held = st.builds(
    HeldEnvelope,
    ids,
    st.integers(-(2**63), LARGEST),
    st.binary(min_size=32, max_size=32),
    st.binary(max_size=40),
)


@given(st.lists(st.tuples(st.sampled_from(ORIGINATORS), held)), ids, ids)
@settings(max_examples=200, deadline=None)
def test_log__any_envelopes__answers_as_the_log_in_memory(
    envelopes: Sequence[tuple[int, HeldEnvelope]], one: int, other: int
) -> None:
    in_memory, in_file = MemoryLogs(), SpooledLogs(io.BytesIO())
    for originator_id, each in envelopes:
        # Reading moves the place in the file.
        in_file.log(ORIGINATORS[0]).last()
        for logs in (in_memory, in_file):
            logs.log(originator_id).hold(each)

    assert in_file.highest() == in_memory.highest()
    for originator_id in ORIGINATORS:
        expected, log = in_memory.log(originator_id), in_file.log(originator_id)
        assert (log.last(), log.count(one)) == (expected.last(), expected.count(one))
        assert (log.at(one), log.has(one)) == (expected.at(one), expected.at(one) is not None)
        assert (log.before(one), log.after(one)) == (expected.before(one), expected.after(one))
        assert log.entries(one, other) == expected.entries(one, other)

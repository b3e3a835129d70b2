"""Answers written from stored bytes, against protobuf's own writer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes, TopicEnvelopes
from chainkit.protocol.stored_envelopes import written_envelopes, written_topic_envelopes

_LENGTHS = st.sampled_from([0, 1, 127, 128, 16383, 16384, 2**21 - 1, 2**21])


@given(st.lists(_LENGTHS, max_size=5))
def test_written__any_lengths__are_the_bytes_that_protobuf_writes(lengths: list[int]) -> None:
    envelopes = [bytes([number]) * length for number, length in enumerate(lengths)]

    message = Envelopes(envelopes=envelopes)
    assert written_envelopes(envelopes) == message.SerializeToString()
    if envelopes:
        written = TopicEnvelopes(envelopes=message).SerializeToString()
        assert written_topic_envelopes(envelopes) == written

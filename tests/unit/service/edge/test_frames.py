from __future__ import annotations

import asyncio
import base64
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from random import randbytes

import grpc
import pytest
from google.rpc import status_pb2
from hypothesis import given
from hypothesis import strategies as st

from chainkit.service.edge.frames import (
    Compressed,
    MessageReader,
    bad_end,
    deadline_seconds,
    framed,
    joined,
    metadata_of,
)
from chainkit.service.refusals import InvalidRequest, Overloaded, taken_back

MOST = 40


def read(reader: MessageReader, pieces: Sequence[bytes]) -> list[bytes]:
    return [asyncio.run(joined(parts)) for piece in pieces for parts in reader.feed(piece)]


@st.composite
def cut(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """Messages, and their body in pieces."""
    messages = draw(st.lists(st.binary(max_size=MOST), max_size=5))
    body = b"".join(map(framed, messages))
    cuts = sorted(draw(st.sets(st.integers(0, len(body)), max_size=8)))
    bounds = [0, *cuts, len(body)]
    return messages, [body[a:b] for a, b in pairwise(bounds)]


@given(cut())
def test_read__messages_cut_anywhere__are_whole_again(
    case: tuple[list[bytes], list[bytes]],
) -> None:
    messages, pieces = case
    reader = MessageReader(MOST)

    assert read(reader, pieces) == messages
    reader.finish()
    assert reader.waiting_bytes == 0


@pytest.mark.parametrize("size", [7, 1000, 16 << 10, 1 << 20])
def test_read__long_messages_in_pieces__are_whole_again(size: int) -> None:
    messages = [randbytes(3 << 20), b"", randbytes(17 << 10)]
    body = b"".join(map(framed, messages))
    reader = MessageReader(3 << 20)

    pieces = [body[start : start + size] for start in range(0, len(body), size)]

    assert read(reader, pieces) == messages
    assert reader.waiting_bytes == 0


def test_read__long_message_in_single_bytes__takes_little_more_than_its_bytes() -> None:
    reader = MessageReader(1 << 20)
    tracemalloc.start()
    try:
        for byte in framed(bytes(1 << 18))[:-1]:
            assert not list(reader.feed(bytes([byte])))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert reader.waiting_bytes == (1 << 18) + 4
    assert held < 5 << 16


def test_read__message_that_is_too_long__is_refused_before_it_has_come() -> None:
    reader = MessageReader(MOST)

    with pytest.raises(Overloaded, match=f"at most {MOST} bytes, got {MOST + 1}"):
        read(reader, [framed(bytes(MOST + 1))[:5]])


def test_read__compressed_message__is_refused() -> None:
    with pytest.raises(Compressed):
        read(MessageReader(MOST), [b"\1" + framed(b"a")[1:]])


@pytest.mark.parametrize("rest", [b"\0", framed(b"abc")[:-1]])
def test_finish__message_is_not_whole__is_refused(rest: bytes) -> None:
    reader = MessageReader(MOST)
    assert read(reader, [framed(b"a") + rest]) == [b"a"]

    with pytest.raises(InvalidRequest, match="the beginning of one"):
        reader.finish()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(b"1H", 3600.0), (b"2M", 120.0), (b"3S", 3.0), (b"250m", 0.25), (b"4u", 4e-6), (b"5n", 5e-9)],
)
def test_deadline__of_each_unit__is_in_seconds(value: bytes, seconds: float) -> None:
    assert deadline_seconds([(b"te", b"trailers"), (b"grpc-timeout", value)]) == seconds


@pytest.mark.parametrize("value", [b"", b"1", b"S", b"-1S", b"123456789S", b"1.5S", b"1s"])
def test_deadline__in_another_form__is_none(value: bytes) -> None:
    assert deadline_seconds([(b"grpc-timeout", value)]) is None


def test_metadata__values_of_binary_keys__are_bytes_with_padding_and_without() -> None:
    headers = [(b"a", b"x"), (b"b-bin", b"AQI"), (b"c-bin", b"AQI="), (b"d-bin", b"?")]

    assert metadata_of(headers) == [("a", "x"), ("b-bin", b"\1\2"), ("c-bin", b"\1\2")]


def test_bad_end__of_a_refusal__has_code_words_and_details_that_headers_may_carry() -> None:
    refusal = taken_back({0: 7})
    refusal.args = ("é 100%\n",)

    headers = dict(bad_end(refusal))

    assert int(headers[b"grpc-status"]) == grpc.StatusCode.ABORTED.value[0]
    assert headers[b"grpc-message"].isascii() and b"\n" not in headers[b"grpc-message"]
    details = headers[b"grpc-status-details-bin"]
    status = status_pb2.Status.FromString(base64.b64decode(details + b"=="))
    assert status.message == str(refusal)
    assert len(status.details) == 1


def test_bad_end__words_of_any_kind__are_percent_encoded() -> None:
    words = dict(bad_end(InvalidRequest("é%", "a b", "\n")))[b"grpc-message"]

    assert words == b"%C3%A9%25: expected a b, got %0A"

"""Lines in a compressed, padded and encrypted file, and what a hostile file may try."""

from __future__ import annotations

import gzip
import io
import itertools
import tracemalloc
import zlib

import pyrage
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyrage import x25519

from chainkit.errors import ConfigurationError, MalformedData
from chainkit_client.history import packing
from chainkit_client.history.packing import NotOpened, new_key, pack, recipient_of, unpack
from chainkit_client.history.padding import LEAST_LENGTH, padded_length

KEY = new_key()
LINES = st.lists(st.binary(max_size=300).map(lambda each: each.replace(b"\n", b" ")))


def packed(lines: list[bytes], key: str = KEY) -> bytes:
    file = io.BytesIO()
    pack(lines, file, recipient_of(key))
    return file.getvalue()


def unpacked(data: bytes, most_bytes: int = packing.MOST_BYTES) -> list[bytes]:
    found: list[bytes] = []
    unpack(io.BytesIO(data), KEY, found.append, most_bytes)
    return found


def encrypted(compressed: bytes) -> bytes:
    """A file of a holder of the key, who breaks the format."""
    return pyrage.encrypt(compressed, [x25519.Identity.from_str(KEY).to_public()])


@given(LINES)
@settings(max_examples=50, deadline=None)
def test_unpack__any_lines__come_back_as_they_were(lines: list[bytes]) -> None:
    assert unpacked(packed(lines)) == lines


def test_pack__any_file__opens_with_age_and_gunzip() -> None:
    opened = pyrage.decrypt(packed([b"one", b"two"]), [x25519.Identity.from_str(KEY)])

    assert gzip.decompress(opened) == b"one\ntwo\n"


def test_new_key__many__are_all_different_and_no_file_is_like_another() -> None:
    assert len({new_key() for _ in range(1000)}) == 1000
    files = [packed([b"the same"]) for _ in range(20)]
    # Beyond age's first line, each file has its own ephemeral key, nonce and content.
    assert len({each[20:60] for each in files}) == len({each[-40:] for each in files}) == 20


@given(st.integers(1, 2**50))
def test_padded_length__any_length__is_at_most_a_sixteenth_more(length: int) -> None:
    padded = padded_length(length)

    assert length <= padded <= max(length + length // 16 + 1, LEAST_LENGTH)
    assert padded_length(padded) == padded


def test_padded_length__all_lengths_up_to_a_gigabyte__are_few_and_short_ones_are_one() -> None:
    found, length = set(), 1
    while length < 2**30:
        found.add(padded_length(length))
        length = padded_length(length) + 1

    assert len(found) < 600
    identity = x25519.Identity.from_str(KEY)
    short = (packed([b"x" * each]) for each in range(300))
    # Around it age writes a header of a length that it draws at random.
    assert {len(pyrage.decrypt(each, [identity])) for each in short} == {LEAST_LENGTH}


def test_unpack__file_is_cut_anywhere__is_refused() -> None:
    data = packed([bytes([each]) * 50 for each in range(32, 127)])

    for end in itertools.chain(range(0, len(data) - 1, 97), [len(data) - 1]):
        with pytest.raises(NotOpened):
            unpacked(data[:end])


def test_unpack__one_bit_is_turned_anywhere__is_refused() -> None:
    data = packed([b"words"])

    for index in range(0, len(data), 11):
        with pytest.raises(NotOpened):
            unpacked(data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :])


@pytest.mark.parametrize("key", ["", "AGE-SECRET-KEY-1", "age1" + "q" * 58])
def test_unpack__key_is_none__is_a_configuration_error(key: str) -> None:
    with pytest.raises(ConfigurationError, match="an age identity"):
        unpack(io.BytesIO(packed([b"x"])), key, print)


def test_unpack__another_files_key__is_refused() -> None:
    with pytest.raises(NotOpened):
        unpacked(packed([b"x"], new_key()))


def test_unpack__header_of_age_has_no_end__is_refused_unread() -> None:
    class Endless(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1, /) -> bytes:
            assert size is not None and 0 < size < 1 << 20
            self.taken += size
            return b"age-encryption.org/v1\n" + b"-" * size

    file = Endless()
    with pytest.raises(NotOpened):
        unpack(file, KEY, print)
    assert file.taken < 1 << 20


def test_unpack__a_gigabyte_in_a_line__is_refused_at_the_longest_line() -> None:
    compressor = zlib.compressobj(9, wbits=31)
    bomb = b"".join(compressor.compress(bytes(1 << 20)) for _ in range(64)) + compressor.flush()

    with pytest.raises(MalformedData, match="lines of at most"):
        unpacked(encrypted(bomb))


def test_unpack__many_short_lines__are_refused_at_the_bound_of_all() -> None:
    taken = itertools.count()

    with pytest.raises(MalformedData, match="at most 100000 bytes"):
        unpack(
            io.BytesIO(encrypted(gzip.compress(b"\n" * 10**7))), KEY, lambda _: next(taken), 10**5
        )
    assert next(taken) <= 10**5


def test_unpack__a_few_bytes_stand_for_many__memory_holds_a_piece_at_a_time() -> None:
    data = encrypted(gzip.compress(b"\n" * 10**7))
    tracemalloc.start()
    try:
        with pytest.raises(MalformedData):
            unpack(io.BytesIO(data), KEY, lambda _: None, 10**5)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 4 * 10**6


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no gzip at all", "compressed lines"),
        (gzip.compress(b"line\n", mtime=0)[:-1], "whole lines"),
        (gzip.compress(b"no end of the line", mtime=0), "whole lines"),
        (b"", "whole lines"),
        (gzip.compress(b"line\n", mtime=0) + b"\0" * 9 + b"\1", "zeros behind"),
        (gzip.compress(b"line\n", mtime=0) + gzip.compress(b"second\n", mtime=0), "zeros behind"),
    ],
)
def test_unpack__holder_of_the_key_writes_no_lines__is_refused(
    content: bytes, message: str
) -> None:
    with pytest.raises(MalformedData, match=message):
        unpacked(encrypted(content))


def test_unpack__lines_end_within_pieces__are_put_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packing, "_CHUNK", 3)

    assert unpacked(packed([b"a" * 10, b"", b"bcd", b"ef"])) == [b"a" * 10, b"", b"bcd", b"ef"]

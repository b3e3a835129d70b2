import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedMls
from chainkit.protocol.mls.presentation import Reader
from support.mls import vector


@given(st.binary(max_size=300) | st.sampled_from([bytes(16_383), bytes(16_384)]), st.binary())
def test_read_vector__any_content_and_rest__gives_the_content(content: bytes, rest: bytes) -> None:
    reader = Reader(vector(content) + rest, "message")

    assert reader.vector() == content
    assert reader.position == len(vector(content))
    assert reader.is_at_end == (rest == b"")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "message: expected 1 more bytes, got 0 (byte 0)"),
        (b"\x05abc", "message: expected 5 more bytes, got 3 (byte 1)"),
        (b"\x40", "message: expected 1 more bytes, got 0 (byte 1)"),
        (b"\xbf\xff\xff\xff", "message: expected 1073741823 more bytes, got 0 (byte 4)"),
        (b"\xc0", "message: expected a vector's length of 1, 2 or 4 bytes, got 0xc0 (byte 1)"),
        (b"\x40\x01a", "message: expected the length 1 in 1 bytes, got 2 bytes (byte 2)"),
        (b"\x80\0\0\x40", "message: expected the length 64 in 2 bytes, got 4 bytes (byte 4)"),
    ],
)
def test_read_vector__length_that_no_writer_gives__is_refused(data: bytes, message: str) -> None:
    with pytest.raises(MalformedMls) as caught:
        Reader(data, "message").vector()

    assert str(caught.value) == message


def test_read_integer__fewer_bytes_than_it_takes__is_refused() -> None:
    with pytest.raises(MalformedMls, match=r"expected 8 more bytes, got 7 \(byte 0\)$"):
        Reader(bytes(7), "message").integer(8)


def test_read_items__error_within_a_vector__is_placed_in_the_whole_message() -> None:
    reader = Reader(b"\0\0" + vector(b"a" + vector(b"bc")[:-1]), "message")
    reader.integer(2)
    items = reader.items()
    items.integer(1)

    with pytest.raises(MalformedMls, match=r"expected 2 more bytes, got 1 \(byte 5\)$"):
        items.vector()


def test_finish__bytes_left__says_how_many() -> None:
    reader = Reader(b"abc", "message")
    reader.integer(1)

    with pytest.raises(MalformedMls, match=r"expected the end, got 2 more bytes \(byte 1\)$"):
        reader.finish()

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit_client.mls.engine import EngineFailed
from chainkit_client.mls.frames import (
    MOST_FRAME_BYTES,
    FrameReader,
    decode_fields,
    encode_fields,
    encode_frame,
    number,
    read_number,
)

FIELDS = st.lists(st.binary(max_size=40), max_size=6)


@given(FIELDS)
def test_decode_fields__what_was_encoded__is_what_went_in(fields: list[bytes]) -> None:
    assert decode_fields(encode_fields(fields)) == fields


@given(FIELDS, st.data())
def test_decode_fields__cut_anywhere_inside_of_a_field__is_refused(
    fields: list[bytes], data: st.DataObject
) -> None:
    content = encode_fields([*fields, b"last"])
    whole = {0}
    for field in fields:
        whole.add(max(whole) + 4 + len(field))
    cut = data.draw(st.sampled_from([at for at in range(len(content)) if at not in whole]))

    with pytest.raises(EngineFailed):
        decode_fields(content[:cut])


@given(FIELDS, st.lists(st.integers(1, 7), min_size=1))
def test_frame_reader__a_frame_in_pieces__returns_its_fields_with_the_last_one(
    fields: list[bytes], sizes: list[int]
) -> None:
    frame = encode_frame(fields)
    reader = FrameReader()
    returned = []
    at = 0
    while at < len(frame):
        size = sizes[at % len(sizes)]
        returned.append(reader.feed(frame[at : at + size]))
        at += size

    assert returned[-1] == fields
    assert set(map(type, returned[:-1])) <= {type(None)}


def test_frame_reader__length_over_the_bound__is_refused_before_the_rest_arrives() -> None:
    FrameReader().feed((MOST_FRAME_BYTES).to_bytes(4, "big"))

    with pytest.raises(EngineFailed, match=f"at most {MOST_FRAME_BYTES} bytes"):
        FrameReader().feed((MOST_FRAME_BYTES + 1).to_bytes(4, "big"))


def test_frame_reader__more_than_one_frame__is_refused() -> None:
    with pytest.raises(EngineFailed, match="expected one frame, got 1 bytes behind it"):
        FrameReader().feed(encode_frame([b"answer"]) + b"!")


def test_encode_frame__larger_than_the_bound__is_refused() -> None:
    with pytest.raises(EngineFailed, match="frame of the MLS engine"):
        encode_frame([bytes(MOST_FRAME_BYTES)])


def test_read_number__of_another_size__is_refused() -> None:
    assert read_number(number(2**64 - 1)) == 2**64 - 1
    with pytest.raises(EngineFailed, match="expected 8 bytes, got 4"):
        read_number(b"\0\0\0\1")

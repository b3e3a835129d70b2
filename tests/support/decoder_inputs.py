"""Bytes for decoders: mutations of whole messages, messages by their descriptors, and chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

from support.forms import head, varint, with_length

_MOST_DEPTH = 3
_INTEGERS = st.sampled_from([0, 1, 127, 128, 2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1]) | (
    st.integers(0, 2**64 - 1)
)


def damaged(wholes: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """A whole message, cut, flipped, doubled, spliced with another one, or as it is."""
    whole = st.sampled_from(wholes)
    return st.builds(_damaged, whole, whole, st.lists(_STEPS, max_size=4))


_STEPS = st.tuples(st.integers(0, 5), st.integers(0, 2**20), st.binary(min_size=1, max_size=6))


def _damaged(data: bytes, other: bytes, steps: list[tuple[int, int, bytes]]) -> bytes:
    for kind, number, bytes_ in steps:
        place = number % (len(data) + 1)
        if kind == 0:
            data = data[:place]
        elif kind == 1:
            data = data[:place] + bytes_ + data[place:]
        elif kind == 2:
            data = data[:place] + bytes_ + data[place + len(bytes_) :]
        elif kind == 3 and place < len(data):
            data = data[:place] + bytes([data[place] ^ 1 << number % 8]) + data[place + 1 :]
        elif kind == 4:
            data = data[:place] + other[place:]
        else:
            data = data[:place] + data[place // 2 :]
    return data


def by_descriptor(kind: type[Message], parts: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """A message of a kind, its fields in any number and order; ``parts`` are values for bytes."""
    return _message(kind.DESCRIPTOR, st.sampled_from([*parts, b""]) | st.binary(max_size=70), 0)


def _message(
    descriptor: Descriptor, part: st.SearchStrategy[bytes], depth: int
) -> st.SearchStrategy[bytes]:
    fields = [_field(each, part, depth) for each in descriptor.fields]
    # A field that nobody knows, a group's end, and a tag with too many bytes.
    strange = st.sampled_from([with_length(99, b"x"), b"\x0c", b"\x88" + b"\x80" * 9 + b"\x01"])
    common = st.one_of(*fields) if fields else strange
    return st.lists(st.one_of(common, common, common, strange), max_size=6).map(b"".join)


def _field(field: Any, part: st.SearchStrategy[bytes], depth: int) -> st.SearchStrategy[bytes]:
    number = field.number
    if field.type == FieldDescriptor.TYPE_MESSAGE and depth < _MOST_DEPTH:
        inner = _message(field.message_type, part, depth + 1)
        return inner.map(lambda value: with_length(number, value))
    if field.type in (FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE):
        return part.map(lambda value: with_length(number, value))
    if field.type == FieldDescriptor.TYPE_STRING:
        text = st.sampled_from([b"", b"ab" * 32, b"0x" + b"ab" * 20, b"\xff"]) | part
        return text.map(lambda value: with_length(number, value))
    return _INTEGERS.map(lambda value: head(number, 0) + varint(value))

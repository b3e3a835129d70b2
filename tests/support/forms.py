"""One message in other forms: some that all readers read alike, some that they differ on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from chainkit.protocol.proto.envelopes_pb2 import ClientEnvelope

LENGTH, FIXED32 = 2, 5
UNKNOWN = 99


@dataclass(frozen=True)
class Form:
    """A message with one thing changed in it, or in a message within."""

    name: str
    data: bytes
    is_read_alike: bool

    def within(self, field: Any, before: bytes, behind: bytes) -> Form:
        """The message around, whose field this is."""
        data = before + with_length(field.number, self.data) + behind
        return Form(f"{field.name}.{self.name}", data, self.is_read_alike)


def head(number: int, wire_type: int, padding: int = 0) -> bytes:
    """A field's tag, in at least so many bytes."""
    return varint(number << 3 | wire_type, padding)


def varint(value: int, length: int = 0) -> bytes:
    """An integer in at least so many bytes."""
    found = []
    while value > 0x7F or len(found) + 1 < length:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def with_length(number: int, value: bytes, tag: int = 0, length: int = 0) -> bytes:
    """A field with a length; tag and length in at least so many bytes."""
    return head(number, LENGTH, tag) + varint(len(value), length) + value


def forms(data: bytes, descriptor: Any) -> Iterator[Form]:
    """Each form of a message with a field doubled, of another type, unknown, or moved."""
    fields = list(_fields(data))
    parts = [part for _, _, part in fields]
    unknown = with_length(UNKNOWN, b"x")
    is_entry = descriptor.GetOptions().map_entry
    yield Form("reversed", b"".join(reversed(parts)), is_read_alike=True)
    yield Form("an unknown field in front", unknown + data, is_read_alike=not is_entry)
    yield Form("an unknown field behind", data + unknown, is_read_alike=not is_entry)
    for index, (number, wire_type, part) in enumerate(fields):
        field = descriptor.fields_by_number[number]
        before, behind = b"".join(parts[:index]), b"".join(parts[index + 1 :])
        if not field.is_repeated:
            yield Form(f"{field.name} twice", before + part + part + behind, is_read_alike=False)
        else:
            yield Form(f"{field.name} once more", before + part + part + behind, is_read_alike=True)
        other = head(number, FIXED32) + bytes(4)
        yield Form(f"{field.name} of another type", before + other + behind, is_read_alike=False)
        yield Form(f"{field.name} and of another type", data + other, is_read_alike=False)
        if field.message_type is not None:
            assert wire_type == LENGTH
            for form in forms(_value(part), field.message_type):
                yield form.within(field, before, behind)


def differing(client_envelope: bytes) -> list[bytes]:
    """The forms of a ClientEnvelope that readers differ on, and that one of them reads."""
    found = forms(client_envelope, ClientEnvelope.DESCRIPTOR)
    return [each.data for each in found if not each.is_read_alike and _is_read(each.data)]


def _is_read(data: bytes) -> bool:
    try:
        return ClientEnvelope.FromString(data).HasField("aad")
    except DecodeError:
        return False


def _fields(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Number, wire type and bytes of each field of a message of known fields."""
    position = 0
    while position < len(data):
        begin = position
        tag, position = _integer(data, position)
        value, position = _integer(data, position)
        if tag & 7 == LENGTH:
            position += value
        yield tag >> 3, tag & 7, data[begin:position]


def _value(part: bytes) -> bytes:
    _, position = _integer(part, 0)
    length, position = _integer(part, position)
    return part[position : position + length]


def _integer(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        shift, position = shift + 7, position + 1
        if byte < 0x80:
            return value, position

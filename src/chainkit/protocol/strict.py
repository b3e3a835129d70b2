"""Refuses bytes of protobuf that one library reads and another does not.

The libraries differ in what they do with a field of the wrong type (one skips it, another refuses
the message), with groups, and with integers of more than 64 bits. A node that serves what clients
cannot read breaks them; and anybody may append such a field to what others signed.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from chainkit.errors import MalformedData

_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2
_FIXED32: Final = 5
_FIXED_LENGTHS: Final = {_FIXED64: 8, _FIXED32: 4}
_WIRE_TYPES: Final = {
    FieldDescriptor.TYPE_BYTES: _LENGTH,
    FieldDescriptor.TYPE_STRING: _LENGTH,
    FieldDescriptor.TYPE_MESSAGE: _LENGTH,
    FieldDescriptor.TYPE_UINT64: _VARINT,
    FieldDescriptor.TYPE_INT64: _VARINT,
    FieldDescriptor.TYPE_UINT32: _VARINT,
    FieldDescriptor.TYPE_INT32: _VARINT,
    FieldDescriptor.TYPE_ENUM: _VARINT,
    FieldDescriptor.TYPE_BOOL: _VARINT,
}
_VARINT_LENGTH: Final = 10
"""Most bytes of an integer of 64 bits; the last of them holds one bit."""


def check_strict(data: bytes, kind: type[Message]) -> None:
    """Check that the bytes of a message are of the form that every library reads alike.

    Fields come in the order of their numbers, each once unless it is repeated, each of its own
    type; unknown ones are of any type but a group. Messages within are held to the same. Raises
    MalformedData, whose place is the kind of message.
    """
    _check(data, kind.DESCRIPTOR)


def single_field(data: bytes, kind: type[Message], number: int) -> bytes | None:
    """Return the bytes of a message's field with a length, as they came.

    None where the field is not there, or more than once: libraries merge the two into one that
    nobody wrote. Raises MalformedData for bytes that are no message.
    """
    found, position = [], 0
    while position < len(data):
        tag, position = _varint(data, position, kind.DESCRIPTOR)
        value, position = _value(data, position, tag & 7, kind.DESCRIPTOR)
        if tag >> 3 == number:
            found.append(value)
    return found[0] if len(found) == 1 else None


# The library's own class of descriptors and the one of its stubs have no common name.
_Descriptor = Any


def _check(data: bytes, descriptor: _Descriptor) -> None:
    position, last = 0, 0
    while position < len(data):
        tag, position = _varint(data, position, descriptor)
        number, wire_type = tag >> 3, tag & 7
        field = descriptor.fields_by_number.get(number)
        is_repeated = field is not None and field.is_repeated
        if number < last or (number == last and not is_repeated):
            raise _refused(descriptor, "fields in the order of their numbers", f"field {number}")
        if field is not None and _WIRE_TYPES.get(field.type) != wire_type:
            raise _refused(descriptor, f"field {number} of its own type", f"type {wire_type}")
        value, position = _value(data, position, wire_type, descriptor)
        if field is not None and field.message_type is not None:
            _check(value, field.message_type)
        last = number


def _value(
    data: bytes, position: int, wire_type: int, descriptor: _Descriptor
) -> tuple[bytes, int]:
    """Return a field's bytes, none of an integer, and the position behind it."""
    if wire_type == _VARINT:
        return b"", _varint(data, position, descriptor)[1]
    if wire_type == _LENGTH:
        length, position = _varint(data, position, descriptor)
    elif wire_type in _FIXED_LENGTHS:
        length = _FIXED_LENGTHS[wire_type]
    else:
        raise _refused(descriptor, "no group", f"type {wire_type}")
    if length > len(data) - position:
        raise _refused(descriptor, f"{length} bytes of a field", len(data) - position)
    return data[position : position + length], position + length


def _varint(data: bytes, position: int, descriptor: _Descriptor) -> tuple[int, int]:
    """Return an integer and the position behind it."""
    value = 0
    for index, byte in enumerate(data[position : position + _VARINT_LENGTH]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80 and value < 2**64:
            return value, position + index + 1
    raise _refused(descriptor, "an integer of up to 64 bits", "another")


def _refused(descriptor: _Descriptor, expected: str, got: object) -> MalformedData:
    return MalformedData("protobuf", expected, got, descriptor.name)

"""Checks whether all readers of protobuf read the same in the bytes of a message (ADR 54).

Libraries differ in what they do with a field of another wire type (one skips the field, another
refuses the message), with an unknown field in a map's entry (one leaves the entry out of the map),
with long tags, lengths and integers, with groups, and with text that is not UTF-8. Anybody may
append such a field to what others signed; and two honest readers of one signed payload must not see
two cursors. So a payload of a stranger is read by this module before any library reads it:
publishes, envelopes of peers, payloads of the chain, answers that a client gets.

One pass over the bytes, driven by the descriptors: nothing is parsed into objects or written again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from chainkit.errors import MalformedEnvelope

MOST_FIELDS: Final = 10_000
"""Repeated and unknown fields of a message, with all within; an inbox's update has some thousand.

Four million bytes have room for two million fields, which would keep a node busy for a second.
"""

_LENGTH: Final = 2
_GROUP: Final = 3
_WIRE_TYPES: Final = {
    FieldDescriptor.TYPE_BYTES: _LENGTH,
    FieldDescriptor.TYPE_STRING: _LENGTH,
    FieldDescriptor.TYPE_MESSAGE: _LENGTH,
    FieldDescriptor.TYPE_UINT64: 0,
    FieldDescriptor.TYPE_INT64: 0,
    FieldDescriptor.TYPE_UINT32: 0,
    FieldDescriptor.TYPE_INT32: 0,
    FieldDescriptor.TYPE_ENUM: 0,
    FieldDescriptor.TYPE_BOOL: 0,
}
_ENTRY: Final = re.compile(rb"\x08[\x80-\xff]{,8}[\0-\x7f]\x10[\x80-\xff]{,8}[\0-\x7f]")
"""A usual entry of a map from integers to integers, the only kind of map in payloads."""
_SHORT: Final = 5
"""Most bytes of a tag and of a length: some readers take no more."""
_UINT32_MAXIMUM: Final = 2**32 - 1
_LONG: Final = 10
"""Most bytes of an integer of 64 bits; the last of them holds one bit."""


class Deviation(StrEnum):
    """The part of a message that readers read differently, or not at all."""

    BROKEN = "bytes that are no message"
    """No reader reads these."""
    FIELD_0 = "a field with the number 0"
    UNKNOWN_IN_ENTRY = "an unknown field in an entry of a map"
    WRONG_TYPE = "another wire type than the field's"
    REPEATED = "a second value of a field, or of a oneof, that has one"
    LONG_TAG = "a tag of more than 5 bytes or 32 bits"
    LONG_LENGTH = "a length of more than 5 bytes"
    LONG_INTEGER = "an integer of more than 10 bytes or 64 bits"
    GROUP = "a group"
    NO_UTF8 = "text that is not UTF-8"
    OVERRUN = "a value that goes on behind its message"
    TOO_MANY_FIELDS = f"more than {MOST_FIELDS} repeated and unknown fields"


class NotStrict(MalformedEnvelope):
    """Bytes of a message that readers read differently; the subject names message and field."""

    deviation: Deviation


def check_strict(data: bytes, kind: type[Message], most: int = MOST_FIELDS) -> None:
    """Check that upb, Go, prost and protobuf-es read the same in the bytes of a message.

    Fields may come in any order, each known one once unless it is repeated; unknown fields may
    come anywhere but in an entry of a map. Zeros may be left out or written. ``most`` is how many
    repeated and unknown fields there may be, with all within. Raises NotStrict.
    """
    plan = _plan(kind.DESCRIPTOR)
    try:
        _read(data, 0, len(data), plan, most)
    except IndexError:
        raise _refused(plan.name, Deviation.BROKEN) from None


def field_bytes(data: bytes, number: int) -> bytes | None:
    """Return the value of a field with a length, as it came; None where the field is left out.

    The message must have passed ``check_strict``: a reader may take another one of two values.
    """
    for each, _, value, end in _fields(data):
        if each == number:
            return data[value:end]
    return None


def without_field(data: bytes, number: int) -> bytes:
    """Return the bytes of all other fields, as they came, of a message that is strict."""
    return b"".join(data[begin:end] for each, begin, _, end in _fields(data) if each != number)


# The library's own class of descriptors and the one of its stubs have no common name.
_Descriptor = Any


# Forms of a value: plain integers, which Python compares fastest.
_INTEGER: Final = 0
_FIXED: Final = 1
_BYTES: Final = 2
_TEXT: Final = 3
_MESSAGE: Final = 4

_UNKNOWN_FORMS: Final[Mapping[int, tuple[int, int]]] = {
    0: (_INTEGER, 0),
    1: (_FIXED, 8),
    _LENGTH: (_BYTES, 0),
    5: (_FIXED, 4),
}
"""Form and length of an unknown field, by wire type."""

_Step: TypeAlias = tuple[int, int, Any]
"""A bit of its own for a field that comes once, the same for the fields of a oneof, 0 for all
others; the form; the message within, or the length of a fixed value."""


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """The work to do for each tag of a message."""

    name: str
    names: Mapping[int, str]
    """The known fields by number."""
    is_entry: bool
    """Whether the message is an entry of a map."""
    steps: dict[int, _Step] = field(default_factory=dict)
    """By tag."""


@cache
def _plan(descriptor: _Descriptor) -> _Plan:
    names = {each.number: each.name for each in descriptor.fields}
    plan = _Plan(descriptor.name, names, descriptor.GetOptions().map_entry)
    for each in descriptor.fields:
        wire_type = _WIRE_TYPES[each.type]
        oneof = each.containing_oneof
        bit = 1 << (each.index if oneof is None else len(names) + oneof.index)
        once = 0 if each.is_repeated else bit
        plan.steps[each.number << 3 | wire_type] = once, *_form(each, wire_type)
    return plan


def _form(field_: _Descriptor, wire_type: int) -> tuple[int, Any]:
    if field_.message_type is not None:
        return _MESSAGE, _plan(field_.message_type)
    if field_.type == FieldDescriptor.TYPE_STRING:
        return _TEXT, None
    return (_BYTES if wire_type else _INTEGER), None


# Strangers choose the tags: all of them would not fit into the memory.
@lru_cache(maxsize=256)
def _unknown(plan: _Plan, tag: int) -> _Step:
    """Return the work for an unknown field, if every reader skips it."""
    number, wire_type = tag >> 3, tag & 7
    if number == 0:
        raise _refused(_named(plan, tag), Deviation.FIELD_0)
    if wire_type != _GROUP and wire_type not in _UNKNOWN_FORMS:
        raise _refused(_named(plan, tag), Deviation.BROKEN)
    if number in plan.names:
        raise _refused(_named(plan, tag), Deviation.WRONG_TYPE)
    if wire_type == _GROUP:
        raise _refused(_named(plan, tag), Deviation.GROUP)
    if plan.is_entry:
        raise _refused(_named(plan, tag), Deviation.UNKNOWN_IN_ENTRY)
    return 0, *_UNKNOWN_FORMS[wire_type]


def _read(data: bytes, position: int, end: int, plan: _Plan, left: int) -> int:
    """Check the fields up to ``end``; return how many repeated and unknown ones may still come.

    Raises IndexError where the data end in a field.
    """
    step_of, seen = plan.steps.get, 0
    while position < end:
        tag = data[position]
        position += 1
        if tag > 0x7F:
            tag, position = _short(data, position - 1, plan, 0, Deviation.LONG_TAG)
        bit, form, within = step_of(tag) or _unknown(plan, tag)
        if bit:
            if seen & bit:
                raise _refused(_named(plan, tag), Deviation.REPEATED)
            seen |= bit
        else:
            left -= 1
            if left < 0:
                raise _refused(plan.name, Deviation.TOO_MANY_FIELDS)
        begin = position
        if form == _INTEGER:
            while data[position] > 0x7F:
                position += 1
            position += 1
            if position - begin >= _LONG and (position - begin > _LONG or data[position - 1] > 1):
                raise _refused(_named(plan, tag), Deviation.LONG_INTEGER)
            continue
        if form == _FIXED:
            position += within
            continue
        length = data[position]
        begin += 1
        if length > 0x7F:
            length, begin = _short(data, position, plan, tag, Deviation.LONG_LENGTH)
        position = begin + length
        if position > end:
            raise _overrun(_named(plan, tag), position, data)
        if form == _MESSAGE:
            if within.is_entry and _ENTRY.fullmatch(data, begin, position):
                continue
            left = _read(data, begin, position, within, left)
        elif form == _TEXT:
            _check_text(data[begin:position], plan, tag)
    if position != end:
        # The message ends in an integer or in a fixed value.
        raise _overrun(plan.name, position, data)
    return left


def _short(
    data: bytes, position: int, plan: _Plan, tag: int, deviation: Deviation
) -> tuple[int, int]:
    """Return a tag or a length, and the position behind it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80 and value <= _UINT32_MAXIMUM:
            return value, position
        shift += 7
        if byte < 0x80 or shift == 7 * _SHORT:
            # A tag that is too long names no field.
            raise _refused(_named(plan, tag) if tag else plan.name, deviation)


def _check_text(text: bytes, plan: _Plan, tag: int) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        raise _refused(_named(plan, tag), Deviation.NO_UTF8) from None


def _fields(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Return number, begin, begin of the value, and end of each field of a strict message."""
    end = 0
    while end < len(data):
        begin = end
        tag, value = _varint(data, begin)
        form, length = _UNKNOWN_FORMS[tag & 7]
        if form == _BYTES:
            length, value = _varint(data, value)
        end = _varint(data, value)[1] if form == _INTEGER else value + length
        yield tag >> 3, begin, value, end


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return an integer of a strict message, and the position behind it."""
    byte = data[position]
    value, shift = byte & 0x7F, 7
    while byte > 0x7F:
        position += 1
        byte = data[position]
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, position + 1


def _named(plan: _Plan, tag: int) -> str:
    # Strangers choose the numbers of unknown fields: reasons are counted one by one.
    return f"{plan.name}.{plan.names.get(tag >> 3, 'unknown')}"


def _overrun(name: str, position: int, data: bytes) -> NotStrict:
    """Return the refusal of a value that ends behind its message, which some readers accept."""
    return _refused(name, Deviation.BROKEN if position > len(data) else Deviation.OVERRUN)


def _refused(name: str, deviation: Deviation) -> NotStrict:
    error = NotStrict(name, "what all readers read alike", deviation)
    error.deviation = deviation
    return error

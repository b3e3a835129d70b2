"""Faults in the form of an envelope: what decodes to the same but is not, and what does not."""

from __future__ import annotations

import random
from typing import Final

from benchmarks.audit.exports.columns import varint
from benchmarks.audit.faults.content import flipped
from benchmarks.audit.faults.kind import Kind, Served, Window
from benchmarks.audit.faults.wire import (
    data,
    envelope,
    number,
    proof,
    signature_of,
    signed,
    unsigned,
    unsigned_fields,
)
from chainkit_jobs.findings import Code

_ALTERED: Final = ((Code.ENVELOPE_ALTERED, 0),)
_UNREADABLE: Final = ((Code.ENVELOPE_UNREADABLE, 0),)
_FORM_DIFFERS: Final = ((Code.ENVELOPE_FORM_DIFFERS, 0),)
_UNKNOWN_FIELD: Final = number(15, 1)


def _long(value: bytes) -> bytes:
    """Write a varint with a byte more than it needs."""
    return value[:-1] + bytes((value[-1] | 0x80, 0))


def _unknown_field(window: Window) -> list[Served]:
    return [window.signed(unsigned(window.payloads[0]) + _UNKNOWN_FIELD)]


def _long_varint(window: Window) -> list[Served]:
    sequence, *others = unsigned_fields(window.payloads[0])
    return [window.signed(_long(sequence) + b"".join(others))]


def _fields_in_other_order(window: Window) -> list[Served]:
    return [window.signed(b"".join(reversed(unsigned_fields(window.payloads[0]))))]


def _zero_written(window: Window) -> list[Served]:
    return [window.signed(number(1, 0) + unsigned(window.payloads[0]))]


def _sequence_twice(window: Window) -> list[Served]:
    """Write a wrong sequence before the right one: the last one counts."""
    [payload] = window.payloads
    return [window.signed(number(2, payload.sequence_id + 1) + unsigned(payload))]


def _second_unsigned(window: Window) -> list[Served]:
    """Begin with the right bytes, and have others count."""
    [payload] = window.payloads
    other = unsigned(payload) + _UNKNOWN_FIELD
    signature = signature_of(window.key, other, payload.transaction_hash)
    right = envelope(unsigned(payload), payload.transaction_hash, signature)
    return [window.raw(right + data(1, other))]


def _second_transaction(window: Window) -> list[Served]:
    [payload] = window.payloads
    other = flipped(payload.transaction_hash, 0)
    signature = signature_of(window.key, unsigned(payload), other)
    right = envelope(unsigned(payload), payload.transaction_hash, signature)
    return [window.raw(right + data(3, data(1, other)))]


def _outer(window: Window, content: bytes) -> list[Served]:
    return [window.raw(data(1, unsigned(window.payloads[0])) + content)]


def _originator_signature(window: Window) -> list[Served]:
    [payload] = window.payloads
    signature = signature_of(window.key, unsigned(payload), payload.transaction_hash)
    return _outer(window, data(2, data(1, signature)))


def _second_proof(window: Window) -> list[Served]:
    return [window.raw(window.honest().envelope + data(2, data(1, bytes(65))))]


def _no_proof(window: Window) -> list[Served]:
    return _outer(window, b"")


def _short_transaction(window: Window) -> list[Served]:
    short = window.payloads[0].transaction_hash[:-1]
    return [window.raw(signed(window.key, unsigned(window.payloads[0]), short))]


def _truncated(window: Window) -> list[Served]:
    whole = window.honest().envelope
    return [window.raw(whole[: len(whole) // 2])]


def _truncated_by_a_byte(window: Window) -> list[Served]:
    return [window.raw(window.honest().envelope[:-1])]


def _empty(window: Window) -> list[Served]:
    return [window.raw(b"")]


def _random(window: Window) -> list[Served]:
    # No message begins with field 0.
    return [window.raw(b"\x00" + random.Random(window.payloads[0].sequence_id).randbytes(300))]


def _outer_unknown_field(window: Window) -> list[Served]:
    return [window.raw(window.honest().envelope + _UNKNOWN_FIELD)]


def _outer_other_order(window: Window) -> list[Served]:
    [payload] = window.payloads
    signature = signature_of(window.key, unsigned(payload), payload.transaction_hash)
    last = data(1, unsigned(payload))
    return [window.raw(data(3, proof(payload.transaction_hash, signature)) + last)]


def _outer_long_varint(window: Window) -> list[Served]:
    [payload] = window.payloads
    content = unsigned(payload)
    rest = window.honest().envelope[len(data(1, content)) :]
    return [window.raw(b"\x0a" + _long(varint(len(content))) + content + rest)]


FORM: Final = (
    Kind("unknown_field", "an unknown field in what is signed", _unknown_field, _ALTERED),
    Kind("long_varint", "the sequence in a byte more than it needs", _long_varint, _ALTERED),
    Kind(
        "fields_in_other_order",
        "what is signed with its fields in the other order",
        _fields_in_other_order,
        _ALTERED,
    ),
    Kind("zero_written", "the originator 0 written out", _zero_written, _ALTERED),
    Kind("sequence_twice", "another sequence before the right one", _sequence_twice, _ALTERED),
    Kind(
        "second_unsigned",
        "other bytes behind the right ones, in the same field",
        _second_unsigned,
        _ALTERED,
    ),
    Kind(
        "second_transaction",
        "another transaction hash behind the right one, in the same field",
        _second_transaction,
        _ALTERED,
    ),
    Kind(
        "originator_signature",
        "an originator's signature in place of the proof",
        _originator_signature,
        _UNREADABLE,
    ),
    Kind("second_proof", "an originator's signature behind the proof", _second_proof, _UNREADABLE),
    Kind("no_proof", "no proof", _no_proof, _UNREADABLE),
    Kind("short_transaction", "a transaction hash of 31 bytes", _short_transaction, _UNREADABLE),
    Kind("truncated", "the first half of the envelope", _truncated, _UNREADABLE),
    Kind(
        "truncated_by_a_byte",
        "the envelope without its last byte",
        _truncated_by_a_byte,
        _UNREADABLE,
    ),
    Kind("empty", "no bytes", _empty, _UNREADABLE),
    Kind("random", "bytes that are no message", _random, _UNREADABLE),
    # A change outside of the signed bytes changes nothing that the node says: a note.
    Kind(
        "outer_unknown_field",
        "an unknown field behind the proof",
        _outer_unknown_field,
        _FORM_DIFFERS,
    ),
    Kind("outer_other_order", "the proof before what it proves", _outer_other_order, _FORM_DIFFERS),
    Kind(
        "outer_long_varint",
        "a length in a byte more than it needs",
        _outer_long_varint,
        _FORM_DIFFERS,
    ),
)

"""Faults in what an envelope says, which the node signed nevertheless."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from benchmarks.audit.faults.kind import Kind, Served, Window
from benchmarks.audit.faults.wire import (
    data,
    envelope,
    payer_envelope,
    signature_of,
    signed,
    unsigned,
    unsigned_fields,
)
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_jobs.findings import Code

_HIGHEST: Final = 2**64 - 1
_OTHER_ORIGINATOR: Final = 100
_ALTERED: Final = ((Code.ENVELOPE_ALTERED, 0),)
_BOTH_ALTERED: Final = ((Code.ENVELOPE_ALTERED, 0), (Code.ENVELOPE_ALTERED, 1))
_IDENTIFIER_BYTE: Final = 10
"""Well within the topic of a ClientEnvelope, whose first field it is."""


def flipped(content: bytes, index: int) -> bytes:
    """Return bytes with one bit of one byte changed."""
    changed = bytearray(content)
    changed[index] ^= 1
    return bytes(changed)


def altered(window: Window, index: int = 0, **changes: Any) -> Served:
    """Return what the node signs of a payload that it changed."""
    return window.signed(unsigned(replace(window.payloads[index], **changes)), index)


def _payload_byte(window: Window) -> list[Served]:
    return [altered(window, client_envelope=flipped(window.payloads[0].client_envelope, -1))]


def _payload_byte_not_signed(window: Window) -> list[Served]:
    [payload] = window.payloads
    changed = replace(payload, client_envelope=flipped(payload.client_envelope, -1))
    signature = signature_of(window.key, unsigned(payload), payload.transaction_hash)
    return [window.raw(envelope(unsigned(changed), payload.transaction_hash, signature))]


def _payload_cut(window: Window) -> list[Served]:
    return [altered(window, client_envelope=window.payloads[0].client_envelope[:-1])]


def _payloads_swapped(window: Window) -> list[Served]:
    first, second = window.payloads
    return [
        altered(window, 0, client_envelope=second.client_envelope),
        altered(window, 1, client_envelope=first.client_envelope),
    ]


def _topic(window: Window) -> list[Served]:
    content = flipped(window.payloads[0].client_envelope, _IDENTIFIER_BYTE)
    return [altered(window, client_envelope=content)]


def _originator(window: Window) -> list[Served]:
    return [window.signed(unsigned(window.payloads[0], _OTHER_ORIGINATOR))]


def _sequence_next(window: Window) -> list[Served]:
    return [altered(window, sequence_id=window.payloads[1].sequence_id), window.honest(1)]


def _sequence_zero(window: Window) -> list[Served]:
    return [altered(window, sequence_id=0)]


def _sequence_highest(window: Window) -> list[Served]:
    return [altered(window, sequence_id=_HIGHEST)]


def _sequence_above_counter(window: Window) -> list[Served]:
    return [altered(window, sequence_id=window.counter + window.payloads[0].sequence_id)]


def _sequences_swapped(window: Window) -> list[Served]:
    first, second = window.payloads
    return [
        altered(window, 0, sequence_id=second.sequence_id),
        altered(window, 1, sequence_id=first.sequence_id),
    ]


def _time_by_nanosecond(window: Window) -> list[Served]:
    return [altered(window, originator_ns=window.payloads[0].originator_ns + 1)]


def _time_of_another_block(window: Window) -> list[Served]:
    before = window.payloads[0].originator_ns - 2 * NANOSECONDS_PER_SECOND
    return [altered(window, originator_ns=before)]


def _transaction(window: Window, transaction_hash: bytes) -> Served:
    return window.raw(signed(window.key, unsigned(window.payloads[0]), transaction_hash))


def _transaction_bit(window: Window) -> list[Served]:
    return [_transaction(window, flipped(window.payloads[0].transaction_hash, 0))]


def _transaction_of_another(window: Window) -> list[Served]:
    return [_transaction(window, window.payloads[1].transaction_hash), window.honest(1)]


def _payer_signature(window: Window) -> list[Served]:
    [payload] = window.payloads
    payer = payer_envelope(payload) + data(2, data(1, bytes(65)))
    return [window.signed(b"".join(unsigned_fields(payload)[:-1]) + data(4, payer))]


CONTENT: Final = (
    Kind("payload_byte", "one bit of the payload", _payload_byte, _ALTERED),
    Kind(
        "payload_byte_not_signed",
        "one bit of the payload, under the signature of the right one",
        _payload_byte_not_signed,
        (*_ALTERED, (Code.SIGNATURE_INVALID, 0)),
    ),
    Kind("payload_cut", "the payload without its last byte", _payload_cut, _ALTERED),
    Kind("payloads_swapped", "two payloads swapped", _payloads_swapped, _BOTH_ALTERED, 2),
    Kind("topic", "one bit of the identifier in the payload's topic", _topic, _ALTERED),
    Kind(
        "originator",
        "another originator",
        _originator,
        (
            (Code.ENVELOPE_MISSING, 0),
            (
                Code.ENVELOPE_INVENTED,
                lambda window: (_OTHER_ORIGINATOR, window.payloads[0].sequence_id),
            ),
        ),
    ),
    Kind(
        "sequence_next",
        "the sequence after the right one, which is served too",
        _sequence_next,
        (
            (Code.ENVELOPE_MISSING, 0),
            (Code.ENVELOPE_ALTERED, 1),
            (Code.ENVELOPE_DUPLICATED, 1),
        ),
        width=2,
    ),
    Kind(
        "sequence_zero",
        "sequence 0",
        _sequence_zero,
        ((Code.ENVELOPE_MISSING, 0), (Code.ENVELOPE_INVENTED, lambda window: (0, 0))),
        is_alone=True,
    ),
    Kind(
        "sequence_highest",
        "the highest sequence that a uint64 holds",
        _sequence_highest,
        ((Code.ENVELOPE_MISSING, 0), (Code.ENVELOPE_INVENTED, lambda window: (0, _HIGHEST))),
        is_alone=True,
    ),
    Kind(
        "sequence_above_counter",
        "a sequence that the contracts did not give out",
        _sequence_above_counter,
        (
            (Code.ENVELOPE_MISSING, 0),
            (
                Code.ENVELOPE_INVENTED,
                lambda window: (0, window.counter + window.payloads[0].sequence_id),
            ),
        ),
    ),
    Kind("sequences_swapped", "two sequences swapped", _sequences_swapped, _BOTH_ALTERED, 2),
    Kind("time_by_nanosecond", "the time by a nanosecond", _time_by_nanosecond, _ALTERED),
    Kind("time_of_another_block", "another block's time", _time_of_another_block, _ALTERED),
    Kind("transaction_bit", "one bit of the transaction hash", _transaction_bit, _ALTERED),
    Kind(
        "transaction_of_another",
        "the transaction of another payload",
        _transaction_of_another,
        _ALTERED,
        width=2,
    ),
    Kind("payer_signature", "a payer's signature added", _payer_signature, _ALTERED),
)

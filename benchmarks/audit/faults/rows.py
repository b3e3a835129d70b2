"""Faults in which rows a node serves, and how often."""

from __future__ import annotations

from typing import Final

from benchmarks.audit.faults.content import altered
from benchmarks.audit.faults.kind import Kind, Place, Served, Window
from chainkit_jobs.findings import Code

_MISSING: Final = ((Code.ENVELOPE_MISSING, 0),)
_RUN: Final = 5
_LIE: Final = 1_000_000_007
"""Added to the sequence that a table claims."""


def _nothing(window: Window) -> list[Served]:
    return []


def _altered(window: Window, nanoseconds: int = 1) -> Served:
    return altered(window, originator_ns=window.payloads[0].originator_ns + nanoseconds)


def _twice(window: Window) -> list[Served]:
    return [window.honest(), window.honest()]


def _beside_right(window: Window) -> list[Served]:
    return [_altered(window), window.honest()]


def _two_altered(window: Window) -> list[Served]:
    return [_altered(window, 1), _altered(window, 2)]


def _altered_twice(window: Window) -> list[Served]:
    return [_altered(window), _altered(window)]


def _unreadable_beside_right(window: Window) -> list[Served]:
    return [window.honest(), window.raw(b"")]


def _unreadable_elsewhere(window: Window) -> list[Served]:
    return [Served(b"", window.counter + window.payloads[0].sequence_id)]


def _honest(window: Window) -> list[Served]:
    return [window.honest()]


def _claimed_otherwise(window: Window) -> list[Served]:
    served = window.honest()
    return [served._replace(claimed_sequence_id=served.claimed_sequence_id + _LIE)]


def _claims_swapped(window: Window) -> list[Served]:
    first, second = window.honest(0), window.honest(1)
    return [
        first._replace(claimed_sequence_id=second.claimed_sequence_id),
        second._replace(claimed_sequence_id=first.claimed_sequence_id),
    ]


def _other_order(window: Window) -> list[Served]:
    return [window.honest(1), window.honest(0)]


ROWS: Final = (
    Kind("omitted", "one payload left out", _nothing, _MISSING),
    Kind(
        "omitted_run",
        "five payloads in succession left out",
        _nothing,
        tuple((Code.ENVELOPE_MISSING, index) for index in range(_RUN)),
        width=_RUN,
    ),
    Kind("omitted_first", "the first payload left out", _nothing, _MISSING, place=Place.FIRST),
    Kind("omitted_last", "the last payload left out", _nothing, _MISSING, place=Place.LAST),
    Kind("twice", "the right bytes twice", _twice, ((Code.ENVELOPE_DUPLICATED, 0),)),
    Kind(
        "altered_beside_right",
        "an altered envelope beside the right one",
        _beside_right,
        ((Code.ENVELOPE_ALTERED, 0), (Code.ENVELOPE_DUPLICATED, 0)),
    ),
    Kind(
        "two_altered",
        "two altered envelopes that differ",
        _two_altered,
        (
            (Code.ENVELOPE_ALTERED, 0),
            (Code.ENVELOPE_ALTERED, 0),
            (Code.ENVELOPE_DUPLICATED, 0),
        ),
    ),
    Kind(
        "altered_twice",
        "the same altered envelope twice",
        _altered_twice,
        ((Code.ENVELOPE_ALTERED, 0), (Code.ENVELOPE_DUPLICATED, 0)),
    ),
    Kind(
        "unreadable_beside_right",
        "no bytes beside the right ones",
        _unreadable_beside_right,
        ((Code.ENVELOPE_UNREADABLE, 0),),
    ),
    Kind(
        "unreadable_elsewhere",
        "no bytes, under a sequence that the contracts did not give out",
        _unreadable_elsewhere,
        (
            (Code.ENVELOPE_MISSING, 0),
            (
                Code.ENVELOPE_UNREADABLE,
                lambda window: (0, window.counter + window.payloads[0].sequence_id),
            ),
        ),
    ),
    Kind(
        "quarantined_served",
        "a malformed payload, as it stands on the chain",
        _honest,
        ((Code.QUARANTINED_SERVED, 0),),
        place=Place.QUARANTINED,
    ),
    Kind(
        "quarantined_altered",
        "a malformed payload at another time",
        lambda window: [_altered(window)],
        ((Code.ENVELOPE_ALTERED, 0),),
        place=Place.QUARANTINED,
    ),
    # The audit reads what was signed, in whatever order it comes.
    Kind("claimed_otherwise", "another sequence in the column beside it", _claimed_otherwise),
    Kind("claims_swapped", "the columns of two envelopes swapped", _claims_swapped, width=2),
    Kind("other_order", "two envelopes in the other order", _other_order, width=2),
)

"""Decodes one answer of a node: rows for the export, and the next cursor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from chainkit.errors import ChainkitError, MalformedEnvelope
from chainkit.protocol.envelope import parse_originator_envelope, recover_node_key
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID

HIGHEST_SEQUENCE: Final = 2**64 - 1

Row = tuple[int, Decimal, bytes]
"""Columns of exports.tables.ANSWERED_ENVELOPES."""


@dataclass(frozen=True, slots=True)
class Page:
    """The envelopes of one answer."""

    rows: tuple[Row, ...]
    """The rows in the order of the answer, valid or not."""
    cursor: int
    """The highest sequence id of the answer; that which was asked behind, where none is higher."""


def read_page(
    envelopes: Sequence[bytes], after: int, originator_id: int = BLOCKCHAIN_ORIGINATOR_ID
) -> Page:
    """Take an answer apart that was asked for behind a sequence id of an originator.

    Nothing is left out: an envelope at or below ``after``, of another originator or out of order is
    the node's fault, which the audit names.
    """
    rows: list[Row] = []
    place, cursor = after, after
    for envelope in envelopes:
        place = _sequence_id(envelope, min(place + 1, HIGHEST_SEQUENCE))
        rows.append((originator_id, Decimal(place), envelope))
        cursor = max(cursor, place)
    return Page(tuple(rows), cursor)


def _sequence_id(envelope: bytes, otherwise: int) -> int:
    try:
        return parse_originator_envelope(envelope).sequence_id
    except MalformedEnvelope:
        return otherwise


def keys_of(envelopes: Sequence[bytes]) -> Iterator[bytes]:
    """Recover the keys (65 bytes) that signed some envelopes; of those that nobody signed, none."""
    for envelope in envelopes:
        try:
            yield recover_node_key(parse_originator_envelope(envelope))
        except ChainkitError:
            continue

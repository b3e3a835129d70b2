"""Leaves out payloads under sparse sequence ids that an earlier payload has (ADR 50).

The first log under an id stays, served or in quarantine: a later log changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import Connection, select

from chainkit_indexer.storage.block_ranges import PAYLOAD_TABLES
from chainkit_indexer.types import PageRows, PlacedEvent, VerifiedPage

_LOOKUP_CHUNK: Final = 500
"""Ids looked up by one statement: databases limit a statement's parameters."""

Key = tuple[int, int]
"""Originator id and sequence id."""

_Place = tuple[int, int]
"""Block number and log index."""


def without_repeated(
    connection: Connection, page: VerifiedPage, rows: PageRows, sparse: Collection[int]
) -> tuple[Sequence[PlacedEvent], PageRows]:
    """Return the events of a page whose ids no earlier payload has, in chain order, and their rows.

    The page's events may have ids that cannot be stored; ``rows`` have none. Payloads of blocks
    below the page are looked up in the database.
    """
    taken = {(row[0], row[1]) for row in (*rows.logs, *rows.quarantine)}
    below = page.blocks[0].header.number
    known = _known(connection, [key for key in taken if key[0] in sparse], below)
    first: dict[Key, _Place] = {}
    for placed in page.events:
        key = (placed.event.originator_id, placed.event.sequence_id)
        if key in taken and key not in known:
            first.setdefault(key, (placed.log.block_number, placed.log.log_index))
    served = [_is_first(first, row) for row in rows.logs]
    return (
        [placed for placed in page.events if _is_first_event(first, placed)],
        PageRows(
            tuple(row for row, stays in zip(rows.envelopes, served, strict=True) if stays),
            tuple(row for row, stays in zip(rows.logs, served, strict=True) if stays),
            tuple(row for row in rows.quarantine if _is_first(first, row)),
        ),
    )


def _known(connection: Connection, keys: Sequence[Key], below: int) -> set[Key]:
    found: set[Key] = set()
    for originator_id in {key[0] for key in keys}:
        ids = [key[1] for key in keys if key[0] == originator_id]
        for start in range(0, len(ids), _LOOKUP_CHUNK):
            chunk = ids[start : start + _LOOKUP_CHUNK]
            for table in PAYLOAD_TABLES:
                query = select(table.c.sequence_id).where(
                    table.c.originator_id == originator_id,
                    table.c.sequence_id.in_(chunk),
                    table.c.block_number < below,
                )
                found |= {(originator_id, each) for each in connection.scalars(query)}
    return found


def _is_first(first: dict[Key, _Place], row: tuple[Any, ...]) -> bool:
    originator_id, sequence_id, block_number, *_ = row
    # As in ``types.LOG_COLUMNS``, with which rows of the quarantine begin too.
    return first.get((originator_id, sequence_id)) == (block_number, row[6])


def _is_first_event(first: dict[Key, _Place], placed: PlacedEvent) -> bool:
    key = (placed.event.originator_id, placed.event.sequence_id)
    return first.get(key) == (placed.log.block_number, placed.log.log_index)

"""Compares the stored rows with a page of the chain."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Table, exists, select

from chainkit.errors import MalformedData
from chainkit.protocol.envelope import (
    originator_envelope,
    parse_originator_envelope,
    recover_node_key,
)
from chainkit.signatures import keccak256
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.blocks import read_position
from chainkit_indexer.storage.cursor_text import encode_sequence_ids
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.repeated import without_repeated
from chainkit_indexer.types import (
    ENVELOPE_COLUMNS,
    LOG_COLUMNS,
    QUARANTINE_COLUMNS,
    IndexedBlock,
    PageRows,
    VerifiedPage,
)

_SHOWN_BYTES: Final = 65
_SERVED: Final = "envelope"
_QUARANTINED: Final = "quarantined payload"
_LOOKUP_CHUNK: Final = 500
"""Ids looked up by one statement: databases limit a statement's parameters."""

_Built = Sequence[tuple[Any, ...]]
"""Rows that were built from a page; their first columns are those of LOG_COLUMNS."""

Key = tuple[int, int]
"""Originator id and sequence id."""

Row = dict[str, Any]
"""Column to value; a stored envelope without a log has no columns of one."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between the chain and the database."""

    what: str
    expected: str
    got: str
    where: str

    def __str__(self) -> str:
        """One line, as errors are written."""
        return f"{self.what}: expected {self.expected}, got {self.got} ({self.where})"


def page_differences(
    connection: Connection, page: VerifiedPage, rows: PageRows, identity: Identity
) -> Iterator[Difference]:
    """Yield the differences between the stored rows and a page with its built rows.

    The stored rows are found by the page's sequence ids, which the chain proved to have no gap, so
    that a row is found even if its other columns are wrong. Rows with sparse ids are found by the
    ids and by the blocks.
    """
    sparse = identity.sparse_originator_ids
    if sparse:
        _, rows = without_repeated(connection, page, rows, sparse)
    known = _known_blocks(connection, page)
    for block in page.blocks:
        if (stored := known.get(block.header.number)) is not None:
            yield from _block_differences(block, stored)
    served = [
        dict(zip(LOG_COLUMNS, log, strict=True))
        | dict(zip(ENVELOPE_COLUMNS, envelope, strict=True))
        for log, envelope in zip(rows.logs, rows.envelopes, strict=True)
    ]
    quarantine = [dict(zip(QUARANTINE_COLUMNS, values, strict=True)) for values in rows.quarantine]
    for kind, built, found in (
        (_SERVED, served, _served_rows(connection, page, rows.logs, sparse)),
        (
            _QUARANTINED,
            quarantine,
            _rows_of(connection, schema.quarantine, page, rows.quarantine, sparse),
        ),
    ):
        for expected in built:
            yield from _row_differences(kind, expected, found, identity.node_public_key)
        for key, row in found.items():
            yield _difference(_name(kind, key), "none", "one", _where(row))


def end_differences(
    connection: Connection, last: IndexedBlock, sparse: Collection[int]
) -> Iterator[Difference]:
    """Yield rows that belong to no block of the chain, and where the cursor is wrong."""
    where = f"block {last.header.number}"
    position = read_position(connection)
    is_cursor = position is not None and position.header.number == last.header.number
    # Below the cursor, the cursor's numbers bound the sequence: later rows were not compared.
    ends = last if is_cursor or position is None else position
    strays = _strays(connection, ends.sequence_ids)
    for kind, key in chain(strays, _sparse_strays(connection, ends.header.number, sparse)):
        yield _difference(_name(kind, key), "none", "one", where)
    if position is not None and is_cursor and position.sequence_ids != last.sequence_ids:
        expected = f"sequence ids {dict(last.sequence_ids)}"
        yield _difference("cursor", expected, dict(position.sequence_ids), where)


def _row_differences(
    kind: str, expected: Row, found: dict[Key, Row], node_public_key: bytes
) -> Iterator[Difference]:
    key, where = (expected["originator_id"], expected["sequence_id"]), _where(expected)
    name = _name(kind, key)
    row = found.pop(key, {})
    if not row or (kind == _SERVED and "envelope" not in row):
        yield _difference(name, "one", "none", where)
        return
    if "log_index" not in row:
        yield _difference(name, "its log", "none", where)
    for column, value in expected.items():
        if column != "envelope" and row.get(column, value) != value:
            yield _difference(name, f"{column} {_shown(value)}", row[column], where)
    if kind == _SERVED:
        problem = _envelope_problem(expected["envelope"], row["envelope"], node_public_key)
        if problem is not None:
            yield _difference(name, *problem, where)


def _envelope_problem(
    unsigned_yet: bytes, stored: bytes, node_public_key: bytes
) -> tuple[str, object] | None:
    """Describe the first difference of an envelope; the other differences follow from it."""
    built = parse_originator_envelope(unsigned_yet)
    content, transaction = built.unsigned_originator_envelope, built.transaction_hash
    try:
        served = parse_originator_envelope(stored)
    except MalformedData as error:
        return str(error.expected), error.got
    if served.unsigned_originator_envelope != content:
        return f"signed content {_shown(content)}", served.unsigned_originator_envelope
    if served.transaction_hash != transaction:
        return f"proof of transaction {_shown(transaction)}", served.transaction_hash
    try:
        signer = _shown(recover_node_key(served))
    except MalformedData as error:
        signer = str(error.got)
    if signer != (expected := _shown(node_public_key)):
        return f"signature of {expected}", signer
    whole = originator_envelope(content, transaction, served.node_signature)
    return None if whole == stored else (f"envelope {_shown(whole)}", stored)


def _served_rows(
    connection: Connection, page: VerifiedPage, built: _Built, sparse: Collection[int]
) -> dict[Key, Row]:
    logs = _rows_of(connection, schema.envelope_logs, page, built, sparse)
    envelopes = _rows_of(connection, schema.envelopes, page, built, sparse)
    return {key: logs.get(key, {}) | envelopes.get(key, {}) for key in logs | envelopes}


def _rows_of(
    connection: Connection,
    table: Table,
    page: VerifiedPage,
    built: _Built,
    sparse: Collection[int],
) -> dict[Key, Row]:
    rows: dict[Key, Row] = {}
    for originator_id, last in page.last.sequence_ids.items():
        if originator_id in sparse:
            conditions = list(_sparse_conditions(table, page, originator_id, built))
        else:
            first = page.start.sequence_ids[originator_id]
            conditions = [(table.c.sequence_id > first) & (table.c.sequence_id <= last)]
        for condition in conditions:
            query = select(table).where(table.c.originator_id == originator_id, condition)
            found = connection.execute(query).mappings()
            rows |= {(originator_id, row["sequence_id"]): {**row} for row in found}
    return rows


def _sparse_conditions(
    table: Table, page: VerifiedPage, originator_id: int, built: _Built
) -> Iterator[ColumnElement[bool]]:
    """Yield conditions for the rows of a page's blocks, and of the page's sequence ids."""
    source = table if "block_number" in table.c else schema.envelope_logs
    blocks = source.c.block_number.between(page.blocks[0].header.number, page.last.header.number)
    stored = select(source.c.sequence_id).where(source.c.originator_id == originator_id, blocks)
    yield table.c.sequence_id.in_(stored)
    # As in ``types.LOG_COLUMNS``.
    ids = [row[1] for row in built if row[0] == originator_id]
    for start in range(0, len(ids), _LOOKUP_CHUNK):
        yield table.c.sequence_id.in_(ids[start : start + _LOOKUP_CHUNK])


def _known_blocks(connection: Connection, page: VerifiedPage) -> dict[int, Mapping[Any, Any]]:
    number = schema.blocks.c.number
    first, last = page.blocks[0].header.number, page.last.header.number
    query = select(schema.blocks).where(number.between(first, last))
    return {row["number"]: row for row in connection.execute(query).mappings()}


def _block_differences(block: IndexedBlock, stored: Mapping[Any, Any]) -> Iterator[Difference]:
    header = block.header
    expected = {
        "hash": header.hash,
        "parent_hash": header.parent_hash,
        "timestamp": header.timestamp,
        "sequence_ids": encode_sequence_ids(block.sequence_ids),
    }
    for column, value in expected.items():
        if stored[column] != value:
            what = f"{column} {_shown(value)}"
            yield _difference("known block", what, stored[column], f"block {header.number}")


def _strays(connection: Connection, sequence_ids: Mapping[int, int]) -> Iterator[tuple[str, Key]]:
    """Find rows of an originator that is not followed, or beyond the sequence's ends.

    An envelope without a log may be another originator's, whose envelopes are not of the chain.
    """
    logs, envelopes, quarantine = schema.envelope_logs, schema.envelopes, schema.quarantine
    served = {
        *_rows_beyond(connection, logs, _originators(connection, logs), sequence_ids),
        *_rows_beyond(connection, envelopes, sequence_ids, sequence_ids),
    }
    yield from ((_SERVED, key) for key in sorted(served))
    originators = _originators(connection, quarantine)
    for key in _rows_beyond(connection, quarantine, originators, sequence_ids):
        yield _QUARANTINED, key


def _sparse_strays(
    connection: Connection, last_block: int, sparse: Collection[int]
) -> Iterator[tuple[str, Key]]:
    """Find rows with sparse ids that lie above a block, or are of no log."""
    logs, envelopes, quarantine = schema.envelope_logs, schema.envelopes, schema.quarantine
    of_log = (logs.c.originator_id == envelopes.c.originator_id) & (
        logs.c.sequence_id == envelopes.c.sequence_id
    )
    for kind, table, condition in (
        (_SERVED, logs, logs.c.block_number > last_block),
        (_SERVED, envelopes, ~exists().where(of_log)),
        (_QUARANTINED, quarantine, quarantine.c.block_number > last_block),
    ):
        for originator_id in sorted(sparse):
            query = select(table.c.sequence_id).where(
                table.c.originator_id == originator_id, condition
            )
            for found in connection.scalars(query.order_by(table.c.sequence_id)):
                yield kind, (originator_id, found)


def _rows_beyond(
    connection: Connection,
    table: Table,
    originators: Iterable[int],
    sequence_ids: Mapping[int, int],
) -> Iterator[Key]:
    sequence_id = table.c.sequence_id
    for originator_id in originators:
        query = select(sequence_id).where(table.c.originator_id == originator_id)
        if (last := sequence_ids.get(originator_id)) is not None:
            query = query.where((sequence_id < 1) | (sequence_id > last))
        for found in connection.scalars(query.order_by(sequence_id)):
            yield originator_id, found


def _originators(connection: Connection, table: Table) -> list[int]:
    """Return the originators of a table: each is one look into the primary key, not a scan."""
    query = select(table.c.originator_id).order_by(table.c.originator_id).limit(1)
    originators: list[int] = []
    found = connection.scalar(query)
    while found is not None:
        originators.append(found)
        found = connection.scalar(query.where(table.c.originator_id > found))
    return originators


def _name(kind: str, key: Key) -> str:
    return f"{kind} {key[1]} of originator {key[0]}"


def _where(row: Row) -> str:
    if "log_index" not in row:
        return "no log"
    return f"block {row['block_number']}, log {row['log_index']}"


def _difference(what: str, expected: object, got: object, where: str) -> Difference:
    return Difference(what, _shown(expected), _shown(got), where)


def _shown(value: object) -> str:
    if not isinstance(value, bytes):
        return str(value)
    if len(value) <= _SHOWN_BYTES:
        return "0x" + value.hex()
    return f"{len(value)} bytes with keccak256 0x{keccak256(value).hex()}"

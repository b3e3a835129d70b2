"""The envelopes of every originator, as a node adds its own and reads them all (XIP-49 §3.2).

A cursor is exclusive and sparse: a missing originator is at 0. Rows come in the order of originator
and sequence id, so the highest sequence id of each originator in a page is the cursor of the next.
Expired rows are left out, but for the newest key package of an installation: without one nobody can
invite the installation, which may have been away for longer. All functions see the one state of the
transaction that is handed in.

Statements are written by hand: a bounded index look-up for each topic and originator has no form
that SQLAlchemy writes for both databases. The topics of one statement, and originators twice, are
its parameters: SQLite before version 3.32 takes 999.

An envelope may have a megabyte, and a page a thousand envelopes. So a reader may limit the bytes:
rows then end with the first row beyond the limit, which shows that the page was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from chainkit.types import TopicKind
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.database import Database
from chainkit_indexer.types import ENVELOPE_COLUMNS

_COLUMNS: Final = ", ".join(f"found.{name}" for name in ENVELOPE_COLUMNS)
_TOPIC_ID_AND_TIME: Final = "found.topic, found.sequence_id, found.originator_ns"
_BEFORE_ALL: Final = -1
"""A time at which nothing has expired."""
_LIVES: Final = """
(found.expires_at IS NULL OR found.expires_at > ? OR (substr(found.topic, 1, 1) = ? AND NOT EXISTS (
    SELECT 1 FROM envelopes AS newer WHERE newer.topic = found.topic
        AND (newer.originator_ns, newer.originator_id) > (found.originator_ns, found.originator_id)
)))
"""
"""With the values of ``_living``."""

_HIGHEST: Final = """
WITH RECURSIVE held(originator_id) AS (
    SELECT min(originator_id) FROM envelopes
    UNION ALL
    SELECT (SELECT min(originator_id) FROM envelopes AS found
        WHERE found.originator_id > held.originator_id)
    FROM held WHERE held.originator_id IS NOT NULL
)
SELECT originator_id, (SELECT max(sequence_id) FROM envelopes AS found
    WHERE found.originator_id = held.originator_id)
FROM held WHERE originator_id IS NOT NULL
"""
"""One look-up in the key for each originator, and one for the end: no scan."""

_LAST: Final = """
SELECT sequence_id, originator_ns FROM envelopes WHERE originator_id = ?
ORDER BY sequence_id DESC LIMIT 1
"""

_AFTER: Final = f"""
SELECT {_COLUMNS} FROM envelopes AS found
WHERE found.originator_id = ? AND found.sequence_id > ? AND {_LIVES}
ORDER BY found.sequence_id LIMIT ?
"""

_FIRST_ROWS: Final = f"""
FROM envelopes AS found
WHERE {{is_on_topic}} AND found.originator_id = held.originator_id
    AND found.sequence_id > held.sequence_id AND {_LIVES}
ORDER BY found.topic, found.sequence_id LIMIT ?
"""
_LAST_ROW: Final = f"""
FROM envelopes AS found
WHERE {{is_on_topic}} AND found.originator_id = held.originator_id AND {_LIVES}
ORDER BY found.topic DESC, found.sequence_id DESC LIMIT 1
"""

_IN_PLACE: Final = "found.originator_id, found.sequence_id"
_IN_TIME: Final = f"""
max(found.originator_ns) OVER (PARTITION BY found.originator_id ORDER BY found.sequence_id),
{_IN_PLACE}
"""

_ON_TOPIC: Final = f"""
SELECT {_COLUMNS} FROM envelopes AS found
WHERE {{is_on_topic}} AND found.originator_id = ? AND found.sequence_id > ?
ORDER BY found.topic, found.sequence_id LIMIT ?
"""

_WITHIN: Final = f"""
SELECT {_COLUMNS} FROM (
    SELECT found.*, sum(octet_length(found.envelope)) OVER (ROWS UNBOUNDED PRECEDING)
        - octet_length(found.envelope) AS bytes_before
    FROM ({{statement}}) AS found
) AS found WHERE bytes_before <= ?
"""
"""For PostgreSQL, whose driver takes all rows at once: the lengths are known without the bytes."""


class StoredEnvelope(NamedTuple):
    """A row of ``envelopes``; fields are its columns."""

    originator_id: int
    sequence_id: int
    originator_ns: int
    topic: bytes
    expires_at: int | None
    """Seconds since 1970; None for one that never expires."""
    envelope: bytes
    """The OriginatorEnvelope, as signed."""


def insert_envelopes(
    database: Database, connection: Connection, rows: Sequence[StoredEnvelope | tuple[Any, ...]]
) -> None:
    """Insert envelopes without a log: a node's own, or those of its peers.

    Raises StoreError, and undoes the transaction, where a sequence id is taken.
    """
    database.insert_many(connection, schema.envelopes, ENVELOPE_COLUMNS, rows)


def read_last(connection: Connection, originator_id: int) -> tuple[int, int] | None:
    """Return sequence id and time in nanoseconds of an originator's last envelope, or None.

    Also of an expired envelope: later sequence ids follow it.
    """
    for sequence_id, originator_ns in _rows(connection, _LAST, [originator_id]):
        return sequence_id, originator_ns
    return None


def read_highest(connection: Connection) -> dict[int, int]:
    """Return the highest sequence id of each originator: the cursor of XIP-49 §3.2.2.

    For the chain's originators the position's ``sequence_ids`` are higher where the last payloads
    are in quarantine.
    """
    return dict(_rows(connection, _HIGHEST))


def read_last_on_topics(
    connection: Connection, topics: Iterable[bytes], originator_ids: Iterable[int]
) -> dict[bytes, tuple[int, int]]:
    """Return the highest sequence id of some originators on each topic, and its time.

    The time is in nanoseconds; both are 0 where there is no envelope. Expired envelopes count. Up
    to a few hundred topics at a time.
    """
    asked = frozenset(topics)
    held = dict.fromkeys(originator_ids, 0)
    last = dict.fromkeys(asked, (0, 0))
    found = _pairs(
        connection, asked, held, _LAST_ROW, _living(_BEFORE_ALL), columns=_TOPIC_ID_AND_TIME
    )
    for topic, *place in found:
        last[topic] = max(last[topic], tuple(place))
    return last


def read_by_originators(
    connection: Connection,
    originator_ids: Iterable[int],
    cursor: Mapping[int, int],
    limit: int,
    now: int,
    most_bytes: int | None = None,
) -> list[StoredEnvelope]:
    """Return up to ``limit`` envelopes (at least 1) of some originators after a cursor.

    ``now`` is in seconds since 1970.
    """
    rows: list[StoredEnvelope] = []
    rest = most_bytes
    held = _read_behind(connection, cursor)
    for originator_id in sorted(held.keys() & set(originator_ids)):
        if len(rows) == limit or (rest is not None and rest < 0):
            break
        values = [originator_id, held[originator_id], *_living(now), limit - len(rows)]
        found = _made(_rows_within(connection, _AFTER, values, rest))
        rows += found
        if rest is not None:
            rest -= sum(len(row.envelope) for row in found)
    return rows


def read_by_topics(
    connection: Connection,
    topics: Iterable[bytes],
    cursor: Mapping[int, int],
    limit: int,
    now: int,
    most_bytes: int | None = None,
    *,
    in_time: bool = False,
) -> list[StoredEnvelope]:
    """Return up to ``limit`` envelopes (at least 1) on up to a few hundred topics after a cursor.

    With ``in_time`` the first ones by ``in_time_order``, in this order.

    At most ``limit`` rows of each topic and originator are read, besides expired ones. ``now`` is
    in seconds since 1970.
    """
    held = _read_behind(connection, cursor)
    end = f"ORDER BY {_IN_TIME if in_time else _IN_PLACE} LIMIT ?"
    values = [*_living(now), limit]
    found = _pairs(connection, topics, held, _FIRST_ROWS, values, end, [limit], most_bytes)
    return _made(found)


def in_time_order(rows: Iterable[StoredEnvelope]) -> list[StoredEnvelope]:
    """Return rows by their originators' times, those of one originator by their sequence ids.

    A row whose time is below that of its originator's earlier row is sorted together with the
    earlier row.
    """
    latest: dict[int, int] = {}
    dated: list[tuple[int, StoredEnvelope]] = []
    for row in sorted(rows, key=lambda row: (row.originator_id, row.sequence_id)):
        time_ns = max(row.originator_ns, latest.get(row.originator_id, 0))
        latest[row.originator_id] = time_ns
        dated.append((time_ns, row))
    return [row for _, row in sorted(dated, key=lambda each: each[0])]


def read_topic_log(
    connection: Connection,
    topic: bytes,
    originator_id: int,
    after: int,
    limit: int,
    most_bytes: int,
) -> list[StoredEnvelope]:
    """Return up to ``limit`` envelopes (at least 1) of an originator on a topic after an id.

    Also those that have expired.
    """
    is_sqlite = connection.dialect.name == "sqlite"
    # As in ``_pairs``.
    is_on_topic = "found.topic = ?" if is_sqlite else "found.topic = ANY(ARRAY[?::bytea])"
    statement = _ON_TOPIC.format(is_on_topic=is_on_topic)
    values = [topic, originator_id, after, limit]
    return _made(_rows_within(connection, statement, values, most_bytes))


def read_newest(
    connection: Connection, topics: Iterable[bytes], now: int
) -> dict[bytes, StoredEnvelope]:
    """Return the newest envelope of each topic that has any, by its time; see the module.

    Among equal times, the envelope of the highest originator. ``now`` is in seconds since 1970.
    """
    held = dict.fromkeys(read_highest(connection), 0)
    found = _made(_pairs(connection, topics, held, _LAST_ROW, _living(now)))
    in_order = sorted(found, key=lambda row: (row.originator_ns, row.originator_id))
    return {row.topic: row for row in in_order}


def _read_behind(connection: Connection, cursor: Mapping[int, int]) -> dict[int, int]:
    """Return the sequence ids of the originators of which a cursor lacks envelopes.

    A cursor is a stranger's, and its numbers may be larger than any that a column holds.
    """
    return {
        originator_id: after
        for originator_id, highest in read_highest(connection).items()
        if highest > (after := cursor.get(originator_id, 0))
    }


def _pairs(
    connection: Connection,
    topics: Iterable[bytes],
    held: Mapping[int, int],
    rows: str,
    row_values: Sequence[Any],
    end: str = "",
    end_values: Sequence[int] = (),
    most_bytes: int | None = None,
    columns: str = _COLUMNS,
) -> list[tuple[Any, ...]]:
    """Return the rows of ``rows`` for each topic and originator, both of which it may use."""
    asked = list(dict.fromkeys(topics))
    if not asked or not held:
        return []
    if connection.dialect.name == "sqlite":
        # SQLite has no LATERAL, and keeps the order of a cross join.
        rows = rows.format(is_on_topic="found.topic = asked.topic")
        join = f"envelopes AS found WHERE found.rowid IN (SELECT found.rowid {rows})"
    else:
        # With a plain =, the key would give the same order, and for a topic that is frequent
        # elsewhere, PostgreSQL would read all rows of an originator.
        rows = rows.format(is_on_topic="found.topic = ANY(ARRAY[asked.topic])")
        join = f"LATERAL (SELECT * {rows}) AS found"
    statement = (
        f"WITH {_values('asked', ['topic'], len(asked))},"
        f" {_values('held', ['originator_id', 'sequence_id'], len(held))}"
        f" SELECT {columns} FROM asked CROSS JOIN held CROSS JOIN {join} {end}"
    )
    pairs = (value for pair in held.items() for value in pair)
    values = [*asked, *pairs, *row_values, *end_values]
    return _rows_within(connection, statement, values, most_bytes)


def _living(now: int) -> Sequence[Any]:
    return now, TopicKind.KEY_PACKAGE.topic(b"")


def _values(name: str, columns: Sequence[str], count: int) -> str:
    row = f"({', '.join('?' * len(columns))})"
    return f"{name}({', '.join(columns)}) AS (VALUES {', '.join([row] * count)})"


def _made(rows: Iterable[tuple[Any, ...]]) -> list[StoredEnvelope]:
    return list(map(StoredEnvelope._make, rows))


def _rows_within(
    connection: Connection, statement: str, values: Sequence[Any], most_bytes: int | None
) -> list[tuple[Any, ...]]:
    is_sqlite = connection.dialect.name == "sqlite"
    if most_bytes is not None and not is_sqlite:
        statement, values = _WITHIN.format(statement=statement), [*values, most_bytes]
    return _rows(connection, statement, values, most_bytes if is_sqlite else None)


def _rows(
    connection: Connection,
    statement: str,
    values: Sequence[Any] = (),
    most_bytes: int | None = None,
) -> list[tuple[Any, ...]]:
    """Read through the driver: SQLAlchemy and PostgreSQL's text form take three times as long.

    ``most_bytes`` is SQLite's, which reads one row after the other.
    """
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        rows = driver.execute(statement, values)
        found: list[tuple[Any, ...]] = (
            rows.fetchall() if most_bytes is None else list(_taken_within(rows, most_bytes))
        )
        return found
    with driver.cursor(binary=True) as cursor:
        found = cursor.execute(statement.replace("?", "%s"), values).fetchall()
        return found


def _taken_within(rows: Iterable[tuple[Any, ...]], most_bytes: int) -> Iterator[tuple[Any, ...]]:
    rest = most_bytes
    for row in rows:
        yield row
        rest -= len(row[-1])
        if rest < 0:
            return

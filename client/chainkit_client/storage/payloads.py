"""The payloads of topics: cursors, and the result of each payload (R12, R28)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, or_, select, update
from sqlalchemy.dialects.sqlite import insert

from chainkit.types import Place
from chainkit_client.storage import schema
from chainkit_client.storage.schema import PayloadStatus

MOST_KEPT: Final = 1_000
"""The most payloads of a topic that are stored because they may succeed later; beyond this number,
payloads of the highest epochs are dropped: a stranger may claim any epoch."""
_MOST_VALUES: Final = 500
"""Values of one statement, which SQLite bounds."""

_RESULTS: Final = schema.payload_results
_CURSORS: Final = schema.topic_cursors
_TIMES: Final = schema.topic_refresh_state


@dataclass(frozen=True, slots=True)
class PayloadResult:
    """A row of ``payload_results``."""

    topic: bytes
    originator_id: int
    sequence_id: int
    originator_ns: int
    payload_hash: bytes
    status: PayloadStatus
    reason: str = ""
    epoch: int | None = None
    tried_with: bytes | None = None
    message: bytes | None = None
    """The payload; None where it cannot succeed later."""
    aad_hash: bytes | None = None
    warning: str = ""
    expires_at: int | None = None
    sender_data: bytes | None = None


_COLUMNS: Final = [_RESULTS.c[name] for name in PayloadResult.__slots__]
# Built once: SQLAlchemy takes as long to build a statement as to run the statement.
_READ: Final = select(*_COLUMNS).where(
    _RESULTS.c.topic == bindparam("of_topic"),
    _RESULTS.c.originator_id == bindparam("originator"),
    _RESULTS.c.sequence_id == bindparam("number"),
)
_READ_MANY: Final = select(*_COLUMNS).where(
    _RESULTS.c.topic == bindparam("of_topic"),
    _RESULTS.c.originator_id == bindparam("originator"),
    _RESULTS.c.sequence_id.in_(bindparam("numbers", expanding=True)),
)
_NEW: Final = insert(_RESULTS)
_WRITE: Final = _NEW.on_conflict_do_update(
    [_RESULTS.c.topic, _RESULTS.c.originator_id, _RESULTS.c.sequence_id],
    set_={column.name: _NEW.excluded[column.name] for column in _COLUMNS},
    where=_RESULTS.c.status != PayloadStatus.SUCCEEDED.value,
)
_READ_CURSOR: Final = select(_CURSORS.c.originator_id, _CURSORS.c.sequence_id).where(
    _CURSORS.c.topic == bindparam("of_topic")
)
_CURSOR: Final = insert(_CURSORS)
_MOVE_CURSOR: Final = _CURSOR.on_conflict_do_update(
    [_CURSORS.c.topic, _CURSORS.c.originator_id],
    set_={"sequence_id": func.max(_CURSORS.c.sequence_id, _CURSOR.excluded.sequence_id)},
)
_TIME: Final = insert(_TIMES)
_LATEST: Final = func.max(
    _TIMES.c.last_message_timestamp_ns, _TIME.excluded.last_message_timestamp_ns
)
_MOVE_TIME: Final = _TIME.on_conflict_do_update(
    [_TIMES.c.topic], set_={"last_message_timestamp_ns": _LATEST}
)


def write_result(connection: Connection, result: PayloadResult) -> None:
    """Write the result of a payload; another result never overwrites a success (R28)."""
    write_results(connection, [result])


def write_results(connection: Connection, results: Sequence[PayloadResult]) -> None:
    """Write the results of several payloads; one statement for all without a stored payload."""
    for result in results:
        if result.message is not None:
            _make_room(connection, result.topic)
            connection.execute(_WRITE, _row(result))
    done = [_row(result) for result in results if result.message is None]
    if done:
        connection.execute(_WRITE, done)


def succeed(connection: Connection, topic: bytes, originator_id: int, sequence_id: int) -> None:
    """Write that a payload succeeded after an earlier failure."""
    done = {
        "status": PayloadStatus.SUCCEEDED.value,
        "reason": "",
        "message": None,
        "aad_hash": None,
    }
    is_of = _RESULTS.c.topic == topic, _RESULTS.c.originator_id == originator_id
    statement = update(_RESULTS).where(*is_of, _RESULTS.c.sequence_id == sequence_id)
    connection.execute(statement.values(done))


def read_result(
    connection: Connection, topic: bytes, originator_id: int, sequence_id: int
) -> PayloadResult | None:
    """Return the result of a payload, None where the payload was not read yet."""
    place = {"of_topic": topic, "originator": originator_id, "number": sequence_id}
    row = connection.execute(_READ, place).mappings().one_or_none()
    return None if row is None else _result(row)


def read_results_at(
    connection: Connection, topic: bytes, places: Iterable[Place]
) -> dict[Place, PayloadResult]:
    """Return the results of the payloads in some places that were read."""
    numbers: dict[int, list[int]] = {}
    for originator_id, sequence_id in places:
        numbers.setdefault(originator_id, []).append(sequence_id)
    found = {}
    for originator_id, wanted in numbers.items():
        for start in range(0, len(wanted), _MOST_VALUES):
            several = wanted[start : start + _MOST_VALUES]
            values = {"of_topic": topic, "originator": originator_id, "numbers": several}
            for row in connection.execute(_READ_MANY, values).mappings():
                found[originator_id, row["sequence_id"]] = _result(row)
    return found


def read_results(connection: Connection, topic: bytes) -> list[PayloadResult]:
    """Return all results of a topic, by originator and sequence id."""
    return _read(connection, _RESULTS.c.topic == topic)


def read_kept(connection: Connection, topic: bytes, most_epoch: int) -> list[PayloadResult]:
    """Return the stored payloads of epochs up to ``most_epoch``, which may succeed later."""
    is_kept = _RESULTS.c.message.is_not(None), _RESULTS.c.epoch <= most_epoch
    return _read(connection, _RESULTS.c.topic == topic, *is_kept)


def find_payload(
    connection: Connection, topic: bytes, payload_hash: bytes, originator_ids: Sequence[int]
) -> PayloadResult | None:
    """Return the first payload with a hash in the logs of some originators."""
    is_it = _RESULTS.c.topic == topic, _RESULTS.c.payload_hash == payload_hash
    found = _read(connection, *is_it, _RESULTS.c.originator_id.in_(originator_ids))
    return found[0] if found else None


def was_read(connection: Connection, topic: bytes, sender_data: bytes) -> bool:
    """Return whether a message with an encrypted sender data was read."""
    is_it = _RESULTS.c.topic == topic, _RESULTS.c.sender_data == sender_data
    return connection.scalar(select(_RESULTS.c.sequence_id).where(*is_it).limit(1)) is not None


def let_go(connection: Connection, topic: bytes, before_epoch: int) -> None:
    """Drop stored payloads of epochs before ``before_epoch``, which can no longer succeed."""
    is_old = or_(_RESULTS.c.epoch < before_epoch, _RESULTS.c.epoch.is_(None))
    gone = {
        "message": None,
        "aad_hash": None,
        "status": PayloadStatus.FAILED.value,
    }
    connection.execute(
        update(_RESULTS)
        .where(_RESULTS.c.topic == topic, _RESULTS.c.message.is_not(None), is_old)
        .values(gone)
    )


def retract_results(connection: Connection, topic: bytes, originator_id: int, after: int) -> None:
    """Forget an originator's payloads behind an id, and set the cursor back to that id."""
    is_of = _RESULTS.c.topic == topic, _RESULTS.c.originator_id == originator_id
    connection.execute(delete(_RESULTS).where(*is_of, _RESULTS.c.sequence_id > after))
    connection.execute(
        update(_CURSORS)
        .where(_CURSORS.c.topic == topic, _CURSORS.c.originator_id == originator_id)
        .where(_CURSORS.c.sequence_id > after)
        .values(sequence_id=after)
    )


def move_cursor(
    connection: Connection, topic: bytes, originator_id: int, sequence_id: int, time_ns: int
) -> None:
    """Move the topic's cursor and its time forward; neither goes back (R12, R25)."""
    place = {"topic": topic, "originator_id": originator_id, "sequence_id": sequence_id}
    connection.execute(_MOVE_CURSOR, place)
    connection.execute(_MOVE_TIME, {"topic": topic, "last_message_timestamp_ns": time_ns})


def read_cursor(connection: Connection, topic: bytes) -> Mapping[int, int]:
    """Return the highest id of each originator that was read of a topic."""
    rows = connection.execute(_READ_CURSOR, {"of_topic": topic})
    return {originator_id: sequence_id for originator_id, sequence_id in rows}


def _make_room(connection: Connection, topic: bytes) -> None:
    is_kept = _RESULTS.c.topic == topic, _RESULTS.c.message.is_not(None)
    count = connection.scalar(select(func.count()).select_from(_RESULTS).where(*is_kept)) or 0
    if count < MOST_KEPT:
        return
    # Payloads of the highest epochs go first: a stranger may claim any epoch.
    oldest = select(_RESULTS.c.originator_id, _RESULTS.c.sequence_id).where(*is_kept)
    row = connection.execute(oldest.order_by(_RESULTS.c.epoch.desc()).limit(1)).one()
    connection.execute(
        update(_RESULTS)
        .where(_RESULTS.c.topic == topic, _RESULTS.c.originator_id == row.originator_id)
        .where(_RESULTS.c.sequence_id == row.sequence_id)
        .values(message=None, status=PayloadStatus.FAILED.value, reason="too many are kept")
    )


def _read(connection: Connection, *conditions: ColumnElement[bool]) -> list[PayloadResult]:
    query = select(*_COLUMNS).where(*conditions)
    in_order = query.order_by(_RESULTS.c.originator_id, _RESULTS.c.sequence_id)
    return [_result(row) for row in connection.execute(in_order).mappings()]


def _row(result: PayloadResult) -> dict[str, Any]:
    row = {name: getattr(result, name) for name in PayloadResult.__slots__}
    return row | {"status": result.status.value}


def _result(row: Any) -> PayloadResult:
    return PayloadResult(**{**row, "status": PayloadStatus(row["status"])})

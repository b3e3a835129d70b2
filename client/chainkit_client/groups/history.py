"""A group's epochs and states in the database (R1): one row for each commit that was accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, delete, func, or_, select
from sqlalchemy.dialects.sqlite import insert

from chainkit.types import Place
from chainkit_client.storage import schema
from chainkit_client.storage.sealing import Seal

_EPOCHS: Final = schema.group_epochs
_STATES: Final = schema.group_states
_LARGEST: Final = 2**63 - 1
_LAST: Final = (
    select(_EPOCHS)
    .where(_EPOCHS.c.group_id == bindparam("group"), _EPOCHS.c.epoch <= bindparam("up_to"))
    .order_by(_EPOCHS.c.epoch.desc())
    # SQLite takes a negative limit for no limit.
    .limit(bindparam("most"))
)
_READ: Final = select(_STATES.c.state).where(
    _STATES.c.group_id == bindparam("group"), _STATES.c.authenticator == bindparam("authenticator")
)
_STATE: Final = "group_states.state"


@dataclass(frozen=True, slots=True)
class Epoch:
    """A row of ``group_epochs``."""

    number: int
    previous: int | None
    """The previous epoch; None for the epoch in which this installation joined."""
    authenticator: bytes
    payload_hash: bytes | None = None
    """The commit that made the epoch; None where the commit was not published."""
    place: Place | None = None


def read_last_epoch(connection: Connection, group_id: bytes) -> Epoch | None:
    """Return the current epoch, None where the group is not joined."""
    found = read_epochs(connection, group_id, most=1)
    return found[0] if found else None


def read_epochs(
    connection: Connection, group_id: bytes, up_to: int | None = None, most: int | None = None
) -> list[Epoch]:
    """Return the epochs of a group, the last one first."""
    values = {"group": group_id, "up_to": _LARGEST if up_to is None else up_to}
    rows = connection.execute(_LAST, values | {"most": -1 if most is None else most}).mappings()
    return [
        Epoch(
            row["epoch"],
            row["previous_epoch"],
            row["authenticator"],
            row["payload_hash"],
            None if row["sequence_id"] is None else (row["originator_id"], row["sequence_id"]),
        )
        for row in rows
    ]


def first_epoch(connection: Connection, group_id: bytes) -> Epoch | None:
    """Return the epoch in which this installation joined the last time."""
    query = select(func.max(_EPOCHS.c.epoch))
    is_first = _EPOCHS.c.group_id == group_id, _EPOCHS.c.previous_epoch.is_(None)
    number = connection.scalar(query.where(*is_first))
    return None if number is None else read_epochs(connection, group_id, number, most=1)[0]


def insert_epoch(connection: Connection, group_id: bytes, epoch: Epoch) -> None:
    """Add an epoch. Raises IntegrityError where the previous epoch is missing."""
    originator_id, sequence_id = epoch.place or (None, None)
    connection.execute(
        insert(_EPOCHS).values(
            group_id=group_id,
            epoch=epoch.number,
            previous_epoch=epoch.previous,
            authenticator=epoch.authenticator,
            payload_hash=epoch.payload_hash,
            originator_id=originator_id,
            sequence_id=sequence_id,
        )
    )


def delete_epochs(connection: Connection, group_id: bytes, first_epoch: int) -> None:
    """Delete the epochs from ``first_epoch`` on; the states stay until their place is final."""
    is_later = _EPOCHS.c.group_id == group_id, _EPOCHS.c.epoch >= first_epoch
    connection.execute(delete(_EPOCHS).where(*is_later))


def first_epoch_after(connection: Connection, group_id: bytes, sequence_id: int) -> int | None:
    """Return the first epoch made behind a place of the chain, None where there is none."""
    is_behind = _EPOCHS.c.group_id == group_id, _EPOCHS.c.sequence_id > sequence_id
    found: int | None = connection.scalar(select(func.min(_EPOCHS.c.epoch)).where(*is_behind))
    return found


def final_epoch(connection: Connection, group_id: bytes, final_sequence_id: int) -> int | None:
    """Return the last epoch whose commit is final or unpublished, None where there is none."""
    is_final = or_(_EPOCHS.c.sequence_id.is_(None), _EPOCHS.c.sequence_id <= final_sequence_id)
    is_it = _EPOCHS.c.group_id == group_id, is_final
    found: int | None = connection.scalar(select(func.max(_EPOCHS.c.epoch)).where(*is_it))
    return found


def is_confirmed(connection: Connection, group_id: bytes) -> bool:
    """Return whether a commit of another member was accepted since this installation joined."""
    first = first_epoch(connection, group_id)
    if first is None:
        return False
    own = select(schema.attempts.c.payload_hash).where(schema.attempts.c.group_id == group_id)
    others = select(_EPOCHS.c.epoch).where(
        _EPOCHS.c.group_id == group_id,
        _EPOCHS.c.epoch > first.number,
        _EPOCHS.c.payload_hash.is_not(None),
        _EPOCHS.c.payload_hash.not_in(own),
    )
    return connection.scalar(others.limit(1)) is not None


def read_state(
    connection: Connection, seal: Seal, group_id: bytes, authenticator: bytes
) -> bytes | None:
    """Return the newest state of an epoch, on any branch, None where no state is stored."""
    sealed = connection.scalar(_READ, {"group": group_id, "authenticator": authenticator})
    return None if sealed is None else seal.opened(sealed, _STATE, group_id + authenticator)


def write_state(
    connection: Connection,
    seal: Seal,
    group_id: bytes,
    epoch: int,
    authenticator: bytes,
    state: bytes,
) -> None:
    """Store the newest state of an epoch."""
    sealed = seal.sealed(state, _STATE, group_id + authenticator)
    row = {"group_id": group_id, "authenticator": authenticator, "epoch": epoch, "state": sealed}
    key = [_STATES.c.group_id, _STATES.c.authenticator]
    statement = insert(_STATES).values(row).on_conflict_do_update(key, set_={"state": sealed})
    connection.execute(statement)


def forget_states(
    connection: Connection, group_id: bytes, final: int, current: Sequence[bytes]
) -> bool:
    """Delete the states before a final epoch, and the states of lost branches up to that epoch.

    ``current`` are the authenticators of the current branch. Returns whether a state was deleted.
    """
    is_of = _STATES.c.group_id == group_id
    is_lost = (_STATES.c.epoch <= final) & _STATES.c.authenticator.not_in(current)
    statement = delete(_STATES).where(is_of, or_(_STATES.c.epoch < final, is_lost))
    return connection.execute(statement).rowcount > 0

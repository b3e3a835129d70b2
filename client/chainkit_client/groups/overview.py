"""Groups as the user sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, select

from chainkit_client.groups import history
from chainkit_client.storage import schema
from chainkit_client.storage.schema import MembershipState

_ALL: Final = select(schema.groups).order_by(schema.groups.c.created_at_ns)


@dataclass(frozen=True, slots=True)
class Group:
    """A group, as the user sees it."""

    id: bytes
    created_at_ns: int
    """Nanoseconds since 1970: of the welcome, or of the creation."""
    membership: MembershipState
    epoch: int | None
    """The current epoch; None until this installation's first commit was read."""
    is_member: bool
    forked_at_epoch: int | None
    """The first epoch in which another member's history differs; None for no fork."""
    copied_at_epoch: int | None = None
    """The last epoch in which another copy of this database wrote; None for none."""


def read_groups(connection: Connection) -> list[Group]:
    """Return all groups, the oldest first."""
    return [_group(connection, row) for row in connection.execute(_ALL).mappings().all()]


def read_group(connection: Connection, group_id: bytes) -> Group:
    """Return a group that exists."""
    query = select(schema.groups).where(schema.groups.c.id == group_id)
    return _group(connection, connection.execute(query).mappings().one())


def _group(connection: Connection, row: Any) -> Group:
    group_id = row["id"]
    current = history.read_last_epoch(connection, group_id)
    return Group(
        group_id,
        row["created_at_ns"],
        MembershipState(row["membership_state"]),
        None if current is None else current.number,
        bool(row["is_member"]),
        row["forked_at_epoch"],
        row["copied_at_epoch"],
    )

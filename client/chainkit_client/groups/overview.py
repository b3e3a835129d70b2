"""Groups as the user sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, select

from chainkit_client.groups import history
from chainkit_client.storage import imported, schema
from chainkit_client.storage.schema import MembershipState
from chainkit_client.storage.sync_groups import SYNC_GROUP_IDS

_ALL: Final = select(schema.groups).order_by(schema.groups.c.created_at_ns)
_SHOWN: Final = _ALL.where(schema.groups.c.id.not_in(SYNC_GROUP_IDS))


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
    is_imported: bool = False
    """Whether only files of other devices know the group."""

    @property
    def is_joined(self) -> bool:
        """Whether the user accepted the group, and this installation is in its current epoch."""
        is_in = self.is_member and self.epoch is not None
        return is_in and self.membership is MembershipState.ALLOWED


def read_groups(connection: Connection) -> list[Group]:
    """Return all groups, the oldest first."""
    return [_group(connection, row) for row in connection.execute(_ALL).mappings().all()]


def read_shown_groups(connection: Connection) -> list[Group]:
    """Return the groups that a person sees, the oldest first: all but sync groups."""
    return [_group(connection, row) for row in connection.execute(_SHOWN).mappings().all()]


def read_imported_groups(connection: Connection) -> list[Group]:
    """Return the groups that only files of other devices know, the oldest first."""
    own = set(connection.scalars(select(schema.groups.c.id)))
    since: dict[bytes, int] = {}
    for each in imported.read_groups(connection):
        if each.group_id not in own:
            since[each.group_id] = min(each.since_ns, since.get(each.group_id, each.since_ns))
    return [
        Group(group_id, time_ns, MembershipState.ALLOWED, None, False, None, is_imported=True)
        for group_id, time_ns in sorted(since.items(), key=lambda each: each[1])
    ]


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

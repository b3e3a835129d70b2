"""Groups of a person's own devices, and the messages for the program that come in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.dialects.sqlite import insert

from chainkit.types import TopicKind
from chainkit_client.storage import schema
from chainkit_client.storage.exchange_schema import control_messages, sync_groups
from chainkit_client.storage.schema import MembershipState
from chainkit_client.storage.sealing import Seal

MOST_CONTROL_MESSAGES: Final = 256
"""Messages that wait to be taken: what comes beyond is dropped."""
MOST_CONTROL_BYTES: Final = 8192
"""Bytes of such a message."""

SYNC_GROUP_IDS: Final = select(sync_groups.c.group_id)
"""The ids of all groups that no person sees."""

_CONTENT: Final = "control_messages.content"


@dataclass(frozen=True, slots=True)
class ControlMessage:
    """A message for the program."""

    id: int
    group_id: bytes
    sender: bytes
    """32 bytes: the installation, whose inbox is not proved."""
    content: bytes = field(repr=False)


def keep_control(
    connection: Connection, seal: Seal, group_id: bytes, sender: bytes, content: bytes
) -> None:
    """Store a message for the program, where there is room for it."""
    if count_control(connection) >= MOST_CONTROL_MESSAGES or len(content) > MOST_CONTROL_BYTES:
        return
    sealed = seal.sealed(content, _CONTENT, group_id + sender)
    row = {"group_id": group_id, "sender": sender, "content": sealed}
    connection.execute(insert(control_messages).values(row))


def read_control(connection: Connection, seal: Seal) -> list[ControlMessage]:
    """Return the messages that wait, the oldest first."""
    query = select(control_messages).order_by(control_messages.c.id)
    return [
        ControlMessage(
            row["id"],
            row["group_id"],
            row["sender"],
            seal.opened(row["content"], _CONTENT, row["group_id"] + row["sender"]),
        )
        for row in connection.execute(query).mappings()
    ]


def delete_control(connection: Connection, up_to: int) -> None:
    """Delete the messages up to an id."""
    connection.execute(delete(control_messages).where(control_messages.c.id <= up_to))


def hide_group(connection: Connection, group_id: bytes) -> None:
    """Store that a group is for the program, and is shown to nobody."""
    statement = insert(sync_groups).values(group_id=group_id, is_forgotten=False)
    connection.execute(statement.on_conflict_do_nothing())


def hide_unused_group(connection: Connection, group_id: bytes) -> None:
    """Hide a group in which no message for people was sent."""
    rows = schema.group_messages
    is_said = (rows.c.group_id == group_id) & ~rows.c.is_change
    if connection.scalar(select(rows.c.id).where(is_said).limit(1)) is None:
        hide_group(connection, group_id)


def count_control(connection: Connection) -> int:
    """Count the messages that wait."""
    return connection.scalar(select(func.count()).select_from(control_messages)) or 0


def read_kept_groups(connection: Connection) -> list[bytes]:
    """Return the ids of the sync groups that were not forgotten."""
    query = select(sync_groups.c.group_id).where(~sync_groups.c.is_forgotten)
    return list(connection.scalars(query))


def read_silent_groups(connection: Connection) -> set[bytes]:
    """Return the ids of the groups in which devices may talk: no message in them is for people."""
    groups, rows = schema.groups, schema.group_messages
    is_said = select(rows.c.id).where(rows.c.group_id == groups.c.id, ~rows.c.is_change).exists()
    is_hidden = groups.c.id.in_(SYNC_GROUP_IDS)
    return set(connection.scalars(select(groups.c.id).where(is_hidden | ~is_said)))


def forget_group(connection: Connection, group_id: bytes) -> None:
    """Delete all that a sync group holds: messages, keys and payloads; it is not read any more."""
    hide_group(connection, group_id)
    topic = TopicKind.GROUP_MESSAGE.topic(group_id)
    for table in (
        schema.group_messages,
        schema.attempts,
        schema.group_intents,
        schema.group_epochs,
        schema.group_states,
        schema.welcomes,
        control_messages,
    ):
        connection.execute(delete(table).where(table.c.group_id == group_id))
    kept = schema.kept_envelopes
    connection.execute(delete(kept).where(kept.c.topic == topic))
    is_it = schema.groups.c.id == group_id
    rejected = MembershipState.REJECTED.value
    connection.execute(update(schema.groups).where(is_it).values(membership_state=rejected))
    is_hidden = sync_groups.c.group_id == group_id
    connection.execute(update(sync_groups).where(is_hidden).values(is_forgotten=True))

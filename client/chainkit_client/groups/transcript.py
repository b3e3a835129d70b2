"""The rows that a user reads: messages, and changes of members (R11, R18)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from struct import Struct
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, delete, select, update
from sqlalchemy.dialects.sqlite import insert

from chainkit.types import NANOSECONDS_PER_SECOND, Place
from chainkit_client.groups.payload import Payload
from chainkit_client.groups.plaintext import message_id
from chainkit_client.mls.engine import Member
from chainkit_client.storage import imported_schema, schema
from chainkit_client.storage.imported_schema import Standing
from chainkit_client.storage.proved import ProvedMembers
from chainkit_client.storage.schema import DeliveryStatus, MessageKind
from chainkit_client.storage.sealing import Seal

_MESSAGES: Final = schema.group_messages
_IMPORTED: Final = imported_schema.imported_messages
_FILES: Final = imported_schema.imported_files
_INSERT: Final = insert(_MESSAGES).on_conflict_do_nothing()
_ID: Final = "group_messages.id"
_SEALED: Final = "group_messages.sealed_message"
_IMPORTED_SEALED: Final = "imported_messages.sealed_message"
_APART_NS: Final = 5 * 60 * NANOSECONDS_PER_SECOND
KIND_NAMES: Final = {
    MessageKind.APPLICATION: "text",
    MessageKind.MEMBER_ADDED: "added",
    MessageKind.MEMBER_REMOVED: "removed",
    MessageKind.UNREADABLE: "unreadable",
    MessageKind.LEFT_BEHIND: "left behind",
}
CHANGES: Final = (
    MessageKind.MEMBER_ADDED,
    MessageKind.MEMBER_REMOVED,
    MessageKind.LEFT_BEHIND,
)
_OF_MEMBERS: Final = (MessageKind.MEMBER_ADDED, MessageKind.MEMBER_REMOVED)
_HEAD: Final = Struct(">BQHH")
"""Kind, the sender's time, and the lengths of installation and account; the words follow both."""


@dataclass(frozen=True, slots=True)
class Message:
    """A row of a transcript."""

    id: bytes
    """32 bytes: SHA-256 of content, group id and time."""
    group_id: bytes
    kind: MessageKind
    content: bytes = field(repr=False)
    """An application's bytes; for a change of members see ``changed_installation``. The payload's
    hash where it cannot be read."""
    sent_at_ns: int
    """Nanoseconds since 1970: the sender's clock, of a change of members its envelope's."""
    sender: bytes
    """32 bytes: the installation's public key."""
    sender_account: str
    delivery: DeliveryStatus
    epoch: int | None
    place: Place | None
    """The payload's place; None where the message is not published, or was never sent."""
    warning: str = ""
    originator_ns: int | None = None
    """Nanoseconds since 1970: the originator's clock; None where no originator dated the row."""
    expires_at: int | None = None
    """Seconds since 1970, after which nodes may delete the payload; None for never."""
    is_proved: bool = True
    """Whether the inbox ``sender_account`` was seen to have the sender. Members write their names
    themselves."""
    is_changed_proved: bool = True
    """The same for the member that came or went."""
    imported_from: bytes = b""
    """32 bytes: the installation whose file has the row; empty where this one read it itself."""
    standing: Standing | None = None
    """How nodes and chain judge an imported row; None where they were not asked."""

    @property
    def time_ns(self) -> int:
        """Nanoseconds since 1970: the time by which transcripts are sorted."""
        return self.sent_at_ns if self.originator_ns is None else self.originator_ns

    @property
    def is_dated_apart(self) -> bool:
        """Whether the sender's claim of the time differs by minutes from the originator's time."""
        return abs(self.sent_at_ns - self.time_ns) > _APART_NS

    def has_expired(self, now_ns: int) -> bool:
        """Return whether nodes may have deleted the payload at a time in nanoseconds since 1970."""
        return self.expires_at is not None and self.expires_at <= now_ns // NANOSECONDS_PER_SECOND

    @property
    def changed_installation(self) -> bytes:
        """32 bytes: the installation that came or went."""
        return self.content[_CHANGE_HEAD:_CHANGE_END]

    @property
    def changed_account(self) -> str:
        """The account that the installation that came or went names."""
        return account_of(self.content[_CHANGE_END:])


_CHANGE_HEAD: Final = 9
"""Bytes before the installation in the content of a change: kind and epoch."""
_CHANGE_END: Final = _CHANGE_HEAD + 32


def account_of(credential: bytes) -> str:
    """Return a credential as text."""
    return credential.decode("utf-8", "backslashreplace")


def insert_message(connection: Connection, seal: Seal, message: Message) -> bool:
    """Store a row; return False where a message with this id is there already."""
    originator_id, sequence_id = message.place or (None, None)
    tag = message_tag(seal, message.id)
    row = {
        "id": tag,
        "group_id": message.group_id,
        "sealed_message": sealed_message(seal, message),
        "is_change": message.kind in CHANGES,
        "delivery_status": message.delivery.value,
        "epoch": message.epoch,
        "originator_id": originator_id,
        "sequence_id": sequence_id,
        "originator_ns": message.originator_ns,
        "expires_at": message.expires_at,
        "warning": message.warning,
    }
    return connection.execute(_INSERT, row).rowcount == 1


def insert_change(
    connection: Connection,
    seal: Seal,
    group_id: bytes,
    kind: MessageKind,
    member: Member,
    sender: Member,
    epoch: int,
    time_ns: int,
    place: Place | None,
) -> None:
    """Store that an epoch's commit added or removed a member."""
    # The epoch distinguishes two additions of a member within one block.
    content = bytes([kind]) + epoch.to_bytes(8, "big") + member.public_key + member.credential
    insert_message(
        connection,
        seal,
        Message(
            id=message_id(content, group_id, time_ns),
            group_id=group_id,
            kind=kind,
            content=content,
            sent_at_ns=time_ns,
            sender=sender.public_key,
            sender_account=account_of(sender.credential),
            delivery=DeliveryStatus.PUBLISHED,
            epoch=epoch,
            place=place,
        ),
    )


def insert_note(
    connection: Connection,
    seal: Seal,
    kind: MessageKind,
    payload: Payload,
    epoch: int,
    sender: Member,
    words: str,
) -> None:
    """Store that a payload could not be read; ``words`` are for people."""
    insert_message(
        connection,
        seal,
        Message(
            id=message_id(payload.payload_hash, payload.group_id, payload.originator_ns),
            group_id=payload.group_id,
            kind=kind,
            content=payload.payload_hash,
            sent_at_ns=payload.originator_ns,
            sender=sender.public_key,
            sender_account=account_of(sender.credential),
            delivery=DeliveryStatus.PUBLISHED,
            epoch=epoch,
            place=payload.place,
            warning=words,
        ),
    )


def retract_changes(connection: Connection, group_id: bytes, first_epoch: int) -> None:
    """Delete the changes of members from an epoch on."""
    is_later = _MESSAGES.c.group_id == group_id, _MESSAGES.c.epoch >= first_epoch
    connection.execute(delete(_MESSAGES).where(*is_later, _MESSAGES.c.is_change))


def change_delivery(
    connection: Connection,
    seal: Seal,
    message_id: bytes,
    delivery: DeliveryStatus,
    epoch: int | None = None,
    place: Place | None = None,
    warning: str = "",
    originator_ns: int | None = None,
    expires_at: int | None = None,
) -> None:
    """Write the delivery status of an own message, with place, time and expiry of its payload."""
    originator_id, sequence_id = place or (None, None)
    values = {"delivery_status": delivery.value, "epoch": epoch, "warning": warning}
    connection.execute(
        update(_MESSAGES)
        .where(_MESSAGES.c.id == message_tag(seal, message_id))
        .values(
            originator_id=originator_id,
            sequence_id=sequence_id,
            originator_ns=originator_ns,
            expires_at=expires_at,
            **values,
        )
    )


def read_messages(connection: Connection, seal: Seal, group_id: bytes) -> list[Message]:
    """Return the transcript of a group, by the originators' times; what waits comes last.

    A row that this installation read itself stands for the same row of another device.
    """
    own = _read(connection, seal, _MESSAGES.c.group_id == group_id)
    known = select(_MESSAGES.c.id).where(_MESSAGES.c.group_id == group_id)
    query = select(_IMPORTED, _FILES.c.installation).join(_FILES)
    query = query.where(_IMPORTED.c.group_id == group_id, _IMPORTED.c.id.not_in(known))
    proved = ProvedMembers(connection, seal)
    rows = connection.execute(query).mappings()
    imported = [_judged(imported_message(row, seal), proved) for row in rows]
    return sorted([*own, *imported], key=_order) if imported else own


def read_message(connection: Connection, seal: Seal, message_id: bytes) -> Message | None:
    """Return a message, None where no message has this id."""
    found = _read(connection, seal, _MESSAGES.c.id == message_tag(seal, message_id))
    return found[0] if found else None


def read_people(connection: Connection, seal: Seal, group_id: bytes) -> list[Member]:
    """Return all senders of a transcript, and all who came or went, each with leaf -1."""
    found: dict[tuple[bytes, str], None] = {}
    for each in read_messages(connection, seal, group_id):
        found[each.sender, each.sender_account] = None
        if each.kind in _OF_MEMBERS:
            found[each.changed_installation, each.changed_account] = None
    return [Member(-1, account.encode(), key) for key, account in found if key]


def unheard(messages: Iterable[Message], itself: bytes, before_ns: int) -> dict[bytes, int]:
    """Return the installations that were added before a time and have not written since.

    ``messages`` is a transcript; times are nanoseconds since 1970, of the addition by installation.
    Nothing shows that an installation has joined before it writes.
    """
    found: dict[bytes, int] = {}
    for each in messages:
        if each.imported_from:
            continue
        found.pop(each.sender, None)
        if each.kind in _OF_MEMBERS:
            found.pop(each.changed_installation, None)
        if each.kind is MessageKind.MEMBER_ADDED and each.changed_installation != itself:
            found[each.changed_installation] = each.time_ns
    return {key: time_ns for key, time_ns in found.items() if time_ns < before_ns}


def is_taken(connection: Connection, seal: Seal, message_id: bytes) -> bool:
    """Return whether a message has this id."""
    is_it = _MESSAGES.c.id == message_tag(seal, message_id)
    return connection.scalar(select(_MESSAGES.c.id).where(is_it)) is not None


def _read(connection: Connection, seal: Seal, condition: ColumnElement[bool]) -> list[Message]:
    query = select(_MESSAGES).where(condition)
    proved = ProvedMembers(connection, seal)
    found = [stored_message(row, seal) for row in connection.execute(query).mappings()]
    return sorted((_judged(each, proved) for each in found), key=_order)


def _judged(message: Message, proved: ProvedMembers) -> Message:
    """Return a message that says whether its names are proved."""
    is_of_members = message.kind in _OF_MEMBERS
    return replace(
        message,
        is_proved=proved.has(message.sender, message.sender_account),
        is_changed_proved=not is_of_members
        or proved.has(message.changed_installation, message.changed_account),
    )


def _order(message: Message) -> tuple[bool, int, int, int, bytes]:
    waits = message.delivery is DeliveryStatus.UNPUBLISHED
    # Rows with equal times stand in the order of their epochs.
    return waits, message.time_ns, message.epoch or 0, message.sent_at_ns, message.id


def imported_message(row: Any, seal: Seal) -> Message:
    """Return the message of an imported row, which has the installation of its file."""
    published = {"delivery_status": DeliveryStatus.PUBLISHED.value}
    standing = None if row["standing"] is None else Standing(row["standing"])
    message = stored_message({**row, **published}, seal, _IMPORTED_SEALED)
    return replace(message, imported_from=row["installation"], standing=standing)


def stored_message(row: Any, seal: Seal, column: str = _SEALED) -> Message:
    """Return the message of a row, whose names are not judged yet."""
    place = row["originator_id"], row["sequence_id"]
    hidden = seal.opened(row["sealed_message"], column, row["id"])
    kind, sent_at_ns, sender_length, account_length = _HEAD.unpack_from(hidden)
    account_begin = _HEAD.size + sender_length
    content_begin = account_begin + account_length
    content = hidden[content_begin:]
    return Message(
        id=message_id(content, row["group_id"], sent_at_ns),
        group_id=row["group_id"],
        kind=MessageKind(kind),
        content=content,
        sent_at_ns=sent_at_ns,
        sender=hidden[_HEAD.size : account_begin],
        sender_account=hidden[account_begin:content_begin].decode(),
        delivery=DeliveryStatus(row["delivery_status"]),
        epoch=row["epoch"],
        place=None if place == (None, None) else place,
        warning=row["warning"],
        originator_ns=row["originator_ns"],
        expires_at=row["expires_at"],
    )


def message_tag(seal: Seal, message_id: bytes) -> bytes:
    """Return the 32 bytes that stand for a message's id."""
    return seal.tag(message_id, _ID)


def sealed_message(seal: Seal, message: Message) -> bytes:
    """Seal what MLS hides of a message, for its row in its table."""
    column = _IMPORTED_SEALED if message.imported_from else _SEALED
    account = message.sender_account.encode()
    head = _HEAD.pack(message.kind, message.sent_at_ns, len(message.sender), len(account))
    hidden = head + message.sender + account + message.content
    return seal.sealed(hidden, column, message_tag(seal, message.id))

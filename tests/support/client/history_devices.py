"""Devices of one person, with the rows that a history file has, and without a network."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection
from pathlib import Path

from sqlalchemy import Connection, insert

from chainkit.identity.writing import InstallationSigner
from chainkit.protocol.proto import envelopes_pb2
from chainkit.types import Place
from chainkit_client.groups.payload import group_topic
from chainkit_client.groups.plaintext import message_id
from chainkit_client.groups.transcript import Message, insert_message, read_messages
from chainkit_client.history.loading import Loaded, load
from chainkit_client.history.packing import new_key, recipient_of, unpack
from chainkit_client.history.rows import SIGNED_WITH, EndLine
from chainkit_client.history.saving import save
from chainkit_client.mls.engine import Installation
from chainkit_client.storage import schema
from chainkit_client.storage.own import insert_installation
from chainkit_client.storage.payloads import PayloadResult, move_cursor, write_result
from chainkit_client.storage.schema import (
    DeliveryStatus,
    MembershipState,
    MessageKind,
    PayloadStatus,
)
from chainkit_client.storage.store import Store

INBOX = b"\xab" * 32
GROUP = b"g" * 16
NODE = 100
BEGIN_NS = 1_735_689_600 * 10**9
SENDER = b"\5" * 32


def insert_joined(connection: Connection, group_id: bytes) -> None:
    """Insert the row of a group that a device is in."""
    row = {
        "id": group_id,
        "created_at_ns": BEGIN_NS,
        "membership_state": MembershipState.ALLOWED.value,
        "is_published": True,
        "is_member": True,
    }
    connection.execute(insert(schema.groups).values(row))


def text(words: bytes, place: Place | None, time_ns: int = BEGIN_NS) -> Message:
    """A message that somebody sent."""
    return Message(
        id=message_id(words, GROUP, time_ns),
        group_id=GROUP,
        kind=MessageKind.APPLICATION,
        content=words,
        sent_at_ns=time_ns,
        sender=SENDER,
        sender_account="cd" * 32,
        delivery=DeliveryStatus.PUBLISHED,
        epoch=2,
        place=place,
        originator_ns=time_ns,
    )


def envelope_at(place: Place) -> bytes:
    """An OriginatorEnvelope, of which only the bytes matter."""
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope(
        originator_node_id=place[0], originator_sequence_id=place[1]
    )
    return envelopes_pb2.OriginatorEnvelope(
        unsigned_originator_envelope=unsigned.SerializeToString()
    ).SerializeToString()


class HistoryDevice:
    """A database with an installation of the inbox, which the number tells apart."""

    def __init__(self, folder: Path, number: int, inbox: bytes = INBOX) -> None:
        seed = bytes([number]) * 32
        self.key = InstallationSigner(seed).public_key
        self.path = folder / f"device-{number}.db"
        self.store = Store.open(self.path, "password", cost=2)
        installation = Installation(inbox.hex().encode(), self.key, seed)
        with self.store.writing() as connection:
            insert_installation(connection, self.store.seal, installation)

    def join(self, group_id: bytes = GROUP) -> None:
        """Be in a group."""
        with self.store.writing() as connection:
            insert_joined(connection, group_id)

    def read(self, *messages: Message) -> None:
        """Have read messages, with their envelopes and results."""
        with self.store.writing() as connection:
            for each in messages:
                insert_message(connection, self.store.seal, each)
                if each.place is None:
                    continue
                envelope = envelope_at(each.place)
                row = {
                    "originator_id": each.place[0],
                    "sequence_id": each.place[1],
                    "topic": group_topic(each.group_id),
                    "envelope": envelope,
                }
                connection.execute(insert(schema.kept_envelopes).values(row))
                self._move(connection, each.place)

    def skip(self, place: Place) -> None:
        """Have read a payload that nobody can open."""
        with self.store.writing() as connection:
            self._move(connection, place, PayloadStatus.FAILED)

    def _move(
        self,
        connection: Connection,
        place: Place,
        status: PayloadStatus = PayloadStatus.SUCCEEDED,
    ) -> None:
        topic = group_topic(GROUP)
        write_result(connection, PayloadResult(topic, *place, BEGIN_NS, b"\1" * 32, status))
        move_cursor(connection, topic, *place, BEGIN_NS)

    def save(self, path: Path, since_ns: int = 0) -> str:
        """Write a file, and return its key."""
        key = new_key()
        save(self.store, path, recipient_of(key), since_ns)
        return key

    def load(
        self,
        data: bytes,
        key: str,
        devices: Collection[bytes],
        inbox: bytes = INBOX,
    ) -> Loaded:
        """Import a file."""
        return load(self.store, io.BytesIO(data), key, inbox, devices)

    def messages(self, group_id: bytes = GROUP) -> list[Message]:
        """The transcript of a group."""
        with self.store.reading() as connection:
            return read_messages(connection, self.store.seal, group_id)

    def words(self) -> list[bytes]:
        """The words of the transcript."""
        return [each.content for each in self.messages()]


def signed_lines(secret: bytes, lines: list[bytes]) -> list[bytes]:
    """Lines, and the signature of an installation over them."""
    digest = hashlib.sha256(b"".join(each + b"\n" for each in lines)).digest()
    return [*lines, EndLine(InstallationSigner(secret).signature(digest, SIGNED_WITH)).line()]


def lines_of(data: bytes, key: str) -> list[bytes]:
    """The lines of a file."""
    found: list[bytes] = []
    unpack(io.BytesIO(data), key, found.append)
    return found

"""The header of an MLS message: its group, its epoch, and its kind of content (RFC 9420 §6).

A PrivateMessage has these fields in the clear, and encrypts the sender and the content. A node
needs the fields to distinguish commits and proposals, which belong to the chain, from application
messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from chainkit.protocol.mls.presentation import Reader

MLS_VERSION: Final = 1
"""``ProtocolVersion`` mls10 (RFC 9420 §6)."""


class WireFormat(IntEnum):
    """How a message is framed; the other three formats carry no content (RFC 9420 §6)."""

    PUBLIC_MESSAGE = 1
    PRIVATE_MESSAGE = 2


class ContentType(IntEnum):
    """The kind of content that a message frames (RFC 9420 §6)."""

    APPLICATION = 1
    PROPOSAL = 2
    COMMIT = 3


class _SenderType(IntEnum):
    MEMBER = 1
    EXTERNAL = 2
    NEW_MEMBER_PROPOSAL = 3
    NEW_MEMBER_COMMIT = 4


_INDEXED_SENDERS: Final = (_SenderType.MEMBER, _SenderType.EXTERNAL)
_CONTENT_TYPES: Final = frozenset(ContentType)


@dataclass(frozen=True, slots=True)
class MessageHeader:
    """The part of an MLS message that everybody can read. Nothing proves it to a node."""

    wire_format: WireFormat
    group_id: bytes
    """16 bytes in today's clients; MLS allows any length."""
    epoch: int
    """A uint64."""
    content_type: ContentType
    authenticated_data: bytes
    """The author's data for the members, who alone can check that the author wrote it."""
    sender_data: bytes = b""
    """The encrypted sender data of a PrivateMessage: no two messages have the same."""


def parse_message_header(data: bytes) -> MessageHeader:
    """Read the header of an MLSMessage that is a PublicMessage or a PrivateMessage.

    A PrivateMessage is read to its end. The content of a PublicMessage is left unread, and its
    members check it. Raises MalformedMls for anything else, and for an application message that is
    not encrypted.
    """
    reader = Reader(data, "mls message")
    if (version := reader.integer(2)) != MLS_VERSION:
        raise reader.malformed(f"version {MLS_VERSION}", version)
    wire_format = reader.integer(2)
    if wire_format == WireFormat.PRIVATE_MESSAGE:
        return _private_message(reader)
    if wire_format == WireFormat.PUBLIC_MESSAGE:
        return _public_message(reader)
    expected = "the wire format of a public (1) or a private message (2)"
    raise reader.malformed(expected, wire_format)


def _private_message(reader: Reader) -> MessageHeader:
    group_id, epoch = reader.vector(), reader.integer(8)
    content_type = _content_type(reader)
    authenticated_data = reader.vector()
    sender_data = reader.vector()
    reader.vector()
    reader.finish()
    return MessageHeader(
        WireFormat.PRIVATE_MESSAGE, group_id, epoch, content_type, authenticated_data, sender_data
    )


def _public_message(reader: Reader) -> MessageHeader:
    group_id, epoch = reader.vector(), reader.integer(8)
    sender = reader.integer(1)
    if sender not in tuple(_SenderType):
        raise reader.malformed("a type of sender from 1 to 4", sender)
    if sender in _INDEXED_SENDERS:
        reader.integer(4)
    authenticated_data = reader.vector()
    content_type = _content_type(reader)
    if content_type is ContentType.APPLICATION:
        raise reader.malformed("an application message to be private", "a public message")
    return MessageHeader(
        WireFormat.PUBLIC_MESSAGE, group_id, epoch, content_type, authenticated_data
    )


def _content_type(reader: Reader) -> ContentType:
    found = reader.integer(1)
    if found not in _CONTENT_TYPES:
        raise reader.malformed("a content type from 1 to 3", found)
    return ContentType(found)

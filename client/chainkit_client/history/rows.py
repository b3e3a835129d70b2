"""The lines of a history file, version 1: one JSON object each.

::

    {"format":"chainkit-history","version":1,"inbox":…,"installation":…,"created_ns":…,…}
    {"kind":"group","group":…,"since_ns":…,"read":{"100":412},"skipped":{"100":[7]}}
    {"kind":"text","id":…,"group":…,"content":…,"sent_at_ns":…,…,"digest":…}
    {"kind":"end","signature":…}

Bytes are ``0x`` and hex digits, contents base64, times nanoseconds since 1970. A reader ignores
kinds that it does not know, and keeps the fields of messages that it does not know. The last line
has the signature of the installation over SHA-256 of all lines before, each with its newline.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from chainkit.documents.fields import Fields, parse_json
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import keccak256
from chainkit.types import Place
from chainkit_client.groups.plaintext import message_id
from chainkit_client.groups.transcript import CHANGES, KIND_NAMES, Message
from chainkit_client.storage.schema import DeliveryStatus, MessageKind

FORMAT: Final = "chainkit-history"
VERSION: Final = 1
SIGNED_WITH: Final = b"CHAINKIT HISTORY FILE"
"""The context of the installation's signature (RFC 8032)."""
SIGNATURE_LENGTH: Final = 64
MOST_SKIPPED: Final = 10_000
"""Places of one group that a line names as read without a message."""

_LARGEST: Final = 2**63 - 1
_LARGEST_ORIGINATOR: Final = 2**32 - 1
_KEY_LENGTH: Final = 32
_LONGEST_ACCOUNT: Final = 1024
_LONGEST_WARNING: Final = 1000
_LEAST_CHANGE: Final = 9 + _KEY_LENGTH
_DIGITS: Final = 10
_GROUP_ID: Final = re.compile("0x((?:[0-9a-f]{2}){1,32})")
_SENDER: Final = re.compile("0x([0-9a-f]{64}|)")
_TEXT: Final = re.compile(".*", re.DOTALL)
_SUBJECT: Final = "history file"
_KIND_OF: Final = {name: kind for kind, name in KIND_NAMES.items()}
_FIELDS: Final = frozenset(
    {"kind", "id", "group", "content", "sent_at_ns", "sender", "account", "epoch", "originator"}
    | {"sequence_id", "originator_ns", "expires_at", "digest", "warning"}
)


@dataclass(frozen=True, slots=True)
class Header:
    """The first line: the file's maker and size."""

    inbox_id: bytes
    """32 bytes."""
    installation: bytes
    """32 bytes: the device that made the file."""
    created_ns: int
    groups: int
    """How many lines of groups follow."""
    messages: int
    """How many lines of messages follow."""

    def line(self) -> bytes:
        """Return the line."""
        return _line(
            {
                "format": FORMAT,
                "version": VERSION,
                "inbox": _hex(self.inbox_id),
                "installation": _hex(self.installation),
                "created_ns": self.created_ns,
                "groups": self.groups,
                "messages": self.messages,
            }
        )


@dataclass(frozen=True, slots=True)
class GroupLine:
    """How far a device says that it read a group."""

    group_id: bytes
    since_ns: int
    """When the device joined the group, or the beginning of the chosen time."""
    read: Mapping[int, int]
    """The highest id that was read of each originator."""
    skipped: Sequence[Place]
    """Places that were read and have no message."""

    def line(self) -> bytes:
        """Return the line."""
        return _line(
            {
                "kind": "group",
                "group": _hex(self.group_id),
                "since_ns": self.since_ns,
                "read": {str(key): value for key, value in sorted(self.read.items())},
                "skipped": _by_originator(self.skipped),
            }
        )


@dataclass(frozen=True, slots=True)
class MessageLine:
    """A message, as the device has it."""

    message: Message
    digest: bytes | None
    """32 bytes: keccak256 of the UnsignedOriginatorEnvelope; None without a place."""
    unknown: Mapping[str, Any] = field(default_factory=dict)
    """Fields of later versions."""

    def line(self) -> bytes:
        """Return the line."""
        message = self.message
        originator, sequence_id = message.place or (None, None)
        return _line(
            {
                **self.unknown,
                "kind": KIND_NAMES[message.kind],
                "id": _hex(message.id),
                "group": _hex(message.group_id),
                "content": base64.b64encode(message.content).decode(),
                "sent_at_ns": message.sent_at_ns,
                "sender": _hex(message.sender),
                "account": message.sender_account,
                "epoch": message.epoch,
                "originator": originator,
                "sequence_id": sequence_id,
                "originator_ns": message.originator_ns,
                "expires_at": message.expires_at,
                "digest": None if self.digest is None else _hex(self.digest),
                "warning": message.warning,
            }
        )


@dataclass(frozen=True, slots=True)
class EndLine:
    """The last line."""

    signature: bytes
    """64 bytes."""

    def line(self) -> bytes:
        """Return the line."""
        return _line({"kind": "end", "signature": _hex(self.signature)})


def envelope_digest(envelope: bytes) -> bytes:
    """Return the 32 bytes by which a row names an OriginatorEnvelope, whichever node serves it."""
    parsed = envelopes_pb2.OriginatorEnvelope.FromString(envelope)
    return keccak256(parsed.unsigned_originator_envelope)


def parse_history_header(line: bytes) -> Header:
    """Return the first line. Raises MalformedData for another format or version."""
    fields = Fields(_parsed(line), _SUBJECT)
    try:
        found = fields.matching("format", _TEXT, "a text")[0], fields.integer("version")
        if found != (FORMAT, VERSION):
            expected, got = f"{FORMAT} {VERSION}", f"{found[0][:40]} {found[1]}"
            raise MalformedData(_SUBJECT, expected, got)
        return Header(
            fields.bytes("inbox", _KEY_LENGTH),
            fields.bytes("installation", _KEY_LENGTH),
            fields.integer("created_ns", _LARGEST),
            fields.integer("groups", _LARGEST),
            fields.integer("messages", _LARGEST),
        )
    except ConfigurationError as error:
        raise _malformed(error) from error


def parse_history_line(
    line: bytes, installation: bytes
) -> GroupLine | MessageLine | EndLine | None:
    """Return a line behind the first one; None for a kind that this version does not know.

    ``installation`` made the file. A message's id is computed here. Raises MalformedData.
    """
    content = _parsed(line)
    fields = Fields(content, _SUBJECT)
    try:
        kind = fields.matching("kind", _TEXT, "a text")[0]
        if kind == "group":
            return _group(fields)
        if kind == "end":
            return EndLine(fields.bytes("signature", SIGNATURE_LENGTH))
        if kind in _KIND_OF:
            unknown = {name: value for name, value in content.items() if name not in _FIELDS}
            message = _message(fields, _KIND_OF[kind], installation)
            has_digest = message.place is not None
            digest = fields.bytes("digest", _KEY_LENGTH) if has_digest else None
            return MessageLine(message, digest, unknown)
    except ConfigurationError as error:
        raise _malformed(error) from error
    return None


def _group(fields: Fields) -> GroupLine:
    read, skipped = fields.inner("read"), fields.inner("skipped")
    ids = {_originator(each): read.integer(each, _LARGEST) for each in read.names()}
    places = [
        (_originator(name), _id(value, path))
        for name in skipped.names()
        for value, path in skipped.elements(name)
    ]
    if max(len(ids), len(places)) > MOST_SKIPPED:
        raise MalformedData(_SUBJECT, f"at most {MOST_SKIPPED} places of a group", "more")
    return GroupLine(_group_id(fields), fields.integer("since_ns", _LARGEST), ids, places)


def _originator(name: str) -> int:
    if name.isascii() and name.isdigit() and len(name) <= _DIGITS:
        return int(name)
    raise MalformedData(_SUBJECT, "ids of originators", repr(name[:_DIGITS]))


def _id(value: object, path: str) -> int:
    return Fields({"id": value}, _SUBJECT, path).integer("id", _LARGEST)


def _message(fields: Fields, kind: MessageKind, installation: bytes) -> Message:
    content, account = _content(fields), _short(fields, "account", _LONGEST_ACCOUNT)
    group_id, sent_at_ns = _group_id(fields), fields.integer("sent_at_ns", _LARGEST)
    identity = fields.bytes("id", _KEY_LENGTH)
    if identity != message_id(content, group_id, sent_at_ns):
        got = f"another id: {_hex(identity)[:18]}…"
        raise MalformedData(_SUBJECT, "each message under the hash of its words", got)
    is_change = kind in CHANGES and kind is not MessageKind.LEFT_BEHIND
    if is_change and (len(content) < _LEAST_CHANGE or content[0] != kind):
        raise MalformedData(_SUBJECT, "a change of members", "other bytes")
    return Message(
        id=identity,
        group_id=group_id,
        kind=kind,
        content=content,
        sent_at_ns=sent_at_ns,
        sender=bytes.fromhex(fields.matching("sender", _SENDER, "a key of 32 bytes")[1]),
        sender_account=account,
        delivery=DeliveryStatus.PUBLISHED,
        epoch=_optional(fields, "epoch"),
        place=_place(fields),
        warning=_short(fields, "warning", _LONGEST_WARNING),
        originator_ns=_optional(fields, "originator_ns"),
        expires_at=_optional(fields, "expires_at"),
        imported_from=installation,
    )


def _place(fields: Fields) -> Place | None:
    nulls = [fields.is_null(name) for name in ("originator", "sequence_id", "digest")]
    if all(nulls):
        return None
    return fields.integer("originator", _LARGEST_ORIGINATOR), fields.integer(
        "sequence_id", _LARGEST
    )


def _optional(fields: Fields, name: str) -> int | None:
    return None if fields.is_null(name) else fields.integer(name, _LARGEST)


def _content(fields: Fields) -> bytes:
    encoded: str = fields.matching("content", _TEXT, "base64")[0]
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedData(_SUBJECT, "base64", error, fields.path("content")) from error


def _short(fields: Fields, name: str, most: int) -> str:
    text: str = fields.matching(name, _TEXT, "a text")[0]
    try:
        length = len(text.encode())
    except UnicodeEncodeError as error:
        raise MalformedData(_SUBJECT, "UTF-8", error.reason, fields.path(name)) from error
    if length > most:
        raise MalformedData(_SUBJECT, f"at most {most} bytes", length, fields.path(name))
    return text


def _group_id(fields: Fields) -> bytes:
    expected = "a group's id of 1 to 32 bytes"
    return bytes.fromhex(fields.matching("group", _GROUP_ID, expected)[1])


def _parsed(line: bytes) -> Any:
    try:
        content = parse_json(line, _SUBJECT)
    except ConfigurationError as error:
        raise _malformed(error) from error
    if not isinstance(content, dict):
        raise MalformedData(_SUBJECT, "an object on each line", type(content).__name__)
    return content


def _malformed(error: ConfigurationError) -> MalformedData:
    return MalformedData(error.subject, error.expected, error.got, error.place)


def _by_originator(places: Iterable[Place]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for originator_id, sequence_id in sorted(places):
        found.setdefault(str(originator_id), []).append(sequence_id)
    return found


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _hex(data: bytes) -> str:
    return f"0x{data.hex()}"

"""Checks client envelopes by their bytes alone: may they be published? (§3.3.2)

Today's clients leave ``target_originator`` 0 and let the payer name the target. Their group ids
have 16 bytes. Commits, proposals and identity updates belong to the chain, all else to an
originator.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from chainkit.errors import MalformedMls
from chainkit.protocol.mls.key_package import KeyPackage, parse_key_package
from chainkit.protocol.mls.message import ContentType, MessageHeader, parse_message_header
from chainkit.protocol.payer_envelope import MAXIMUM_CLIENT_ENVELOPE_LENGTH
from chainkit.protocol.proto import envelopes_pb2
from chainkit.protocol.publish_rules.refusal import (
    RefusalReason,
    refused,
    refused_as_unread,
    refused_because,
)
from chainkit.protocol.strict import NotStrict, check_strict
from chainkit.types import HASH_LENGTH, Cursor, TopicKind


class Destination(StrEnum):
    """The source of a payload's sequence id (XIP-49 §3.3.4, fourth rule of a publish)."""

    CHAIN = "chain"
    ORIGINATOR = "originator"


@dataclass(frozen=True, slots=True)
class ParsedClientEnvelope:
    """A decoded ClientEnvelope whose topic matches its payload."""

    client_envelope: bytes
    """The bytes as they came."""
    kind: TopicKind
    identifier: bytes
    """The topic after its kind byte: 1 to 32 bytes for a group, 32 for all others."""
    target_originator: int | None
    """Node id that the client names; None where the client names no node, or the chain."""
    last_seen: Cursor
    """The topic's payloads that the client had seen."""
    destination: Destination
    header: MessageHeader | None = None
    """The MLS header on a topic of group messages."""
    key_package: KeyPackage | None = None
    """The payload of a topic of key packages; its lifetime and signatures are not checked yet."""

    @property
    def topic(self) -> bytes:
        """Kind byte and identifier."""
        return self.kind.topic(self.identifier)


_PAYLOAD_FIELDS: Final = {
    TopicKind.GROUP_MESSAGE: "group_message",
    TopicKind.WELCOME: "welcome_message",
    TopicKind.IDENTITY_UPDATE: "identity_update",
    TopicKind.KEY_PACKAGE: "upload_key_package",
}

_IDENTIFIER_LENGTH: Final = HASH_LENGTH
"""Bytes of an inbox id and of an installation key, and at most of a group id: the contract's."""


def parse_client_envelope(data: bytes) -> ParsedClientEnvelope:
    """Decode a ClientEnvelope and check its topic and payload (XIP-49 §3.3.2, §3.3.4).

    Raises PublishRefused with NOT_A_CLIENT_ENVELOPE, NOT_STRICT, WRONG_TOPIC or INVALID_PAYLOAD.
    Signatures and lifetime of a key package are not checked here, nor an identity update's
    signatures.
    """
    envelope = _envelope(data)
    kind = _kind(envelope)
    identifier = envelope.aad.target_topic[1:]
    header, key_package = None, None
    if kind is TopicKind.GROUP_MESSAGE:
        header = _message_header(envelope, identifier)
    elif kind is TopicKind.KEY_PACKAGE:
        key_package = _key_package(envelope, identifier)
    elif kind is TopicKind.WELCOME:
        _check_welcome(envelope, identifier)
    else:
        _check_identity_update(envelope, identifier)
    return ParsedClientEnvelope(
        client_envelope=data,
        kind=kind,
        identifier=identifier,
        target_originator=envelope.aad.target_originator or None,
        last_seen=Cursor(dict(envelope.aad.last_seen.node_id_to_sequence_id)),
        destination=_destination(kind, header),
        header=header,
        key_package=key_package,
    )


def _envelope(data: bytes) -> envelopes_pb2.ClientEnvelope:
    reason = RefusalReason.NOT_A_CLIENT_ENVELOPE
    if len(data) > MAXIMUM_CLIENT_ENVELOPE_LENGTH:
        expected = f"at most {MAXIMUM_CLIENT_ENVELOPE_LENGTH} bytes"
        raise refused(reason, "client envelope", expected, f"{len(data)} bytes")
    try:
        check_strict(data, envelopes_pb2.ClientEnvelope)
    except NotStrict as error:
        raise refused_as_unread(reason, error) from error
    envelope = envelopes_pb2.ClientEnvelope.FromString(data)
    if not envelope.HasField("aad"):
        raise refused(reason, "client envelope", "an aad", "none")
    return envelope


def _kind(envelope: envelopes_pb2.ClientEnvelope) -> TopicKind:
    """Return the topic's kind, which must be the payload's (XIP-49 §3.3.2)."""
    reason = RefusalReason.WRONG_TOPIC
    topic, payload = envelope.aad.target_topic, envelope.WhichOneof("payload")
    if not topic or topic[0] not in _PAYLOAD_FIELDS:
        raise refused(reason, "topic", "a kind from 0 to 3", topic[:1].hex())
    kind = TopicKind(topic[0])
    if payload != _PAYLOAD_FIELDS[kind]:
        subject = f"payload of a topic of kind {kind}"
        raise refused(reason, subject, _PAYLOAD_FIELDS[kind], payload or "no payload")
    length, is_group = len(topic) - 1, kind is TopicKind.GROUP_MESSAGE
    shortest = 1 if is_group else _IDENTIFIER_LENGTH
    if not shortest <= length <= _IDENTIFIER_LENGTH:
        expected = f"{'1 to ' if is_group else ''}{_IDENTIFIER_LENGTH} bytes"
        raise refused(reason, f"identifier of a topic of kind {kind}", expected, f"{length} bytes")
    return kind


def _destination(kind: TopicKind, header: MessageHeader | None) -> Destination:
    is_application = header is None or header.content_type is ContentType.APPLICATION
    if kind is TopicKind.IDENTITY_UPDATE or not is_application:
        return Destination.CHAIN
    return Destination.ORIGINATOR


def _message_header(envelope: envelopes_pb2.ClientEnvelope, identifier: bytes) -> MessageHeader:
    reason = RefusalReason.INVALID_PAYLOAD
    try:
        header = parse_message_header(envelope.group_message.v1.data)
    except MalformedMls as error:
        raise refused_because(reason, error) from error
    _check_identifier("group id of the MLS message", identifier, header.group_id)
    return header


def _key_package(envelope: envelopes_pb2.ClientEnvelope, identifier: bytes) -> KeyPackage:
    serialized = envelope.upload_key_package.key_package.key_package_tls_serialized
    try:
        package = parse_key_package(serialized)
    except MalformedMls as error:
        raise refused_because(RefusalReason.INVALID_PAYLOAD, error) from error
    _check_identifier("installation key of the key package", identifier, package.installation_key)
    return package


def _check_welcome(envelope: envelopes_pb2.ClientEnvelope, identifier: bytes) -> None:
    welcome = envelope.welcome_message
    is_pointer = welcome.WhichOneof("version") == "welcome_pointer"
    found = welcome.welcome_pointer.installation_key if is_pointer else welcome.v1.installation_key
    _check_identifier("installation key of the welcome", identifier, found)


def _check_identity_update(envelope: envelopes_pb2.ClientEnvelope, identifier: bytes) -> None:
    found, expected = envelope.identity_update.inbox_id, identifier.hex()
    if found != expected:
        subject, got = "inbox id of the identity update", repr(found[: len(expected)])
        raise refused(RefusalReason.INVALID_PAYLOAD, subject, expected, got)


def _check_identifier(subject: str, identifier: bytes, found: bytes) -> None:
    if found != identifier:
        got = f"0x{found[:HASH_LENGTH].hex()} ({len(found)} bytes)"
        expected = f"0x{identifier.hex()} ({len(identifier)} bytes)"
        raise refused(RefusalReason.INVALID_PAYLOAD, subject, expected, got)

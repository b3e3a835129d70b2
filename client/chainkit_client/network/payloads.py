"""Payloads without an intent: key packages, welcomes and identity updates, as sent."""

from __future__ import annotations

from typing import Final

from chainkit.protocol.proto import envelopes_pb2
from chainkit.protocol.proto import identity_associations_pb2 as associations_pb2
from chainkit.types import Place, TopicKind

_MESSAGE_HEAD: Final = b"\0\1\0\5"
"""MLS 1.0 and the wire format of key packages: XMTP's payloads omit these bytes."""


def key_package_payload(installation: bytes, message: bytes) -> bytes:
    """Return the ClientEnvelope of a key package, which is an MLSMessage."""
    envelope = envelopes_pb2.ClientEnvelope()
    envelope.aad.target_topic = TopicKind.KEY_PACKAGE.topic(installation)
    package = envelope.upload_key_package.key_package
    package.key_package_tls_serialized = message.removeprefix(_MESSAGE_HEAD)
    return envelope.SerializeToString()


def offered_key_package(client_envelope: bytes) -> bytes:
    """Return the key package of a ClientEnvelope as an MLSMessage."""
    envelope = envelopes_pb2.ClientEnvelope.FromString(client_envelope)
    return _MESSAGE_HEAD + envelope.upload_key_package.key_package.key_package_tls_serialized


def welcome_payload(installation: bytes, data: bytes) -> bytes:
    """Return the ClientEnvelope of a welcome for an installation."""
    envelope = envelopes_pb2.ClientEnvelope()
    envelope.aad.target_topic = TopicKind.WELCOME.topic(installation)
    envelope.welcome_message.v1.installation_key = installation
    envelope.welcome_message.v1.data = data
    return envelope.SerializeToString()


def received_welcome(client_envelope: bytes) -> bytes:
    """Return the data of a welcome's ClientEnvelope; empty for a pointer to another welcome."""
    envelope = envelopes_pb2.ClientEnvelope.FromString(client_envelope)
    return envelope.welcome_message.v1.data


def identity_payload(inbox_id: bytes, update: bytes, last_seen: Place | None) -> bytes:
    """Return the ClientEnvelope of a serialized IdentityUpdate.

    ``last_seen`` is the place of the inbox's last update, None before the first.
    """
    envelope = envelopes_pb2.ClientEnvelope()
    envelope.aad.target_topic = TopicKind.IDENTITY_UPDATE.topic(inbox_id)
    if last_seen is not None:
        originator_id, sequence_id = last_seen
        envelope.aad.last_seen.node_id_to_sequence_id[originator_id] = sequence_id
    envelope.identity_update.CopyFrom(associations_pb2.IdentityUpdate.FromString(update))
    return envelope.SerializeToString()

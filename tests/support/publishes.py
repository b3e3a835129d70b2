"""Payloads of each kind as clients publish them, and a payer's envelopes of them."""

from collections.abc import Mapping

from chainkit.protocol.payer_envelope import sign_payer_envelope
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import TopicKind
from support import mls

NODE_ID = 100
PAYER = SigningKey(b"\7" * 32)
GROUP_ID = b"g" * 16
INBOX_ID = b"i" * 32
INSTALLATION_KEY = mls.KeyPackageFields().installation_key


def addressed(
    kind: TopicKind, identifier: bytes, seen: Mapping[int, int] | None = None, target: int = 0
) -> envelopes_pb2.ClientEnvelope:
    """A ClientEnvelope without a payload."""
    envelope = envelopes_pb2.ClientEnvelope()
    envelope.aad.target_originator = target
    envelope.aad.target_topic = kind.topic(identifier)
    envelope.aad.last_seen.node_id_to_sequence_id.update(seen or {})
    return envelope


def group_message(
    message: bytes | None = None,
    identifier: bytes = GROUP_ID,
    seen: Mapping[int, int] | None = None,
    target: int = 0,
) -> bytes:
    """A group message; by default an application message of the topic's group, as today's."""
    envelope = addressed(TopicKind.GROUP_MESSAGE, identifier, seen, target)
    envelope.group_message.v1.data = message or mls.private_message(
        identifier, authenticated_data=b""
    )
    return envelope.SerializeToString()


def commit(seen: Mapping[int, int] | None = None, target: int = 0) -> bytes:
    """A commit of the group."""
    message = mls.private_message(GROUP_ID, mls.COMMIT, authenticated_data=b"")
    return group_message(message, seen=seen, target=target)


def welcome(
    identifier: bytes = INSTALLATION_KEY,
    installation_key: bytes | None = None,
    data: bytes = b"welcome",
) -> bytes:
    """A welcome for an installation."""
    envelope = addressed(TopicKind.WELCOME, identifier)
    envelope.welcome_message.v1.installation_key = installation_key or identifier
    envelope.welcome_message.v1.data = data
    return envelope.SerializeToString()


def welcome_pointer(identifier: bytes, installation_key: bytes) -> bytes:
    """A pointer to a welcome for an installation."""
    envelope = addressed(TopicKind.WELCOME, identifier)
    envelope.welcome_message.welcome_pointer.installation_key = installation_key
    return envelope.SerializeToString()


def key_package(serialized: bytes | None = None, identifier: bytes = INSTALLATION_KEY) -> bytes:
    """A key package; by default a valid one of the topic's installation."""
    envelope = addressed(TopicKind.KEY_PACKAGE, identifier)
    written = mls.KeyPackageFields().written() if serialized is None else serialized
    envelope.upload_key_package.key_package.key_package_tls_serialized = written
    return envelope.SerializeToString()


def identity_update(
    seen: Mapping[int, int] | None = None, inbox_id: str = INBOX_ID.hex(), target: int = 0
) -> bytes:
    """An identity update without an action; by default of the topic's inbox."""
    envelope = addressed(TopicKind.IDENTITY_UPDATE, INBOX_ID, seen, target)
    envelope.identity_update.inbox_id = inbox_id
    return envelope.SerializeToString()


def written_update(inbox_id: bytes, update: bytes) -> bytes:
    """A serialized IdentityUpdate, on its inbox's topic."""
    envelope = addressed(TopicKind.IDENTITY_UPDATE, inbox_id)
    envelope.identity_update.ParseFromString(update)
    return envelope.SerializeToString()


def paid(client_envelope: bytes, target: int = NODE_ID, retention_days: int | None = None) -> bytes:
    """A PayerEnvelope in today's form."""
    return sign_payer_envelope(client_envelope, target, PAYER, retention_days)


def with_other_days(payer_envelope: bytes, days: int) -> bytes:
    """Put days into a PayerEnvelope that its payer did not sign."""
    payer = envelopes_pb2.PayerEnvelope.FromString(payer_envelope)
    payer.message_retention_days = days
    written: bytes = payer.SerializeToString()
    return written


def paid_without_target(client_envelope: bytes) -> bytes:
    """A PayerEnvelope in XIP-49's form."""
    payer = envelopes_pb2.PayerEnvelope(unsigned_client_envelope=client_envelope)
    payer.payer_signature.bytes = PAYER.sign(keccak256(b"payer|" + client_envelope))
    return payer.SerializeToString()

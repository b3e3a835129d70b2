"""Valid ClientEnvelopes of a wanted size, the same for the same arguments."""

import random

from chainkit.protocol.proto import envelopes_pb2
from chainkit.types import TopicKind


def commit(group_id: bytes, size: int = 300, seed: int = 0) -> bytes:
    """A commit to a group, its MLS message ``size`` random bytes."""
    envelope = _addressed(TopicKind.GROUP_MESSAGE.topic(group_id))
    envelope.group_message.v1.data = random.Random(seed).randbytes(size)
    return envelope.SerializeToString()


def identity_update(inbox_id: bytes, size: int = 200, seed: int = 0) -> bytes:
    """An identity update of an inbox with one signature of ``size`` random bytes."""
    envelope = _addressed(TopicKind.IDENTITY_UPDATE.topic(inbox_id))
    envelope.identity_update.inbox_id = inbox_id.hex()
    signature = envelope.identity_update.actions.add().create_inbox.initial_identifier_signature
    signature.erc_191.bytes = random.Random(seed).randbytes(size)
    return envelope.SerializeToString()


def _addressed(topic: bytes) -> envelopes_pb2.ClientEnvelope:
    envelope = envelopes_pb2.ClientEnvelope()
    envelope.aad.target_originator = 0
    envelope.aad.target_topic = topic
    return envelope

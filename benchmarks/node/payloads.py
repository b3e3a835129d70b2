"""Welcomes of one size, as a payer sends them; each on a topic of its own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from chainkit.protocol.payer_envelope import sign_payer_envelope
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SigningKey
from chainkit.types import TopicKind

PAYER: Final = SigningKey(b"\x11" * 32)
_CONTENT_BYTES: Final = 220
_KEY_BYTES: Final = 32


def topics(count: int, seed: int = 1) -> list[bytes]:
    """Return different topics of welcomes."""
    chance = random.Random(seed)
    return [TopicKind.WELCOME.topic(chance.randbytes(_KEY_BYTES)) for _ in range(count)]


def payer_envelopes(some: Sequence[bytes], node_id: int, seed: int = 2) -> list[bytes]:
    """Return a signed PayerEnvelope for each topic, of some 420 bytes."""
    return [sign_payer_envelope(each, node_id, PAYER) for each in client_envelopes(some, seed)]


def client_envelopes(some: Sequence[bytes], seed: int = 2) -> list[bytes]:
    """Return a ClientEnvelope for each topic, as an application's users write them."""
    chance = random.Random(seed)
    return [_client_envelope(topic, chance) for topic in some]


def _client_envelope(topic: bytes, chance: random.Random) -> bytes:
    envelope = envelopes_pb2.ClientEnvelope()
    envelope.aad.target_topic = topic
    envelope.welcome_message.v1.installation_key = topic[1:]
    envelope.welcome_message.v1.data = chance.randbytes(_CONTENT_BYTES)
    return envelope.SerializeToString()

"""Messages of one exact size, as a group's members would publish them; the same each time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from chainkit.contracts.interface import shipped_interface
from chainkit.protocol.proto import envelopes_pb2
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, HASH_LENGTH, TopicKind

PAYLOAD_BYTES: Final = 300
"""Size of the ClientEnvelope that a transaction hands to the contract."""

_SEED: Final = 49


def message_calls(count: int) -> list[bytes]:
    """Return the calldata of ``count`` different ``addMessage``, payloads of PAYLOAD_BYTES each.

    Payloads are valid ClientEnvelopes (XIP-49 §3.3.2), so that an indexer serves all of them.
    """
    interface = shipped_interface("GroupMessages")
    return [
        interface.encode("addMessage", group_id, payload) for group_id, payload in _messages(count)
    ]


def _messages(count: int) -> Iterator[tuple[bytes, bytes]]:
    chance = random.Random(_SEED)
    for _ in range(count):
        group_id = chance.randbytes(HASH_LENGTH)
        # The fields around the data take some of the size; their length prefixes depend on it.
        overhead = len(_envelope(group_id, bytes(PAYLOAD_BYTES))) - PAYLOAD_BYTES
        payload = _envelope(group_id, chance.randbytes(PAYLOAD_BYTES - overhead))
        yield group_id, payload


def _envelope(group_id: bytes, data: bytes) -> bytes:
    envelope = envelopes_pb2.ClientEnvelope()
    envelope.aad.target_originator = BLOCKCHAIN_ORIGINATOR_ID
    envelope.aad.target_topic = TopicKind.GROUP_MESSAGE.topic(group_id)
    envelope.group_message.v1.data = data
    return envelope.SerializeToString()

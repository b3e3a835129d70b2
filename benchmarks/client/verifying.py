"""Pages of one topic, verified, compared and ordered, beside the two recovers of each envelope."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.network.catching_up import Pace, mean, recover_floor
from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.payer_envelope import sign_payer_envelope
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SigningKey
from chainkit.types import NANOSECONDS_PER_SECOND, TopicKind
from chainkit_client.ordering.causal import causally_ordered
from chainkit_client.reading.answer import read_answer
from chainkit_client.reading.held import MemoryLogs
from chainkit_client.reading.verified import Keys, VerifiedEnvelope

PAGE: Final = 500
NODES: Final = (100, 200, 300, 400)
CIPHERTEXT_BYTES: Final = 256
_GROUP_ID: Final = b"g" * 16
_BEGIN_NS: Final = 1_700_000_000 * NANOSECONDS_PER_SECOND


@dataclass(frozen=True, slots=True)
class Verified:
    """The floor and the figure of one run."""

    floor: Pace
    per_second: float


@dataclass(frozen=True, slots=True)
class _Topic:
    keys: Keys
    envelopes: Sequence[bytes]
    """In the order in which they were originated."""


def measure(count: int) -> Verified:
    """Measure one thread, floor before and after, for so many envelopes of a topic."""
    topic = _topic(count)
    before = recover_floor(topic.envelopes)
    began = time.perf_counter()
    verified = _read(topic)
    order = causally_ordered(verified, lambda originator_id, sequence_id: False)
    elapsed = time.perf_counter() - began
    assert len(order.ordered) == count
    return Verified(mean(before, recover_floor(topic.envelopes)), count / elapsed)


def _read(topic: _Topic) -> list[VerifiedEnvelope]:
    wanted = TopicKind.GROUP_MESSAGE.topic(_GROUP_ID)
    verified = []
    now_ns = _BEGIN_NS + len(topic.envelopes) * NANOSECONDS_PER_SECOND
    for start in range(0, len(topic.envelopes), PAGE):
        page = topic.envelopes[start : start + PAGE]
        verified += read_answer(page, wanted, NODES[0], topic.keys, MemoryLogs(), now_ns).accepted
    return verified


def _topic(count: int) -> _Topic:
    chance = random.Random(11)
    keys = {each: SigningKey(chance.randbytes(32)) for each in NODES}
    payer = SigningKey(chance.randbytes(32))
    last = dict.fromkeys(NODES, 0)
    envelopes = []
    for number in range(count):
        node_id = chance.choice(NODES)
        client = message(chance, _GROUP_ID, {each: seen for each, seen in last.items() if seen})
        last[node_id] += 1
        time_ns = _BEGIN_NS + number * NANOSECONDS_PER_SECOND
        paid = sign_payer_envelope(client, node_id, payer)
        stated = OriginatedEnvelope(node_id, last[node_id], time_ns, paid)
        envelopes.append(sign_originated(unsigned_originated(stated), keys[node_id]))
    public = {each: key.public_key for each, key in keys.items()}
    return _Topic(Keys(public), envelopes)


def message(chance: random.Random, group_id: bytes, seen: dict[int, int]) -> bytes:
    """Return a group's message as today's clients write it: an MLS PrivateMessage."""
    envelope = envelopes_pb2.ClientEnvelope()
    envelope.aad.target_topic = TopicKind.GROUP_MESSAGE.topic(group_id)
    envelope.aad.last_seen.node_id_to_sequence_id.update(seen)
    head = b"\0\1\0\2" + bytes([len(group_id)]) + group_id + (1).to_bytes(8, "big") + b"\1"
    length = (CIPHERTEXT_BYTES | 0x4000).to_bytes(2, "big")
    ciphertext = length + chance.randbytes(CIPHERTEXT_BYTES)
    envelope.group_message.v1.data = head + b"\0" + b"\4send" + ciphertext
    return envelope.SerializeToString()

"""Valid ClientEnvelopes of one size by the thousand, from a few that protobuf wrote."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.audit.exports.columns import Bytes
from benchmarks.audit.exports.shape import PAYLOAD_BYTES
from chainkit.protocol.proto import envelopes_pb2
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, HASH_LENGTH, TopicKind

_TEMPLATES: Final = 256
_UPDATES_EVERY: Final = 8
"""One in so many payloads is an identity update."""

_MALFORMED: Final = 0xFF
"""A first byte that no protobuf message has."""

_SEED: Final = 49


@dataclass(frozen=True, slots=True)
class Template:
    """A payload some of whose bytes may be any others."""

    kind: TopicKind
    identifier: bytes
    """32 bytes."""
    payload: bytes
    free: slice
    """Which bytes are encrypted, or a signature's: the same in all payloads of a kind."""


@dataclass(frozen=True, slots=True)
class Payloads:
    """Payloads in a row, and what they are filed under."""

    payloads: Bytes
    identifiers: Bytes
    are_updates: NDArray[np.bool_]


@cache
def templates() -> Sequence[Template]:
    """Return the same templates each time."""
    chance = random.Random(_SEED)
    return [
        _template(_update if number % _UPDATES_EVERY == 0 else _commit, chance)
        for number in range(_TEMPLATES)
    ]


def random_payloads(
    rng: np.random.Generator,
    rows: int,
    random_bytes: int,
    are_malformed: NDArray[np.bool_],
) -> Payloads:
    """Return valid payloads of PAYLOAD_BYTES, but for those that are to be malformed."""
    known = templates()
    chosen = rng.integers(0, len(known), rows)
    payloads = _stacked([each.payload for each in known])[chosen]
    are_updates = np.array([each.kind is TopicKind.IDENTITY_UPDATE for each in known])[chosen]
    for is_update in (False, True):
        _vary(rng, payloads, are_updates == is_update, _free(is_update, random_bytes))
    payloads[are_malformed, 0] = _MALFORMED
    identifiers = _stacked([each.identifier for each in known])
    return Payloads(payloads, identifiers[chosen], are_updates)


def _free(is_update: bool, random_bytes: int) -> slice:
    kind = TopicKind.IDENTITY_UPDATE if is_update else TopicKind.GROUP_MESSAGE
    free = next(each.free for each in templates() if each.kind is kind)
    return slice(max(free.start, free.stop - random_bytes), free.stop)


def _vary(rng: np.random.Generator, payloads: Bytes, rows: NDArray[np.bool_], free: slice) -> None:
    count, width = int(rows.sum()), free.stop - free.start
    varied = np.frombuffer(rng.bytes(count * width), np.uint8).reshape(count, width)
    payloads[rows, free] = varied


def _stacked(rows: Sequence[bytes]) -> Bytes:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)


def _template(
    make: Callable[[bytes, bytes], envelopes_pb2.ClientEnvelope], chance: random.Random
) -> Template:
    identifier = chance.randbytes(HASH_LENGTH)
    # The fields around the free bytes take some of the size; their length prefixes depend on it.
    overhead = make(identifier, bytes(PAYLOAD_BYTES)).ByteSize() - PAYLOAD_BYTES
    free = PAYLOAD_BYTES - overhead
    while make(identifier, bytes(free)).ByteSize() < PAYLOAD_BYTES:
        free += 1
    data = chance.randbytes(free)
    envelope = make(identifier, data)
    payload = envelope.SerializeToString()
    start = payload.rindex(data)
    is_update = envelope.HasField("identity_update")
    kind = TopicKind.IDENTITY_UPDATE if is_update else TopicKind.GROUP_MESSAGE
    return Template(kind, identifier, payload, slice(start, start + free))


def _commit(group_id: bytes, data: bytes) -> envelopes_pb2.ClientEnvelope:
    envelope = _addressed(TopicKind.GROUP_MESSAGE.topic(group_id))
    envelope.group_message.v1.data = data
    return envelope


def _update(inbox_id: bytes, data: bytes) -> envelopes_pb2.ClientEnvelope:
    envelope = _addressed(TopicKind.IDENTITY_UPDATE.topic(inbox_id))
    envelope.identity_update.inbox_id = inbox_id.hex()
    signature = envelope.identity_update.actions.add().create_inbox.initial_identifier_signature
    signature.erc_191.bytes = data
    return envelope


def _addressed(topic: bytes) -> envelopes_pb2.ClientEnvelope:
    envelope = envelopes_pb2.ClientEnvelope()
    envelope.aad.target_originator = BLOCKCHAIN_ORIGINATOR_ID
    envelope.aad.target_topic = topic
    return envelope

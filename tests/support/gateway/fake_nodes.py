"""Nodes that originate in memory, and fail as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from chainkit.nodes.outcomes import NodeLost
from chainkit.nodes.preference import in_order_of_preference
from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.proto.envelopes_pb2 import OriginatorEnvelope, UnsignedOriginatorEnvelope
from chainkit.signatures import SigningKey
from chainkit.types import Place

KEY = SigningKey(b"\5" * 32)
PAGE = 2


class FakeNode:
    """A node; ``failures`` come first, one for each publish."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.stored: list[bytes] = []
        self.others: list[bytes] = []
        self.asked: list[bytes] = []
        self.failures: list[Exception] = []
        self.query_failures: list[Exception] = []
        self.loses_answers = False
        self.served: dict[bytes, bytes] = {}
        self.signs = True
        self.stalls = False
        """Whether the node keeps callers waiting for a payload of the chain."""
        self.was_asked = asyncio.Event()
        """Whether the node was asked for a payload of the chain."""

    async def publish(self, payer_envelope: bytes, seconds: float) -> bytes:
        self.asked.append(payer_envelope)
        if self.failures:
            raise self.failures.pop(0)
        envelope = originated(self.node_id, len(self.stored) + 1, payer_envelope)
        self.stored.append(envelope)
        if self.loses_answers:
            raise NodeLost(f"node {self.node_id}", "an answer", "Socket closed")
        return envelope

    async def behind(
        self, topic: bytes, cursor: Mapping[int, int], seconds: float
    ) -> Sequence[bytes]:
        if self.query_failures:
            raise self.query_failures.pop(0)
        later = [each for each in self.others + self.stored if is_behind(each, cursor)]
        return later[:PAGE]

    def has_signed(self, envelope: bytes) -> bool:
        return self.signs

    async def indexed(
        self, topic: bytes, place: Place, transaction_hash: bytes, seconds: float
    ) -> bytes:
        self.was_asked.set()
        if self.stalls:
            await asyncio.sleep(seconds)
        if transaction_hash not in self.served:
            raise NodeLost(f"stream of node {self.node_id}", f"payload {place[1]}", "its end")
        return self.served[transaction_hash]


class FakeNodes:
    """The nodes of a gateway."""

    def __init__(self, *nodes: FakeNode) -> None:
        self.nodes = {each.node_id: each for each in nodes}

    @property
    def urls(self) -> Mapping[int, str]:
        return {each: f"http://node-{each}" for each in self.nodes}

    def for_topic(self, topic: bytes) -> Sequence[FakeNode]:
        return [self.nodes[each] for each in in_order_of_preference(topic, self.nodes)]

    def node(self, node_id: int) -> FakeNode | None:
        return self.nodes.get(node_id)

    def __iter__(self) -> Iterator[FakeNode]:
        return iter(self.nodes.values())


def originated(node_id: int, sequence_id: int, payer_envelope: bytes) -> bytes:
    envelope = OriginatedEnvelope(node_id, sequence_id, sequence_id, payer_envelope)
    return sign_originated(unsigned_originated(envelope), KEY)


def of_chain(sequence_id: int) -> bytes:
    """An envelope of originator 0, whose proof is another one."""
    unsigned = UnsignedOriginatorEnvelope(originator_sequence_id=sequence_id)
    envelope = OriginatorEnvelope(unsigned_originator_envelope=unsigned.SerializeToString())
    envelope.blockchain_proof.transaction_hash = bytes(32)
    return envelope.SerializeToString()


def is_behind(envelope: bytes, cursor: Mapping[int, int]) -> bool:
    signed = OriginatorEnvelope.FromString(envelope)
    unsigned = UnsignedOriginatorEnvelope.FromString(signed.unsigned_originator_envelope)
    return unsigned.originator_sequence_id > cursor.get(unsigned.originator_node_id, 0)

"""Envelopes of one topic as nodes serve them to a client, right and wrong."""

from __future__ import annotations

from collections.abc import Mapping

from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.report import parse_unsigned
from chainkit.protocol import wire
from chainkit.protocol.envelope import sign_originator_envelope
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import TopicKind
from chainkit_client.breach import Breach
from chainkit_client.reading.held import MemoryLogs
from chainkit_client.reading.verified import Keys, VerifiedEnvelope
from support import mls, publishes
from support.chain_times import chain_ns
from support.network.originator import BEGIN_NS, SECOND_NS, Originator

NODE, PEER = Originator(100), Originator(200, SigningKey(b"\4" * 32))
KEYS = Keys({each.node_id: each.key.public_key for each in (NODE, PEER)})
TOPIC = TopicKind.GROUP_MESSAGE.topic(publishes.GROUP_ID)
NOW_NS = BEGIN_NS + 60 * SECOND_NS


def weight(breach: Breach) -> Weight:
    """How much a breach's report weighs for who knows the nodes' keys."""
    report = breach.report(NOW_NS)
    assert report is not None
    return judge_safety(parse_unsigned(report), KEYS.by_node, NOW_NS).weight


def of_chain(
    sequence_id: int,
    seconds: float = 0.0,
    client: bytes | None = None,
    server: Originator = NODE,
    originator_id: int = 0,
    transaction_hash: bytes | None = None,
) -> bytes:
    """A payload of the chain as a node serves it: by default a commit of the group."""
    payload = publishes.commit({0: sequence_id - 1}) if client is None else client
    block_seconds = int(BEGIN_NS / SECOND_NS + seconds)
    unsigned = b"".join(
        (
            wire.integer_field(wire.ORIGINATOR_TAG, originator_id),
            wire.integer_field(wire.SEQUENCE_TAG, sequence_id),
            wire.integer_field(wire.TIME_TAG, chain_ns(block_seconds, sequence_id)),
            wire.bytes_field(wire.PAYER_TAG, wire.bytes_field(wire.CLIENT_TAG, payload)),
        )
    )
    return sign_originator_envelope(unsigned, transaction_hash or keccak256(unsigned), server.key)


def bound_message(seen: Mapping[int, int], stated: Mapping[int, int] | None = None) -> bytes:
    """A group message that authenticates a cursor, and states it or another one."""
    kind = TopicKind.GROUP_MESSAGE
    aad = publishes.addressed(kind, publishes.GROUP_ID, seen).aad.SerializeToString()
    message = mls.private_message(publishes.GROUP_ID, authenticated_data=keccak256(aad))
    return publishes.group_message(message, seen=seen if stated is None else stated)


class HeldTopic(MemoryLogs):
    """The envelopes that a client holds of a topic."""

    def keep(self, envelope: VerifiedEnvelope) -> None:
        """Hold an envelope that was accepted."""
        self.log(envelope.originator_id).hold(envelope.held)

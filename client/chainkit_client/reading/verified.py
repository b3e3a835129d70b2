"""One envelope of a node's answer: its signer, and the author's payload (XIP-49 §3.3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from chainkit.errors import InvalidSignature, MalformedEnvelope
from chainkit.misbehavior.received_batch import HeldEnvelope
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.authenticated_data import AAD_FIELD, AadBinding, aad_binding
from chainkit.protocol.envelope import (
    ServedEnvelope,
    blockchain_proof_digest,
    breaks_the_xip,
    parse_originator_envelope,
    quarantine_reason,
    recover_node_key,
    stated_place,
    unread_reason,
)
from chainkit.protocol.mls.message import ContentType
from chainkit.protocol.publish_rules.client_envelope import (
    ParsedClientEnvelope,
    parse_client_envelope,
)
from chainkit.protocol.publish_rules.refusal import PublishRefused
from chainkit.protocol.received_envelope import ReceivedEnvelope, read_received_publish
from chainkit.protocol.served_topic import PADDING, named_topic
from chainkit.protocol.strict import without_field
from chainkit.signatures import keccak256
from chainkit.types import HASH_LENGTH, PayloadEvent, Place, TopicKind
from chainkit_client.breach import Breach

_CHAIN_KINDS: Final = tuple(
    bytes([kind]) for kind in (TopicKind.GROUP_MESSAGE, TopicKind.IDENTITY_UPDATE)
)


@dataclass(frozen=True, slots=True)
class Keys:
    """The registry's keys at a block, and the chain's originators."""

    by_node: Mapping[int, bytes]
    """65 bytes each, by node id; also of disabled nodes, whose envelopes stay valid."""
    chain_ids: frozenset[int] = frozenset({0})
    sparse_ids: frozenset[int] = frozenset()
    """Those of the chain's originators whose payloads come under any sequence ids (ADR 50)."""

    def of(self, node_id: int) -> bytes:
        """Return a node's key. Raises MalformedEnvelope where the registry has none."""
        key = self.by_node.get(node_id)
        if key is None:
            raise MalformedEnvelope("envelope", "one of a registered node", f"node {node_id}'s")
        return key


@dataclass(frozen=True, slots=True)
class VerifiedEnvelope:
    """An envelope whose signature is that of its originator, or of the node that vouches for it."""

    originator_id: int
    """The originator; the chain's for commits and identity updates."""
    sequence_id: int
    """1 to 2^63 - 1."""
    originator_ns: int
    """Nanoseconds since 1970: the originator's clock, for the chain by ADR 45."""
    client: ParsedClientEnvelope
    """The author's payload."""
    envelope: bytes
    """The OriginatorEnvelope, as evidence and proof."""
    digest: bytes
    """32 bytes: the same for all receivers of the same envelope."""
    expires_at: int | None = None
    """Seconds since 1970, after which nodes may remove the envelope; None for never."""
    transaction_hash: bytes | None = None
    """32 bytes: the transaction of a payload of the chain; None for a node's envelope."""

    @property
    def place(self) -> Place:
        """Originator and sequence id."""
        return self.originator_id, self.sequence_id

    @property
    def held(self) -> HeldEnvelope:
        """The part of the envelope that comparisons need."""
        return HeldEnvelope(self.sequence_id, self.originator_ns, self.digest, self.envelope)

    @property
    def topic(self) -> bytes:
        """Kind byte and identifier."""
        return self.client.topic

    @property
    def depends_on(self) -> Mapping[int, int]:
        """Originator id to the highest sequence id of the topic that the author had seen."""
        return self.client.last_seen.sequence_ids

    @property
    def is_commit(self) -> bool:
        """Whether the envelope begins another epoch of its group."""
        header = self.client.header
        return header is not None and header.content_type is ContentType.COMMIT

    @property
    def binding(self) -> AadBinding:
        """Whether the author authenticated target, topic and cursor."""
        return aad_binding(self.client)

    @property
    def payload_hash(self) -> bytes:
        """32 bytes, the same for copies that were published to several originators (§3.3.6)."""
        return keccak256(without_field(self.client.client_envelope, AAD_FIELD))


@dataclass(frozen=True, slots=True)
class Void:
    """A signed envelope that must not be applied.

    A message that depends on a void envelope need not wait.
    """

    held: HeldEnvelope
    reason: str


@dataclass(frozen=True, slots=True)
class Read:
    """One envelope of an answer, judged by its bytes alone."""

    envelope: VerifiedEnvelope | None
    """The verified envelope; None where the payload breaks a rule."""
    received: ReceivedEnvelope | None = None
    """An originator's envelope, to compare with held ones; None for the chain's."""
    breach: Breach | None = None
    void: tuple[Place, Void] | None = None
    """A payload of the chain that nodes may serve and nobody can read."""


def read_envelope(data: bytes, server_id: int, keys: Keys) -> Read:
    """Verify an envelope that a node answered.

    Raises MalformedData where the envelope is no evidence: it does not parse, or neither its
    originator nor, for a payload of the chain, the answering node signed it.
    """
    originator_id, _ = stated_place(data)
    if originator_id in keys.chain_ids:
        return _read_chain(data, server_id, keys)
    return _read_originated(data, originator_id, keys)


def _read_originated(data: bytes, originator_id: int, keys: Keys) -> Read:
    received, publish = read_received_publish(data, originator_id, keys.of(originator_id))
    if publish is None or received.fault is not None:
        # The judge of received envelopes makes a breach of this envelope.
        return Read(None, received)
    envelope = VerifiedEnvelope(
        received.originator_id,
        received.sequence_id,
        received.originator_ns,
        publish.client,
        received.envelope,
        received.digest,
        received.expires_at,
    )
    return Read(envelope, received)


def _read_chain(data: bytes, server_id: int, keys: Keys) -> Read:
    served = parse_originator_envelope(data)
    subject = f"payload {served.sequence_id} of originator {served.originator_id}"
    if (signer := recover_node_key(served)) != keys.of(server_id):
        got = f"0x{signer[1:9].hex()}…"
        raise InvalidSignature(subject, f"the signature of node {server_id}", got)
    if (reason := _not_servable(served)) is not None:
        kind = Misbehavior.BLOCKCHAIN_INCONSISTENCY
        return Read(None, breach=Breach(server_id, kind, f"{subject}: {reason}", (data,)))
    place = served.originator_id, served.sequence_id
    # The digest includes the transaction's hash: two nodes that name different ones disagree.
    digest = blockchain_proof_digest(served.unsigned_originator_envelope, served.transaction_hash)
    try:
        client = parse_client_envelope(served.client_envelope)
    except PublishRefused as error:
        # Anyone may post any bytes, and nodes serve payloads that name their topic (XIP-49 §2.2).
        held = HeldEnvelope(served.sequence_id, served.originator_ns, digest, data)
        return Read(None, void=(place, Void(held, str(error))))
    return Read(
        VerifiedEnvelope(
            served.originator_id,
            served.sequence_id,
            served.originator_ns,
            client,
            data,
            digest,
            transaction_hash=served.transaction_hash,
        )
    )


def _not_servable(served: ServedEnvelope) -> str | None:
    """Return why no honest node serves a payload as the chain's, None where a node may."""
    if served.sequence_id == 0:
        return "no payload has sequence id 0"
    reason = unread_reason(served.client_envelope)
    if reason is not None:
        # Other implementations may serve what readers differ on: the payload is void, no more.
        return reason if breaks_the_xip(reason) else None
    topic = named_topic(served.client_envelope)
    if topic[:1] not in _CHAIN_KINDS:
        return "it names no topic of the chain"
    # A group's id may be shorter than the padded id of the contract.
    identifier = topic[1:].ljust(HASH_LENGTH, PADDING)
    event = PayloadEvent(
        TopicKind(topic[0]),
        identifier,
        served.client_envelope,
        served.sequence_id,
        served.originator_id,
    )
    return quarantine_reason(event)

"""One envelope that a node answered: who signed it, and what its author wrote (XIP-49 §3.3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chainkit.errors import InvalidSignature, MalformedData, MalformedEnvelope
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.authenticated_data import AadBinding, aad_binding
from chainkit.protocol.envelope import (
    ServedEnvelope,
    parse_originator_envelope,
    recover_node_key,
    stated_place,
)
from chainkit.protocol.mls.message import ContentType
from chainkit.protocol.publish_rules.client_envelope import (
    Destination,
    ParsedClientEnvelope,
    parse_client_envelope,
)
from chainkit.protocol.publish_rules.refusal import PublishRefused
from chainkit.protocol.received_envelope import ReceivedEnvelope, read_received_publish
from chainkit.signatures import keccak256
from chainkit.types import Place
from chainkit_client.breach import Breach


@dataclass(frozen=True, slots=True)
class Keys:
    """The registry's keys at a block, and which originators are the chain's."""

    by_node: Mapping[int, bytes]
    """65 bytes each, by node id; the disabled nodes' too, whose envelopes stay valid."""
    chain_ids: frozenset[int] = frozenset({0})

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
    """The chain's for commits and identity updates."""
    sequence_id: int
    """1 to 2^63 - 1."""
    originator_ns: int
    """Nanoseconds since 1970: the originator's clock, of the chain the block's time."""
    client: ParsedClientEnvelope
    """The payload that its author published."""
    envelope: bytes
    """The OriginatorEnvelope: evidence, and proof for others."""
    digest: bytes
    """32 bytes: the same for all who received the same."""
    transaction_hash: bytes | None = field(default=None)
    """32 bytes of a payload of the chain: where it can be looked up there."""

    @property
    def place(self) -> Place:
        """Originator and sequence id."""
        return self.originator_id, self.sequence_id

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
        """Whether it begins another epoch of its group."""
        header = self.client.header
        return header is not None and header.content_type is ContentType.COMMIT

    @property
    def binding(self) -> AadBinding:
        """Whether its author authenticated target, topic and cursor."""
        return aad_binding(self.client)

    @property
    def payload_hash(self) -> bytes:
        """32 bytes, the same for copies that were published to several originators (§3.3.6)."""
        return keccak256(self.client.payload)


@dataclass(frozen=True, slots=True)
class Read:
    """One envelope of an answer, as far as its own bytes tell."""

    envelope: VerifiedEnvelope | None
    """None where its payload breaks a rule."""
    received: ReceivedEnvelope | None = None
    """An originator's envelope, to be compared with what is held of it; None for the chain's."""
    breach: Breach | None = None


def read_envelope(data: bytes, server_id: int, keys: Keys) -> Read:
    """Verify an envelope that a node answered.

    Raises MalformedData where nothing in it can be held against anybody: it does not parse, or
    neither its originator nor, of a payload of the chain, the node that answered signed it.
    """
    originator_id, _ = stated_place(data)
    if originator_id in keys.chain_ids:
        return _read_chain(data, server_id, keys)
    return _read_originated(data, originator_id, keys)


def _read_originated(data: bytes, originator_id: int, keys: Keys) -> Read:
    received, publish = read_received_publish(data, originator_id, keys.of(originator_id))
    if publish is None or received.fault is not None:
        # The judge of received envelopes makes a breach of it.
        return Read(None, received)
    envelope = VerifiedEnvelope(
        received.originator_id,
        received.sequence_id,
        received.originator_ns,
        publish.client,
        received.envelope,
        received.digest,
    )
    return Read(envelope, received)


def _read_chain(data: bytes, server_id: int, keys: Keys) -> Read:
    served = parse_originator_envelope(data)
    subject = f"payload {served.sequence_id} of originator {served.originator_id}"
    if (signer := recover_node_key(served)) != keys.of(server_id):
        got = f"0x{signer[1:9].hex()}…"
        raise InvalidSignature(subject, f"the signature of node {server_id}", got)
    try:
        client = _chain_payload(served)
    except MalformedData as error:
        reason = f"{subject}: {error}"
        kind = Misbehavior.BLOCKCHAIN_INCONSISTENCY
        return Read(None, breach=Breach(server_id, kind, reason, (data,)))
    return Read(
        VerifiedEnvelope(
            served.originator_id,
            served.sequence_id,
            served.originator_ns,
            client,
            data,
            keccak256(served.unsigned_originator_envelope),
            served.transaction_hash,
        )
    )


def _chain_payload(served: ServedEnvelope) -> ParsedClientEnvelope:
    """Return the payload. Raises MalformedEnvelope where no honest node serves it."""
    try:
        client = parse_client_envelope(served.client_envelope)
    except PublishRefused as error:
        raise MalformedEnvelope("payload", "one that may be served", error) from error
    if served.sequence_id == 0:
        raise MalformedEnvelope("sequence id", "1 or more", 0)
    if client.destination is not Destination.CHAIN:
        raise MalformedEnvelope("payload", "one for the chain", "one for an originator")
    if client.target_originator not in (None, served.originator_id):
        expected = f"target {served.originator_id}"
        raise MalformedEnvelope("payload", expected, client.target_originator)
    return client

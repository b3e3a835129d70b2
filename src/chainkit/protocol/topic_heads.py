"""Topic heads: a node's signed statement of all that it has originated on a topic.

A query's answer is not signed, so a node can leave an envelope out of an answer and deny this
later. A node cannot deny a head: a reader with the whole topic computes the head's hash, or shows
what is missing.

A head is about its signer's own envelopes alone. The signer holds all its own envelopes, in the
order of signing, and loses none; others' envelopes may reach a node late, without any fault of the
node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from chainkit.errors import MalformedData
from chainkit.protocol.originated_envelope import originator_digest, parse_originated
from chainkit.protocol.proto import node_api_pb2
from chainkit.protocol.strict import field_bytes
from chainkit.signatures import TOPIC_HEAD_LABEL, SigningKey, keccak256, recover_public_key

MOST_ENTRIES: Final = 1000
"""Entries of one answer, and of one evidence: some 45 kB."""

MOST_HEAD_BYTES: Final = 1024
"""Most bytes of a SignedTopicHead: its numbers, hash and signature have less than 200."""

_CHAIN_LABEL: Final = b"topic|"
_SUBJECT: Final = "topic head"
_UNSIGNED_FIELD: Final = 1
"""``OriginatorEnvelope.unsigned_originator_envelope``."""


class Entry(NamedTuple):
    """An envelope on a topic, without its content."""

    sequence_id: int
    digest: bytes
    """The 32 bytes that the envelope's originator signed."""
    expires_at: int | None = None
    """Seconds since 1970, as the listing node states it: no part of the hash."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The entries of a topic up to one entry, as one hash."""

    count: int = 0
    last_id: int = 0
    """Sequence id of the last one, 0 before the first."""
    hash: bytes = bytes(32)

    def extended(self, entries: Iterable[Entry]) -> Chain:
        """Return the chain with more entries, whose sequence ids rise.

        Raises MalformedData where the ids do not rise.
        """
        count, last_id, hash_ = self.count, self.last_id, self.hash
        for sequence_id, digest, _ in entries:
            if not last_id < sequence_id < 2**64:
                raise MalformedData("topic entry", f"a sequence id above {last_id}", sequence_id)
            number = sequence_id.to_bytes(8, "big")
            hash_ = keccak256(_CHAIN_LABEL + hash_ + number + digest)
            count, last_id = count + 1, sequence_id
        return Chain(count, last_id, hash_)


@dataclass(frozen=True, slots=True)
class TopicHead:
    """The contents of a head; nothing is proved."""

    originator_id: int
    topic: bytes
    through_id: int
    """The highest sequence id of all that the node had originated, on any topic."""
    chain: Chain
    """The signer's envelopes on this topic, up to ``through_id``."""


def sign_topic_head(head: TopicHead, key: SigningKey) -> bytes:
    """Write a SignedTopicHead."""
    unsigned = node_api_pb2.TopicHead(
        originator_node_id=head.originator_id,
        topic=head.topic,
        through_sequence_id=head.through_id,
        count=head.chain.count,
        last_sequence_id=head.chain.last_id,
        chained_hash=head.chain.hash,
    ).SerializeToString()
    signed = node_api_pb2.SignedTopicHead(
        unsigned_topic_head=unsigned, originator_signature=key.sign(_digest(unsigned))
    )
    return signed.SerializeToString()


def read_topic_head(data: bytes, signing_key: bytes) -> TopicHead:
    """Decode a SignedTopicHead that a key of 65 bytes has signed.

    Raises MalformedData where the head does not parse, is too large or contradicts itself, and
    where another key signed it.
    """
    if len(data) > MOST_HEAD_BYTES:
        raise MalformedData(_SUBJECT, f"at most {MOST_HEAD_BYTES} bytes", f"{len(data)} bytes")
    try:
        signed = node_api_pb2.SignedTopicHead.FromString(data)
        head = node_api_pb2.TopicHead.FromString(signed.unsigned_topic_head)
    except DecodeError as error:
        raise MalformedData(_SUBJECT, "a SignedTopicHead", error) from error
    chain = Chain(head.count, head.last_sequence_id, head.chained_hash)
    _check(chain, head.through_sequence_id)
    signer = recover_public_key(signed.originator_signature, _digest(signed.unsigned_topic_head))
    if signer != signing_key:
        raise MalformedData(_SUBJECT, f"node {head.originator_node_id}'s signature", "another's")
    return TopicHead(head.originator_node_id, head.topic, head.through_sequence_id, chain)


def entry_of(envelope: bytes) -> Entry:
    """Return the entry of an envelope that a node originated. Raises MalformedEnvelope."""
    parsed = parse_originated(envelope)
    digest = originator_digest(parsed.unsigned_originator_envelope)
    return Entry(parsed.envelope.sequence_id, digest, parsed.envelope.expiry_unixtime)


def entry_digest(envelope: bytes) -> bytes:
    """Return the digest of the entry of an envelope that is stored, so that it is strict."""
    return originator_digest(field_bytes(envelope, _UNSIGNED_FIELD) or b"")


def written_entry(entry: Entry) -> node_api_pb2.TopicEntry:
    """Return an entry as a message."""
    return node_api_pb2.TopicEntry(
        sequence_id=entry.sequence_id, digest=entry.digest, expiry_unixtime=entry.expires_at or 0
    )


def read_entry(message: node_api_pb2.TopicEntry) -> Entry:
    """Return a message's entry."""
    return Entry(message.sequence_id, message.digest, message.expiry_unixtime or None)


def _check(chain: Chain, through_id: int) -> None:
    """Check that some log can have this head."""
    if len(chain.hash) != len(Chain().hash):
        raise MalformedData(_SUBJECT, "a hash of 32 bytes", f"{len(chain.hash)} bytes")
    if chain.count == 0 and chain != Chain():
        raise MalformedData(_SUBJECT, "no last envelope and no hash of none", chain.last_id)
    if not chain.count <= chain.last_id <= through_id:
        expected = f"{chain.count} envelopes up to {through_id}"
        raise MalformedData(_SUBJECT, expected, f"the last one is {chain.last_id}")


def _digest(unsigned: bytes) -> bytes:
    return keccak256(TOPIC_HEAD_LABEL + unsigned)

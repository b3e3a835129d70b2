"""Payloads of clients, well-formed and malformed: pure, and the same per seed."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from chainkit.protocol.proto import envelopes_pb2, identity_associations_pb2, mls_api_pb2
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, HASH_LENGTH, TopicKind

COMMIT_BYTES = (300, 8_000)
"""Sizes of an MLS commit: from a small group's to one that rewrites a large tree."""

IDENTITY_UPDATE_BYTES = (200, 900)
"""Sizes of an identity update: one to four actions with their signatures."""

_MESSAGES_PER_GROUP = 8
_UPDATES_PER_INBOX = 2
_FIRST_CLIENT_TIME_NS = 1_700_000_000_000_000_000
_ANOTHER_ORIGINATOR_ID = 100

Envelope = envelopes_pb2.ClientEnvelope


@dataclass(frozen=True, slots=True)
class Payload:
    """The payload that one transaction publishes."""

    kind: TopicKind
    """The target contract: GROUP_MESSAGE or IDENTITY_UPDATE."""
    identifier: bytes
    """Group id or inbox id, 32 bytes."""
    data: bytes
    """A serialized ClientEnvelope, or what a malformed payload has instead."""
    malformed: bool


def payloads(
    messages: int, identity_share: float, malformed: int, last_seen: int, seed: int
) -> list[Payload]:
    """Return well-formed messages and, scattered among them, malformed payloads.

    ``identity_share`` of the ``messages`` are identity updates. ``last_seen`` is the sequence id of
    originator 0 that all clients have seen.
    """
    source = _Source(random.Random(seed), messages, last_seen)
    updates = round(messages * identity_share)
    made = [source.well_formed(TopicKind.IDENTITY_UPDATE) for _ in range(updates)]
    made += [source.well_formed(TopicKind.GROUP_MESSAGE) for _ in range(messages - updates)]
    made += source.malformed(malformed)
    source.chance.shuffle(made)
    return made


class _Source:
    """Groups, inboxes and the random choice among them."""

    def __init__(self, chance: random.Random, messages: int, last_seen: int) -> None:
        self.chance = chance
        self._last_seen = last_seen
        self._identifiers = {
            TopicKind.GROUP_MESSAGE: self._some(messages // _MESSAGES_PER_GROUP),
            TopicKind.IDENTITY_UPDATE: self._some(messages // _UPDATES_PER_INBOX),
        }

    def _some(self, count: int) -> list[bytes]:
        return [self.chance.randbytes(HASH_LENGTH) for _ in range(max(1, count))]

    def well_formed(self, kind: TopicKind) -> Payload:
        identifier = self.chance.choice(self._identifiers[kind])
        data = self._envelope(kind, identifier).SerializeToString()
        return Payload(kind, identifier, data, malformed=False)

    def malformed(self, count: int) -> list[Payload]:
        """Return payloads of every kind of fault in turn, to both contracts in turn."""
        faults: tuple[Callable[[TopicKind, bytes], bytes], ...] = (
            lambda kind, identifier: self.chance.randbytes(self.chance.randint(*COMMIT_BYTES)),
            self._another_topic,
            self._another_payload_kind,
            lambda kind, identifier: b"",
            self._truncated,
            self._another_originator,
        )
        kinds = (TopicKind.GROUP_MESSAGE, TopicKind.IDENTITY_UPDATE)
        made = []
        for index in range(count):
            # The kind changes once per round of faults, so that each fault meets each contract.
            kind = kinds[index // len(faults) % len(kinds)]
            identifier = self.chance.choice(self._identifiers[kind])
            data = faults[index % len(faults)](kind, identifier)
            made.append(Payload(kind, identifier, data, malformed=True))
        return made

    def _envelope(self, kind: TopicKind, identifier: bytes) -> Envelope:
        envelope = Envelope()
        envelope.aad.target_originator = BLOCKCHAIN_ORIGINATOR_ID
        envelope.aad.target_topic = kind.topic(identifier)
        if self._last_seen:
            cursor = envelope.aad.last_seen.node_id_to_sequence_id
            cursor[BLOCKCHAIN_ORIGINATOR_ID] = self._last_seen
        if kind is TopicKind.GROUP_MESSAGE:
            envelope.group_message.CopyFrom(self._group_message())
        else:
            envelope.identity_update.CopyFrom(self._identity_update(identifier))
        return envelope

    def _group_message(self) -> mls_api_pb2.GroupMessageInput:
        # Many commits are small, few are large: the square root of the range is the middle.
        smallest, largest = COMMIT_BYTES
        size = round(smallest * (largest / smallest) ** self.chance.random())
        version = mls_api_pb2.GroupMessageInput.V1(
            data=self.chance.randbytes(size), sender_hmac=self.chance.randbytes(32)
        )
        return mls_api_pb2.GroupMessageInput(v1=version)

    def _identity_update(self, inbox_id: bytes) -> identity_associations_pb2.IdentityUpdate:
        size = self.chance.randint(*IDENTITY_UPDATE_BYTES)
        update = identity_associations_pb2.IdentityUpdate(
            client_timestamp_ns=_FIRST_CLIENT_TIME_NS + self.chance.randrange(10**15),
            inbox_id=inbox_id.hex(),
        )
        update.actions.extend(self._actions(size))
        return update

    def _actions(self, size: int) -> Iterator[identity_associations_pb2.IdentityAction]:
        while size > 0:
            action = self._association()
            yield action
            size -= action.ByteSize()

    def _association(self) -> identity_associations_pb2.IdentityAction:
        action = identity_associations_pb2.IdentityAction()
        action.add.new_member_identifier.installation_public_key = self.chance.randbytes(32)
        action.add.existing_member_signature.erc_191.bytes = self.chance.randbytes(65)
        installation = action.add.new_member_signature.installation_key
        installation.bytes = self.chance.randbytes(64)
        installation.public_key = action.add.new_member_identifier.installation_public_key
        return action

    def _another_topic(self, kind: TopicKind, identifier: bytes) -> bytes:
        envelope = self._envelope(kind, identifier)
        envelope.aad.target_topic = kind.topic(self.chance.randbytes(HASH_LENGTH))
        return envelope.SerializeToString()

    def _another_payload_kind(self, kind: TopicKind, identifier: bytes) -> bytes:
        envelope = self._envelope(kind, identifier)
        if kind is TopicKind.GROUP_MESSAGE:
            envelope.identity_update.CopyFrom(self._identity_update(identifier))
        else:
            envelope.group_message.CopyFrom(self._group_message())
        return envelope.SerializeToString()

    def _another_originator(self, kind: TopicKind, identifier: bytes) -> bytes:
        envelope = self._envelope(kind, identifier)
        envelope.aad.target_originator = _ANOTHER_ORIGINATOR_ID
        return envelope.SerializeToString()

    def _truncated(self, kind: TopicKind, identifier: bytes) -> bytes:
        data = self._envelope(kind, identifier).SerializeToString()
        return data[: len(data) * 2 // 3]

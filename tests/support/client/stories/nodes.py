"""Simulated nodes: late, lossy, sometimes away; one of them may lie to those who read it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from chainkit.misbehavior.types import Misbehavior
from chainkit.nodes.outcomes import NodeLost, NodeUnreached
from chainkit.protocol.envelope import sign_originator_envelope
from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.publish_rules.judgement import NodeView, judge_publish
from chainkit.protocol.publish_rules.refusal import PublishRefused
from chainkit.protocol.topic_heads import Chain, Entry, TopicHead, entry_of, sign_topic_head
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import Cursor, Node, Place
from chainkit_client.groups.payload import group_topic
from chainkit_node.originating.publisher import as_refusal, read_for_originator
from support import mls, publishes
from support.client.group_network import BEGIN_NS, GROUP_ID, SECOND_NS, payload_hash_of
from support.client.stories.story_chain import Block, SeenChain, transaction_of
from support.forms import differing

if TYPE_CHECKING:
    from support.client.stories.story import Story


PROVABLE = {
    # One who reads only one of both envelopes finds that the node's head names the other one.
    "equivocates": {Misbehavior.DUPLICATE_SEQUENCE_ID, Misbehavior.OUT_OF_ORDER},
    "leaves out of heads": {Misbehavior.OUT_OF_ORDER},
    "future-dates": {Misbehavior.OUT_OF_ORDER},
    "depends on itself": {Misbehavior.CAUSAL_ORDERING},
    "doctors the chain": {Misbehavior.BLOCKCHAIN_INCONSISTENCY},
}
"""Lies that leave a proof, and the type of the report."""
DENIABLE = ("omits", "reorders", "moves commits", "stays on a fork")
"""Lies that an honest node could have sent, or that nobody signed."""
LIES = (*PROVABLE, *DENIABLE)


@dataclass(frozen=True)
class Stored:
    """An envelope in the log of its originator."""

    at: float
    """When the node stored the envelope."""
    topic: bytes
    envelope: bytes
    payload_hash: bytes
    """The MLS message's; of anything else it says nothing."""


@dataclass
class SimulatedNode:
    """As ``network.asked.AskedNode``."""

    story: Story
    node_id: int
    chain: SeenChain
    key: SigningKey = field(init=False)
    log: list[Stored] = field(default_factory=list)
    delay: float = 1.0
    """Seconds after which the node has other nodes' envelopes."""
    is_down: bool = False
    lie: str | None = None
    told: int = 0
    """How many of the node's answers were provable lies."""
    false: set[bytes] = field(default_factory=set)
    """Envelopes that the node invented."""
    last_ns: int = 0
    fork: list[bytes] = field(default_factory=list)
    """The chain as it served it before a reorg."""

    def __post_init__(self) -> None:
        self.key = SigningKey(keccak256(b"node %d" % self.node_id))

    @property
    def entry(self) -> Node:
        """The node's entry in the registry."""
        url = f"http://node-{self.node_id}.test"
        return Node(self.node_id, self.key.public_key, url, is_enabled=True)

    @property
    def random(self) -> Random:
        return self.story.random

    # Its log.

    def originate(self, payer_envelope: bytes) -> bytes:
        """Take a payload, and return the envelope that it signs. Raises the product's refusals."""
        try:
            publish = read_for_originator(payer_envelope)
            judge_publish(publish, self._view(publish.client.topic))
        except PublishRefused as error:
            raise as_refusal(error) from error
        if self._lies("depends on itself", 0.5):
            self.told += 1
            own = publishes.group_message(seen={self.node_id: len(self.log) + 1})
            self._store(group_topic(GROUP_ID), own, publishes.paid(own, self.node_id))
        client = publish.client
        return self._store(client.topic, client.client_envelope, payer_envelope)

    def take_from_a_stranger(self) -> None:
        """Take a payload as a node of another make may, in a form that readers differ on."""
        forms = differing(publishes.group_message(mls.private_message(GROUP_ID, epoch=1)))
        self.story.counts["of strangers"] += 1
        client = forms[self.story.counts["of strangers"] % len(forms)]
        self._store(group_topic(GROUP_ID), client, publishes.paid(client, self.node_id))
        self.story.strange.add((self.node_id, len(self.log)))

    def _view(self, topic: bytes) -> NodeView:
        held = self._held()
        cursor: dict[int, int] = {}
        for originator_id, sequence_id in held:
            cursor[originator_id] = max(sequence_id, cursor.get(originator_id, 0))
        of_chain = [number for (one, number), (on, _) in held.items() if not one and on == topic]
        return NodeView(self.node_id, Cursor(cursor), max(of_chain, default=0), self.story.now_ns)

    def _store(self, topic: bytes, client_envelope: bytes, payer_envelope: bytes) -> bytes:
        self.last_ns = max(self.last_ns, self.story.now_ns)
        ahead = 0
        if self._lies("future-dates", 0.3):
            self.told += 1
            ahead = 3600 * SECOND_NS
        envelope = self._signed(len(self.log) + 1, payer_envelope, self.last_ns + ahead)
        stored = Stored(self.story.now, topic, envelope, payload_hash_of(client_envelope))
        self.log.append(stored)
        return envelope

    def _signed(self, number: int, payer_envelope: bytes, time_ns: int) -> bytes:
        stored = OriginatedEnvelope(self.node_id, number, time_ns, payer_envelope)
        unsigned = unsigned_originated(stored)
        return sign_originated(unsigned, self.key)

    def _held(self) -> dict[Place, tuple[bytes, bytes]]:
        """Topic and envelope of all that it has, by place, without the chain's."""
        held = {}
        for node in self.story.nodes:
            lag = 0.0 if node is self else self.delay
            for number, each in enumerate(node.log, 1):
                if each.at + lag > self.story.now:
                    break
                held[node.node_id, number] = each.topic, each.envelope
        for block in self.chain.blocks:
            for place, envelope in enumerate(self.story.served(block, self)):
                held[0, block.first_id + place] = group_topic(GROUP_ID), envelope
        return held

    # Its answers.

    async def query(
        self, request: message_api_pb2.QueryEnvelopesRequest, seconds: float
    ) -> Sequence[bytes]:
        """Answer a client, which compares what it gets."""
        page = await self.served(request)
        self.told += any(each in self.false for each in page)
        return page

    async def served(self, request: message_api_pb2.QueryEnvelopesRequest) -> Sequence[bytes]:
        """Answer anybody, such as a gateway that looks for one payload."""
        await self._arrive()
        seen = request.query.last_seen.node_id_to_sequence_id
        topics, originators = set(request.query.topics), set(request.query.originator_node_ids)
        found = [
            (place, envelope)
            for place, (topic, envelope) in sorted(self._as_told().items())
            if (topic in topics or place[0] in originators) and place[1] > seen.get(place[0], 0)
        ]
        page = [envelope for _, envelope in found]
        if self._lies("reorders", 0.5):
            self.random.shuffle(page)
        return page[: min(request.limit, self.random.randint(2, 12))]

    async def topic_head(
        self, topic: bytes, entries_after: int | None, seconds: float
    ) -> tuple[bytes, Sequence[Entry]]:
        await self._arrive()
        entries = [entry_of(each.envelope) for each in self.log if each.topic == topic]
        if self.lie == "leaves out of heads" and len(entries) > 1:
            del entries[-2]
            self.told += 1
        head = TopicHead(self.node_id, topic, len(self.log), Chain().extended(entries))
        listed = (
            ()
            if entries_after is None
            else [each for each in entries if each.sequence_id > entries_after]
        )
        return sign_topic_head(head, self.key), listed

    async def _arrive(self) -> None:
        """The way there and back, on which an answer may be lost."""
        await asyncio.sleep(self.random.random() * 0.3)
        if self.is_down or self.story.now < self.story.cut_until:
            raise NodeUnreached(f"node {self.node_id}", "a connection", "none")
        if self.random.random() < self.story.loss:
            raise NodeLost(f"node {self.node_id}", "an answer", "none")

    # Lies.

    def _lies(self, lie: str, probability: float) -> bool:
        return self.lie == lie and self.random.random() < probability

    def _as_told(self) -> dict[Place, tuple[bytes, bytes]]:
        held = self._held()
        topic = group_topic(GROUP_ID)
        false: dict[Place, bytes] = {}
        if self.lie == "omits":
            for place in [each for each in held if self.story.coin(each) < 0.4]:
                del held[place]
        if self._lies("equivocates", 0.5) and self.log:
            number = self.random.randint(1, len(self.log))
            if self.log[number - 1].topic == topic:
                paid = publishes.paid(publishes.group_message(), self.node_id)
                other = self._signed(number, paid, BEGIN_NS + number)
                false[self.node_id, number] = other
        if self.lie == "doctors the chain":
            false.update(self._doctored())
        if self.lie == "moves commits":
            false.update(self._moved())
        if self.lie == "stays on a fork":
            self._stay(held)
        self.false.update(false.values())
        return held | {place: (topic, envelope) for place, envelope in false.items()}

    def _doctored(self) -> Iterator[tuple[Place, bytes]]:
        """Another commit under the name of a transaction."""
        for block in self.chain.blocks:
            for place, payload in enumerate(block.payloads):
                if self.story.coin((0, block.first_id + place)) < 0.3:
                    message = mls.private_message(GROUP_ID, mls.COMMIT, 1, b"")
                    yield self._vouched(block, place, publishes.group_message(message), payload)

    def _moved(self) -> Iterator[tuple[Place, bytes]]:
        """Two commits of one block, each in the place of the other."""
        for block in self.chain.blocks:
            if len(block.payloads) >= 2:
                for place, payload in enumerate(block.payloads[1::-1]):
                    yield self._vouched(block, place, payload, payload)

    def _vouched(
        self, block: Block, place: int, payload: bytes, posted: bytes
    ) -> tuple[Place, bytes]:
        """A payload that was not there, in a place of a block, by the transaction of another."""
        unsigned = block.unsigned(place, payload)
        signed = sign_originator_envelope(unsigned, transaction_of(posted), self.key)
        return (0, block.first_id + place), signed

    def _stay(self, held: dict[Place, tuple[bytes, bytes]]) -> None:
        """Keep the chain as it was when a reorg took it back."""
        ours = [envelope for (one, _), (_, envelope) in sorted(held.items()) if one == 0]
        if len(ours) >= len(self.fork) and ours[: len(self.fork)] == self.fork:
            self.fork = ours
            return
        for place in [each for each in held if each[0] == 0]:
            del held[place]
        for number, envelope in enumerate(self.fork, 1):
            held[0, number] = group_topic(GROUP_ID), envelope

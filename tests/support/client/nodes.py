"""Nodes in memory for a client: honest ones, and some that leave out or invent envelopes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from chainkit.nodes.outcomes import NodeLost
from chainkit.protocol.envelope import stated_place
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.topic_heads import Chain, Entry, TopicHead, entry_of, sign_topic_head
from support.client.served import TOPIC
from support.network.originator import Originator

Page = list[bytes]


@dataclass
class FakeNode:
    """A node that holds some envelopes; by default it answers honestly."""

    originator: Originator
    held: dict[tuple[int, int], tuple[bytes, bytes]] = field(default_factory=dict)
    """Place to topic and envelope."""
    hidden: set[tuple[int, int]] = field(default_factory=set)
    """Places that the node leaves out of its answers to queries."""
    left_out: set[int] = field(default_factory=set)
    """Own ids that the node leaves out of its heads."""
    error: Exception | None = None
    """Raised by each question."""
    meanwhile: Callable[[], None] = lambda: None
    """Called when the node is asked for envelopes."""
    has_heads: bool = True
    doctored: Callable[[Page], Page] = lambda page: page
    """Makes another page of an honest one."""
    doctored_entries: Callable[[list[Entry]], list[Entry]] = lambda entries: entries
    questions: int = 0
    head_questions: int = 0

    @property
    def node_id(self) -> int:
        return self.originator.node_id

    def hold(self, *envelopes: bytes, topic: bytes = TOPIC) -> None:
        for each in envelopes:
            self.held[stated_place(each)] = topic, each

    async def query(
        self, request: message_api_pb2.QueryEnvelopesRequest, seconds: float
    ) -> Sequence[bytes]:
        self.questions += 1
        self.meanwhile()
        if self.error is not None:
            raise self.error
        seen = request.query.last_seen.node_id_to_sequence_id
        topics, originators = set(request.query.topics), set(request.query.originator_node_ids)
        found = [
            envelope
            for (one, number), (topic, envelope) in sorted(self.held.items())
            if (topic in topics or one in originators)
            and number > seen.get(one, 0)
            and (one, number) not in self.hidden
        ]
        return self.doctored(found[: request.limit])

    async def topic_head(
        self, topic: bytes, entries_after: int | None, seconds: float
    ) -> tuple[bytes, Sequence[Entry]]:
        self.head_questions += 1
        if self.error is not None:
            raise self.error
        if not self.has_heads:
            raise NodeLost(f"node {self.node_id}", "one topic head", "UNIMPLEMENTED")
        own = {number: each for (one, number), each in self.held.items() if one == self.node_id}
        entries = [
            entry_of(envelope)
            for number, (of, envelope) in sorted(own.items())
            if of == topic and number not in self.left_out
        ]
        head = TopicHead(self.node_id, topic, max(own, default=0), Chain().extended(entries))
        listed = [each for each in entries if each.sequence_id > (entries_after or 0)]
        data = sign_topic_head(head, self.originator.key)
        return data, self.doctored_entries(listed[:2]) if entries_after is not None else ()

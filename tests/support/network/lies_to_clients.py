"""The lies that a node or a gateway tells clients, each for as long as a test says.

Envelopes that a node signs falsely are noted: a client that got one must have it as evidence.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from chainkit.errors import MalformedEnvelope
from chainkit.protocol.chain_time import block_timestamp
from chainkit.protocol.envelope import (
    parse_originator_envelope,
    sign_originator_envelope,
    stated_place,
    unsigned_originator_envelope,
)
from chainkit.protocol.methods import (
    PUBLISH_CLIENT_ENVELOPES,
    PUBLISH_PAYER_ENVELOPES,
    QUERY_ENVELOPES,
    QUERY_TOPIC_HEADS,
)
from chainkit.protocol.originated_envelope import (
    parse_originated,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.proto.envelopes_pb2 import ClientEnvelope
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, PayloadEvent, Place, TopicKind
from chainkit_node.storage.held_back import client_envelope
from support.network.among_liars import AmongLiars, last_held, swallow
from support.network.grpc_proxy import Answer, Ask, Dropped, GrpcProxy
from support.network.real_nodes import RealNode
from support.network.two_histories import with_changed_end

LATE_SECONDS: Final = 1.5
SWALLOWED: Final = "signs and stores nothing"
TWICE: Final = "signs another one under the same id"
FALSE_VOUCH: Final = "vouches for what the chain does not have"


@dataclass
class FalselySigned:
    """Envelopes and places that were signed falsely, by the lie."""

    envelopes: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    places: list[Place] = field(default_factory=list)
    """Those of publishes that were signed and not stored."""


@dataclass
class NodeLies:
    """A node's."""

    liars: AmongLiars
    node: RealNode
    topics: list[bytes]
    """Those of the groups."""
    inbox_topic: bytes
    """That of the identity updates that are made up."""
    chance: Random
    signed: FalselySigned = field(default_factory=FalselySigned)

    @property
    def proxy(self) -> GrpcProxy:
        return self.liars.proxies[self.node.node_id]

    def unproved(self) -> dict[str, Callable[[], None]]:
        """Those that leave nothing signed behind."""
        return {
            "drops answers": self._drop,
            "answers late": lambda: self._answer(QUERY_ENVELOPES, late),
            "reorders": lambda: self._answer(QUERY_ENVELOPES, reordered),
            "hides what is new on the chain": self._hide_new,
            "hides others' messages": lambda: self._leave_out(is_own=False),
            "makes up an identity update": self._make_up,
            "hides its own messages": lambda: self._leave_out(is_own=True),
            "alters": lambda: self.proxy.change(QUERY_ENVELOPES, altered),
        }

    def proved(self) -> dict[str, Callable[[], None]]:
        """Those that are signed."""
        return {
            SWALLOWED: self._swallow,
            FALSE_VOUCH: lambda: self.proxy.change(QUERY_ENVELOPES, self._vouched_falsely),
            TWICE: lambda: self.proxy.change(QUERY_ENVELOPES, self._signed_twice),
        }

    def _answer(self, method: str, answer: Answer) -> None:
        self.proxy.answers[method] = answer

    def _drop(self) -> None:
        for method in (QUERY_ENVELOPES, QUERY_TOPIC_HEADS):
            self._answer(method, lambda request, ask: self._some(request, ask))

    def _some(self, request: bytes, ask: Ask) -> bytes:
        if self.chance.random() < 0.5:
            raise Dropped
        return ask(request)

    def _hide_new(self) -> None:
        last = last_held(self.node, BLOCKCHAIN_ORIGINATOR_ID)

        def change(envelope: bytes) -> bytes | None:
            originator_id, sequence_id = stated_place(envelope)
            is_new = originator_id == BLOCKCHAIN_ORIGINATOR_ID and sequence_id > last
            return None if is_new else envelope

        self.proxy.change(QUERY_ENVELOPES, change)

    def _leave_out(self, is_own: bool) -> None:
        def change(envelope: bytes) -> bytes | None:
            originator_id, _ = stated_place(envelope)
            is_message = originator_id != BLOCKCHAIN_ORIGINATOR_ID
            is_hidden = is_message and (originator_id == self.node.node_id) == is_own
            return None if is_hidden and self.chance.random() < 0.5 else envelope

        self.proxy.change(QUERY_ENVELOPES, change)

    def _make_up(self) -> None:
        [update, *_] = (
            number
            for one, number in map(stated_place, self.node.api.query(topics=[self.inbox_topic]))
            if one == BLOCKCHAIN_ORIGINATOR_ID
        )
        self.liars.make_up(self.node, update)

    def _swallow(self) -> None:
        self._answer(PUBLISH_PAYER_ENVELOPES, swallow(self.node, self.topics, self.signed.places))

    def _vouched_falsely(self, envelope: bytes) -> bytes | None:
        try:
            served = parse_originator_envelope(envelope)
        except MalformedEnvelope:
            return envelope
        client = ClientEnvelope.FromString(served.client_envelope)
        if not client.HasField("group_message"):
            return envelope
        data = client.group_message.v1.data
        client.group_message.v1.data = data[:-1] + bytes([data[-1] ^ 1])
        place = served.sequence_id, BLOCKCHAIN_ORIGINATOR_ID
        group_id = client.aad.target_topic[1:]
        event = PayloadEvent(TopicKind.GROUP_MESSAGE, group_id, client.SerializeToString(), *place)
        unsigned = unsigned_originator_envelope(event, block_timestamp(served.originator_ns))
        false = sign_originator_envelope(unsigned, served.transaction_hash, self.node.key)
        self.signed.envelopes[FALSE_VOUCH].append(false)
        return false

    def _signed_twice(self, envelope: bytes) -> bytes | None:
        # Nobody compares what a node says of other topics: two envelopes make a proof.
        is_of_group = client_envelope(envelope).aad.target_topic in self.topics
        if stated_place(envelope)[0] != self.node.node_id or not is_of_group:
            return envelope
        true = parse_originated(envelope).envelope
        try:
            payer = with_changed_end(envelope, self.node.node_id)
        except IndexError:
            return envelope
        false = sign_originated(
            unsigned_originated(replace(true, payer_envelope=payer)), self.node.key
        )
        self.signed.envelopes[TWICE].append(false)
        return false


@dataclass
class GatewayLies:
    """A gateway's, which signs nothing."""

    liars: AmongLiars
    chance: Random
    answers: list[bytes] = field(default_factory=list)
    """Those of the gateway behind, in their order."""

    def unproved(self) -> dict[str, Callable[[], None]]:
        """All of them."""
        lies: dict[str, Answer] = {
            "loses answers": self._lose,
            "loses requests": self._refuse,
            "answers late": late,
            "publishes twice": lambda request, ask: (ask(request), ask(request))[1],
            "alters": lambda request, ask: changed_answers(ask(request), altered),
            "answers with an earlier one": self._repeat,
            "answers with nothing": lambda request, ask: (ask(request), b"")[1],
        }
        return {name: lambda lie=lie: self._begin(lie) for name, lie in lies.items()}

    def _begin(self, lie: Answer) -> None:
        self.liars.gateway.answers[PUBLISH_CLIENT_ENVELOPES] = lie

    def _lose(self, request: bytes, ask: Ask) -> bytes:
        answer = ask(request)
        if self.chance.random() < 0.7:
            raise Dropped
        return answer

    def _refuse(self, request: bytes, ask: Ask) -> bytes:
        if self.chance.random() < 0.7:
            raise Dropped
        return ask(request)

    def _repeat(self, request: bytes, ask: Ask) -> bytes:
        self.answers.append(ask(request))
        return self.answers[max(len(self.answers) - 2, 0)]


def late(request: bytes, ask: Ask) -> bytes:
    """Answer after a while."""
    time.sleep(LATE_SECONDS)
    return ask(request)


def reordered(request: bytes, ask: Ask) -> bytes:
    """Answer in the reverse order."""
    found = Envelopes.FromString(ask(request)).envelopes
    return Envelopes(envelopes=reversed(found)).SerializeToString()


def altered(envelope: bytes) -> bytes:
    """Change the last byte."""
    return envelope[:-1] + bytes([envelope[-1] ^ 1])


def changed_answers(answer: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Change each envelope of an answer."""
    found = Envelopes.FromString(answer).envelopes
    return Envelopes(envelopes=map(change, found)).SerializeToString()

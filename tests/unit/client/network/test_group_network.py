"""An intent's payload on its way: what the gateway's answer, or the lack of one, says of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from chainkit_client.groups.building import Outgoing
from chainkit_client.groups.publishing import Verdict
from chainkit_client.network.group_network import LOST_SECONDS, GroupNetwork
from chainkit_client.network.publisher import OutcomeUnknown
from chainkit_client.nodes.connection import NodeUnreached
from support.client.served import NOW_NS

OUTGOING = Outgoing(1, b"\1" * 16, b"\2" * 32, b"payload", False)


class Publisher:
    def __init__(self, *outcomes: Exception | None) -> None:
        self._outcomes = list(outcomes)

    async def publish(self, client_envelope: bytes, first_sent_ns: int) -> None:
        outcome = self._outcomes.pop(0)
        if outcome is not None:
            raise outcome


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def network(clock: Clock, *outcomes: Exception | None) -> GroupNetwork:
    session = SimpleNamespace(publisher=Publisher(*outcomes), now_ns=lambda: NOW_NS)
    nothing = cast(Any, None)
    return GroupNetwork(cast(Any, session), nothing, nothing, clock)


def test_publish__no_connection_to_the_gateway__nothing_was_sent_and_it_is_told() -> None:
    unreached = NodeUnreached("gateway http://host:1", "a connection", "none")
    sent = network(Clock(), unreached, None)

    answer = asyncio.run(sent.publish(OUTGOING))

    assert (answer.verdict, answer.reason) == (Verdict.NOT_TAKEN, str(unreached))
    assert sent.unreached is unreached
    assert asyncio.run(sent.publish(OUTGOING)).verdict is Verdict.TAKEN
    assert sent.unreached is None


def test_is_absent__message_of_unknown_outcome__only_once_it_cannot_be_on_its_way() -> None:
    clock = Clock()
    sent = network(clock, OutcomeUnknown("publish", "an answer", "none"))
    assert asyncio.run(sent.publish(OUTGOING)).verdict is Verdict.UNKNOWN

    clock.now = LOST_SECONDS - 1
    assert not asyncio.run(sent.is_absent(OUTGOING))
    clock.now = LOST_SECONDS
    assert asyncio.run(sent.is_absent(OUTGOING))

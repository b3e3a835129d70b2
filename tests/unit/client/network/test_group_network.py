"""An intent's payload on its way: what the gateway's answer, or the lack of one, says of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

from chainkit.nodes.outcomes import Conflict, NodeUnreached
from chainkit.protocol.mls.key_package import BACKUP_ROLE, ROLE_EXTENSION
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.groups.building import Outgoing
from chainkit_client.groups.groups import OutgoingWelcome
from chainkit_client.groups.publishing import PublishOutcome
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.network import group_network
from chainkit_client.network.group_network import LOST_SECONDS, GroupNetwork
from chainkit_client.network.publisher import OutcomeUnknown
from chainkit_client.reading.verified import read_envelope
from support import mls, publishes
from support.client.served import KEYS, NODE, NOW_NS, PEER
from support.network.originator import BEGIN_NS

BUILT_NS = NOW_NS - 3600 * NANOSECONDS_PER_SECOND
OUTGOING = Outgoing(1, b"\1" * 16, b"\2" * 32, b"payload", False, NOW_NS, BUILT_NS)
COMMIT = replace(OUTGOING, is_commit=True)


class Publisher:
    def __init__(self, *outcomes: Exception | None) -> None:
        self._outcomes = list(outcomes)
        self.first_sent_ns: list[int] = []

    async def publish(
        self, client_envelope: bytes, first_sent_ns: int, retention_days: int | None = None
    ) -> None:
        self.first_sent_ns.append(first_sent_ns)
        outcome = self._outcomes.pop(0)
        if outcome is not None:
            raise outcome


def network(*outcomes: Exception | None, seconds: int = 0, final: object = None) -> GroupNetwork:
    session = SimpleNamespace(
        publisher=Publisher(*outcomes),
        now_ns=lambda: NOW_NS + seconds * NANOSECONDS_PER_SECOND,
        chain=SimpleNamespace(final=lambda: final),
    )
    nothing = cast(Any, None)
    return GroupNetwork(cast(Any, session), nothing, nothing)


def test_publish__no_connection_to_the_gateway__nothing_was_sent_and_it_is_told() -> None:
    unreached = NodeUnreached("gateway http://host:1", "a connection", "none")
    sent = network(unreached, None)

    answer = asyncio.run(sent.publish(OUTGOING))

    assert (answer.outcome, answer.reason) == (PublishOutcome.NOT_TAKEN, str(unreached))
    assert sent.unreached is unreached
    assert asyncio.run(sent.publish(OUTGOING)).outcome is PublishOutcome.TAKEN
    assert sent.unreached is None


def test_publish__bytes_that_are_sent_again__names_the_time_before_the_first_sending() -> None:
    sent = network(None, None)
    welcome = OutgoingWelcome(b"\2" * 32, b"\3" * 32, b"welcome", BUILT_NS)

    asyncio.run(sent.publish(OUTGOING))
    asyncio.run(sent.send_welcome(welcome))

    publisher = cast(Publisher, sent._session.publisher)
    assert publisher.first_sent_ns == [BUILT_NS, BUILT_NS]


def test_publish__conflict__is_one() -> None:
    conflict = Conflict(grpc.StatusCode.ABORTED, "it depends on what is not here")

    answer = asyncio.run(network(conflict).publish(OUTGOING))

    assert answer.outcome is PublishOutcome.CONFLICT


def test_publish__answer_is_lost__its_outcome_is_unknown() -> None:
    sent = network(OutcomeUnknown("publish", "an answer", "none"))

    assert asyncio.run(sent.publish(OUTGOING)).outcome is PublishOutcome.UNKNOWN


@pytest.mark.parametrize(
    ("seconds", "is_absent"), [(LOST_SECONDS - 1, False), (LOST_SECONDS, True)]
)
def test_is_absent__message__only_once_it_cannot_be_on_its_way(
    seconds: int, is_absent: bool
) -> None:
    # Whichever process has sent it: the time is in the database.
    assert asyncio.run(network(seconds=seconds).is_absent(OUTGOING)) is is_absent


@pytest.mark.parametrize(
    ("seconds", "is_absent"), [(LOST_SECONDS, False), (LOST_SECONDS + 1, True)]
)
def test_is_absent__commit__only_once_the_chain_is_final_beyond_it(
    seconds: int, is_absent: bool
) -> None:
    block = SimpleNamespace(timestamp=NOW_NS // NANOSECONDS_PER_SECOND + seconds)

    assert asyncio.run(network(final=block).is_absent(COMMIT)) is is_absent
    assert not asyncio.run(network(seconds=10**6).is_absent(COMMIT))


def test_is_absent__what_the_network_said_it_does_not_hold__is() -> None:
    assert asyncio.run(network().is_absent(replace(COMMIT, sent_at_ns=None)))


def fetched(monkeypatch: pytest.MonkeyPatch, *written: bytes) -> list[bytes]:
    """The key package that is used of two, of which the first is published later."""
    now = BEGIN_NS // NANOSECONDS_PER_SECOND
    offers = [(NODE, 3, 8.0, written[0]), (PEER, 1, 2.0, written[1])]
    read = []
    for by, number, seconds, offer in offers:
        paid = publishes.paid(publishes.key_package(offer), by.node_id)
        read.append(read_envelope(by.signed(number, seconds, paid), by.node_id, KEYS).envelope)

    async def read_topic(topic: bytes) -> list[object]:
        return list(read)

    session = SimpleNamespace(read_topic=read_topic)
    monkeypatch.setattr(group_network, "is_genuine", as_genuine)
    engine = NodeEngine(now=lambda: now)
    sent = GroupNetwork(cast(Any, session), engine, cast(Any, None))
    found = asyncio.run(sent.fetch_key_packages([publishes.INSTALLATION_KEY]))

    return [each[4:] for each in found.values()]


async def as_genuine(session: object, member: object) -> bool:
    return True


BACKUP = {
    "extensions": mls.numbers(ROLE_EXTENSION),
    "leaf_extensions": mls.vector(ROLE_EXTENSION.to_bytes(2, "big") + mls.vector(BACKUP_ROLE)),
}


def test_fetch_key_packages__a_stranger_publishes_an_older_one_again__uses_the_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    older, newer = offered(9), offered(5)

    assert fetched(monkeypatch, older, newer) == [newer]


@pytest.mark.conforms("H25")
def test_fetch_key_packages__of_a_backup_whose_thief_offers_one_without_the_role__is_the_backups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backup, stolen = offered(9, **BACKUP), offered(5)

    assert fetched(monkeypatch, backup, stolen) == [backup]


def offered(age: int, **fields: Any) -> bytes:
    now = BEGIN_NS // NANOSECONDS_PER_SECOND
    return mls.KeyPackageFields(lifetime=(now - age, now + 3600), **fields).written()

"""The nonce of the next transaction where an endpoint lies about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit.errors import EndpointUnavailable, Unconfirmed
from support.gateway.fake_chain import FakeChain
from support.gateway.payer_world import COMMIT, UPDATE, World

FAR = 2**40


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "gateway.db")
    yield made
    made.journal.close()


def nonces(world: World) -> list[int]:
    return [each.nonce for each in world.journal.transactions_from(0)]


def test_publish__one_endpoint_claims_what_is_neither_mined_nor_ours__sends_nothing(
    world: World,
) -> None:
    world.publisher.publish(COMMIT)
    world.chain.claimed_nonce = FAR

    with pytest.raises(Unconfirmed, match="no second endpoint confirms"):
        world.publisher.publish(UPDATE)

    world.chain.claimed_nonce = None
    world.publisher.publish(UPDATE)
    assert nonces(world) == [0, 1]


def test_publish__second_endpoint_contradicts_the_claim__takes_the_next_nonce(
    world: World,
) -> None:
    world.publisher.publish(COMMIT)
    honest = FakeChain()
    honest.claimed_nonce = 1
    world.chain.claimed_nonce, world.chain.hosts = FAR, [honest]

    world.publisher.publish(UPDATE)

    assert nonces(world) == [0, 1]


def test_publish__second_endpoint_confirms_the_claim__takes_the_claimed_nonce(
    world: World,
) -> None:
    second = FakeChain()
    second.claimed_nonce = world.chain.claimed_nonce = 7
    world.chain.hosts = [second]

    world.send()

    assert nonces(world) == [7]


def test_publish__second_endpoint_is_silent__believes_no_more_than_what_is_mined(
    world: World,
) -> None:
    class Silent(FakeChain):
        def pending_transaction_count(self, account: str) -> int:
            raise EndpointUnavailable(self.name, "an answer", "none")

    world.publisher.publish(COMMIT)
    world.chain.claimed_nonce, world.chain.hosts = FAR, [Silent()]

    with pytest.raises(Unconfirmed, match="no second endpoint confirms"):
        world.publisher.publish(UPDATE)


def test_publish__transactions_of_an_earlier_gateway_are_mined__begins_behind_them(
    world: World,
) -> None:
    world.publisher.publish(COMMIT)
    world.restart(path=world.path.with_name("new.db"))

    world.publisher.publish(UPDATE)

    assert nonces(world) == [1]

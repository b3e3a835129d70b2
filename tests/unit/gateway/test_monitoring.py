"""The gateway's numbers, and its health, as a machine reads them."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from chainkit.service.refusals import NotReady, PassedOn, Refusal
from chainkit_gateway.monitoring import CountedPublisher, GatewayMonitor
from chainkit_gateway.payer_account import PendingOutcome
from chainkit_gateway.routing import route
from chainkit_gateway.types import Mined, Publication, Published
from support import publishes

COMMIT = route(publishes.commit(), "ann")
WELCOME = route(publishes.welcome(), "ann")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class World:
    def __init__(self) -> None:
        self.clock = Clock()
        self.nodes = 1
        self.monitor = GatewayMonitor(lambda: 7, lambda: self.nodes, self.clock)

    def scrape(self) -> dict[tuple[str, ...], float]:
        text = self.monitor.paths["/metrics"]().body.decode()
        return {
            (sample.name.removeprefix("chainkit_gateway_"), *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def status(self, path: str) -> int:
        answer = self.monitor.paths[path]()
        assert all("ok" in each for each in json.loads(answer.body)["checks"].values())
        return answer.status


@pytest.fixture
def world() -> World:
    return World()


def test_metrics__publications__are_counted_by_destination_and_outcome(world: World) -> None:
    outcomes: list[Published | Exception] = [
        Published(b"envelope"),
        Published(b"envelope"),
        Published(b"place", is_served=False),
        NotReady("chain", "a", "b"),
        PassedOn(grpc.StatusCode.ABORTED, "behind"),
        RuntimeError("a fault"),
    ]

    class Scripted:
        async def place(self, publication: Publication, deadline: float) -> Published:
            outcome = outcomes.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        async def answer(
            self, publication: Publication, place: Mined | Published, deadline: float
        ) -> Published:
            assert isinstance(place, Published)
            return place

    async def publish(publication: Publication) -> None:
        place = await publisher.place(publication, 0)
        await publisher.answer(publication, place, 0)

    publisher = CountedPublisher(Scripted(), world.monitor)
    for publication in (COMMIT, COMMIT, COMMIT, COMMIT, WELCOME, WELCOME):
        with suppress(Refusal, RuntimeError):
            asyncio.run(publish(publication))

    counts = {key[1:]: value for key, value in world.scrape().items() if len(key) == 3}
    assert counts == {
        ("chain", "published"): 2,
        ("chain", "unserved"): 1,
        ("chain", "unavailable"): 1,
        ("chain", "internal"): 0,
        ("node", "published"): 0,
        ("node", "unavailable"): 0,
        ("node", "aborted"): 1,
        ("node", "internal"): 1,
    }


def test_metrics__account__is_told(world: World) -> None:
    world.monitor.observe_account(PendingOutcome(0, 0, 2, 12.5), 10**18)

    found = world.scrape()
    assert found["balance_wei",] == 10**18
    assert found["waiting_transactions",] == 2
    assert found["oldest_waiting_seconds",] == 12.5
    assert found["spent_today_wei",] == 7
    assert found["nodes",] == 1


def test_healthz__event_loop_is_silent__is_not_alive(world: World) -> None:
    world.clock.now = 15
    assert world.status("/healthz") == 200
    world.clock.now = 15.1
    assert world.status("/healthz") == 503
    world.monitor.heartbeat()
    assert world.status("/healthz") == 200


def test_readyz__chain_is_silent_or_no_node__is_not_ready(world: World) -> None:
    world.clock.now = 60.1
    assert world.status("/readyz") == 503
    world.monitor.observe_account(PendingOutcome(0, 0, 0), 1)
    assert world.status("/readyz") == 200
    world.nodes = 0
    assert world.status("/readyz") == 503

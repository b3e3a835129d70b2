from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chainkit.chain import Endpoint, EndpointPool
from chainkit.contracts.followed import FollowedDeployment, FollowedRegistry
from chainkit.errors import (
    ChainkitError,
    ConfigurationError,
    EndpointUnavailable,
    InconsistentAnswer,
    RangeRefused,
    ReorgTooDeep,
    StoreError,
    StoreUnavailable,
    WrongChain,
)
from chainkit.types import BlockHeader, BlockReference, Log, Node
from chainkit_indexer.registry.fetch import RegistryReader
from chainkit_indexer.registry.follower import (
    RegistryAdvanced,
    RegistryFollower,
    RegistryIdle,
    RegistryRolledBack,
)
from chainkit_indexer.registry.history import fold_updates
from chainkit_indexer.registry.watch import (
    LONGEST_PAUSE_SECONDS,
    REPEATS_OF_A_DEEP_REORG,
    RegistryWatch,
    check_registry,
    watch_registry,
)
from chainkit_indexer.storage.identity import Identity
from support.chains.fake_chain import FakeChain
from support.council.fake_registry import ADDRESS, FakeRegistry, block_hash
from support.endpoints.fake_endpoint import FakeProvider
from support.indexer.fake_node import open_store

PAUSE = 2.0
HEAD = BlockHeader(20, b"\x20" * 32, b"\x19" * 32, 1_700_000_000)
NO_STORE: Any = None
IDLE = RegistryIdle(HEAD.reference, HEAD)


def advanced(number: int, updates: int = 0) -> RegistryAdvanced:
    return RegistryAdvanced(1, BlockReference(number, bytes(32)), HEAD, updates, True)


class Scripted:
    """A follower whose steps end as written, and a clock that stands."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.now = 100.0
        self.steps = 0
        self.pool = EndpointPool([FakeProvider({}).endpoint()], clock=lambda: self.now)
        self.watch = RegistryWatch(self, self.pool, PAUSE, lambda: self.now)  # type: ignore[arg-type]

    def step(self, endpoint: object) -> Any:
        self.steps += 1
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def later(self, seconds: float = PAUSE) -> Any:
        self.now += seconds
        return self.watch()


def failure(kind: Callable[..., ChainkitError]) -> ChainkitError:
    return kind("registry", "one thing", "another")


def test_watch__at_the_head__looks_again_only_after_the_pause() -> None:
    scripted = Scripted(IDLE, IDLE)

    assert scripted.watch() == IDLE
    assert scripted.later(PAUSE / 2) is None
    assert scripted.steps == 1
    assert scripted.later(PAUSE / 2) == IDLE


@pytest.mark.parametrize(
    "behind", [advanced(10), RegistryRolledBack(3, BlockReference(5, bytes(32)), HEAD, 1)]
)
def test_watch__behind_the_head__goes_on_at_the_next_call(behind: Any) -> None:
    scripted = Scripted(behind, IDLE)

    assert scripted.watch() == behind
    assert scripted.watch() == IDLE


def test_watch__is_done__after_a_step_that_came_to_the_head_and_not_after_a_failure() -> None:
    scripted = Scripted(advanced(10), IDLE, failure(EndpointUnavailable), advanced(HEAD.number))
    done = [scripted.watch.is_done]
    for _ in range(4):
        scripted.later(LONGEST_PAUSE_SECONDS)
        done.append(scripted.watch.is_done)

    assert done == [False, False, True, False, True]


def test_watch__advanced_to_the_head__pauses() -> None:
    scripted = Scripted(advanced(HEAD.number), IDLE)

    scripted.watch()

    assert scripted.watch() is None


@pytest.mark.parametrize("kind", [EndpointUnavailable, InconsistentAnswer, StoreUnavailable])
def test_watch__passing_error__is_told_once_and_tried_again(
    kind: Callable[..., ChainkitError], caplog: pytest.LogCaptureFixture
) -> None:
    scripted = Scripted(failure(kind), failure(kind), IDLE)

    with caplog.at_level(logging.INFO, "chainkit"):
        assert scripted.watch() is None
        assert scripted.watch() is None
        assert scripted.later(10) is None
        assert scripted.later(10) == IDLE

    assert [record.message for record in caplog.records] == [
        "registry: retrying: registry: expected one thing, got another",
        f"registry: following again at block {HEAD.reference}",
    ]


def test_watch__endpoint_error__lets_the_endpoint_rest() -> None:
    scripted = Scripted(failure(InconsistentAnswer))

    scripted.watch()

    (status,) = scripted.pool.statistics()
    assert status.consecutive_failures == 1
    # Where every endpoint rests, nothing is asked.
    scripted.watch = RegistryWatch(scripted, scripted.pool, PAUSE, lambda: scripted.now)  # type: ignore[arg-type]
    assert scripted.watch() is None
    assert scripted.steps == 1


def test_watch__deep_reorg_repeated__asks_a_person() -> None:
    scripted = Scripted(*[failure(ReorgTooDeep)] * REPEATS_OF_A_DEEP_REORG)
    scripted.pool.failed = lambda endpoint, error: None  # type: ignore[method-assign]

    for _ in range(REPEATS_OF_A_DEEP_REORG - 1):
        assert scripted.later(LONGEST_PAUSE_SECONDS) is None
    with pytest.raises(ReorgTooDeep):
        scripted.later(LONGEST_PAUSE_SECONDS)


@pytest.mark.parametrize("kind", [EndpointUnavailable, StoreUnavailable])
def test_watch__deep_reorg_between_other_errors__asks_a_person(
    kind: Callable[..., ChainkitError],
) -> None:
    both = [failure(kind), failure(ReorgTooDeep)]
    scripted = Scripted(*both * REPEATS_OF_A_DEEP_REORG)
    scripted.pool.failed = lambda endpoint, error: None  # type: ignore[method-assign]

    for _ in range(2 * REPEATS_OF_A_DEEP_REORG - 1):
        assert scripted.later(LONGEST_PAUSE_SECONDS) is None
    with pytest.raises(ReorgTooDeep):
        scripted.later(LONGEST_PAUSE_SECONDS)


def test_watch__success_between_deep_reorgs__goes_on() -> None:
    scripted = Scripted(*[failure(ReorgTooDeep), IDLE] * (REPEATS_OF_A_DEEP_REORG + 1))
    scripted.pool.failed = lambda endpoint, error: None  # type: ignore[method-assign]

    for _ in range(REPEATS_OF_A_DEEP_REORG + 1):
        assert scripted.later(LONGEST_PAUSE_SECONDS) is None
        assert scripted.later(LONGEST_PAUSE_SECONDS) == IDLE


def test_watch__failing_for_weeks__goes_on() -> None:
    scripted = Scripted(*[failure(StoreUnavailable)] * 1100, IDLE)

    for _ in range(1100):
        assert scripted.later(LONGEST_PAUSE_SECONDS) is None

    assert scripted.later(LONGEST_PAUSE_SECONDS) == IDLE


def test_watch__database_of_another_registry__ends_the_indexer() -> None:
    scripted = Scripted(failure(StoreError))

    with pytest.raises(StoreError):
        scripted.watch()


def test_watch__changes__are_told(caplog: pytest.LogCaptureFixture) -> None:
    rolled_back = RegistryRolledBack(3, HEAD.reference, HEAD, 2)
    scripted = Scripted(advanced(10), advanced(20, updates=4), rolled_back)

    with caplog.at_level(logging.INFO, "chainkit"):
        for _ in range(3):
            scripted.later()

    assert [record.message for record in caplog.records] == [
        "registry: 4 updates up to block 20 0x00000000…",
        f"registry: reorg: 3 blocks taken back to {HEAD.reference}, 2 updates retracted",
    ]


@pytest.mark.parametrize("seconds", [300, 10**6])
def test_watch__failing_for_long__asks_ever_more_seldom(seconds: int) -> None:
    scripted = Scripted(*[failure(StoreUnavailable)] * 40)
    for _ in range(30):
        scripted.later(seconds)
    asked = scripted.steps

    assert scripted.later(LONGEST_PAUSE_SECONDS - 1) is None
    assert scripted.steps == asked
    scripted.later(1)
    assert scripted.steps == asked + 1


def deployment(registry: FollowedRegistry | None) -> FollowedDeployment:
    return FollowedDeployment(31337, bytes(32), (), {}, registry)


def test_watch_registry__deployment_without_one__does_nothing() -> None:
    scripted = Scripted()

    assert watch_registry(NO_STORE, deployment(None), scripted.pool, ()) is None


@pytest.mark.parametrize(
    "registry",
    [
        FollowedRegistry(ADDRESS, 1, 10, bytes(32)),
        FollowedRegistry(ADDRESS, 1, 31337, b"\x01" * 32),
    ],
)
def test_watch_registry__on_another_chain_without_endpoint__is_refused(
    registry: FollowedRegistry,
) -> None:
    with pytest.raises(ConfigurationError, match=f"one of chain {registry.chain_id}"):
        watch_registry(NO_STORE, deployment(registry), Scripted().pool, ())


def registry_endpoint(fake: FakeRegistry, **answers: Any) -> Endpoint:
    chain = {"eth_chainId": "0x7a69", "eth_getCode": "0x60"}
    return fake.endpoint(**(chain | answers))


FOLLOWED = FollowedRegistry(ADDRESS, 1, 31337, block_hash(0))


def test_check_registry__a_registry_of_the_chain__passes() -> None:
    check_registry(registry_endpoint(FakeRegistry()), FOLLOWED)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"eth_chainId": "0x1"}, "chain id at"),
        ({"eth_getCode": "0x"}, "a contract, got no code"),
    ],
)
def test_check_registry__another_chain_or_no_contract__is_refused(
    answers: dict[str, str], message: str
) -> None:
    with pytest.raises(WrongChain, match=message):
        check_registry(registry_endpoint(FakeRegistry(), **answers), FOLLOWED)


def test_check_registry__contract_that_is_no_registry__is_refused() -> None:
    fake = FakeRegistry(overrides={"nodeCount": "0x"})

    with pytest.raises(InconsistentAnswer, match="nodeCount"):
        check_registry(registry_endpoint(fake), FOLLOWED)


def test_step__chain_id_changed_behind_the_url__is_refused(tmp_path: Path) -> None:
    identity = Identity.of(FakeChain().deployment, b"\x04" + bytes(64))
    store = open_store(tmp_path / "node.db", identity)
    follower = RegistryFollower(store, FOLLOWED)

    with pytest.raises(WrongChain, match=r"chain id at .*: expected 31337, got 1"):
        follower.step(registry_endpoint(FakeRegistry(), eth_chainId="0x1"))

    store.close()


class SlowToRefuse:
    """An endpoint that refuses ranges above a width, on a clock of its own."""

    name = "slow"

    def __init__(self, widest: int, seconds: float) -> None:
        self.widest, self.seconds = widest, seconds
        self.now = 0.0
        self.asked: list[int] = []

    def logs(self, first: int, last: int, *_: object) -> list[Log]:
        self.asked.append(last - first + 1)
        self.now += self.seconds
        if last - first + 1 > self.widest:
            raise RangeRefused("logs at slow", "logs", "a time-out")
        return []

    def headers(self, numbers: list[int]) -> list[BlockHeader]:
        return [BlockHeader(number, bytes(32), bytes(32), 0) for number in numbers]

    def read(self, reader: RegistryReader, start: int = 0) -> int:
        (begin,) = self.headers([start])
        (head,) = self.headers([1_000_000])
        found = reader.read(self, begin, head)  # type: ignore[arg-type]
        assert found is not None
        return found.last.number

    def reader(self) -> RegistryReader:
        return RegistryReader(FOLLOWED, 256, lambda: self.now)


def test_read__each_refusal_is_a_time_out__leaves_the_step_and_asks_for_less_in_the_next() -> None:
    endpoint = SlowToRefuse(2_500, seconds=20)
    reader = endpoint.reader()

    for _ in range(2):
        with pytest.raises(EndpointUnavailable, match="fewer blocks, got a time-out"):
            endpoint.read(reader)

    assert endpoint.read(reader) == 2_500
    assert endpoint.asked == [10_000, 5_000, 2_500]
    # Not wider again at once: each time would cost a time-out.
    assert endpoint.read(reader, 2_500) == 5_000
    assert endpoint.read(reader, 5_000) == 7_500


def test_read__refusals_come_at_once__halves_within_the_step() -> None:
    endpoint = SlowToRefuse(7, seconds=0)

    assert endpoint.read(endpoint.reader()) == 4
    assert len(endpoint.asked) == 12


def test_read__not_even_one_block__is_the_endpoint_s_fault() -> None:
    endpoint = SlowToRefuse(0, seconds=0)

    with pytest.raises(EndpointUnavailable):
        endpoint.read(endpoint.reader())

    assert endpoint.asked[-1] == 1


def test_read__refused_long_ago__asks_for_more_again() -> None:
    endpoint = SlowToRefuse(2_500, seconds=0)
    reader = endpoint.reader()

    position = 0
    for _ in range(70):
        position = endpoint.read(reader, position)

    assert endpoint.asked.count(5_000) == 2


@pytest.mark.conforms("2.2.1-13")
def test_fold__several_updates_of_a_node__keeps_the_last_in_the_order_of_ids() -> None:
    def node(node_id: int, is_enabled: bool) -> Node:
        return Node(node_id, b"\x04" + bytes(64), "https://node.example", is_enabled)

    updated = [node(200, True), node(100, False), node(200, False)]

    assert fold_updates([node(100, True), node(300, True)], updated) == [
        node(100, False),
        node(200, False),
        node(300, True),
    ]

"""An endpoint that changes one thing of one answer: nothing wrong is signed, whatever it is.

The changes are generated from all that an anvil answers to an honest run: each field of each kind
of answer. The liar stands first in the list before an honest endpoint, and then alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chainkit.chain import EndpointPool
from chainkit.contracts.followed import FollowedDeployment
from chainkit.contracts.right_chain import check_deployment
from chainkit.errors import ChainError, ChainkitError, Disproved
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.finality import FinalityPolicy
from chainkit_indexer.follow.loop import Goal, StopRequest, run
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.provenance import PageProver
from chainkit_indexer.follow.signing import Signer
from chainkit_indexer.follow.step import step
from chainkit_indexer.registry.follower import RegistryFollower, RegistryIdle
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import StepResult
from support import payloads
from support.chains.chain import Deployment, LocalChain, redeployed
from support.endpoints.liar import Change, KeptAnswers, Liar, errors_of, of_every_kind
from support.indexer.follower import KEY
from support.indexer.honest_rows import PAYLOADS, rows_of
from support.indexer.registry_node import TABLES, add_node, followed_registry, set_status
from support.seeds import IS_SOAK

GROUP, INBOX = b"\x11" * 32, b"\x22" * 32
RECENT_BLOCKS, PAGE_BLOCKS = 6, 4
MOST_ERRORS = 12
"""So many errors in a row, and a run alone with a liar is given up."""
OF_A_KIND = (
    {"first": 14, "alone": 4, "registry": 4} if IS_SOAK else {"first": 3, "alone": 1, "registry": 1}
)
"""How many changes of one field of one kind of answer are tried."""


@dataclass
class Clock:
    """Time that passes when somebody waits."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


class Heads:
    """Waits for no head: the chain stands still."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def saw_head(self, head: bytes) -> None:
        """Nothing new."""

    def wait(self, is_stopped: Callable[[], bool]) -> None:
        self._clock.now += 1.0


class Stop(StopRequest):
    """Waits in no time."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def wait(self, seconds: float) -> None:
        self._clock.now += seconds


@dataclass
class Watch:
    """Gives up after too many errors in a row."""

    stop: Stop
    errors: list[ChainkitError] = field(default_factory=list)
    in_a_row: int = 0

    def succeeded(self, result: StepResult, seconds: float) -> None:
        self.in_a_row = 0

    def failed(self, error: ChainkitError) -> None:
        self.errors.append(error)
        self.in_a_row += 1
        self.stop.is_set = self.in_a_row >= MOST_ERRORS


@dataclass(frozen=True)
class Scene:
    """A chain that stands still, its answers, and what a clean run stores of it."""

    chain: LocalChain
    kept: KeptAnswers
    folder: Path
    head: int

    @property
    def deployment(self) -> FollowedDeployment:
        return FollowedDeployment.of(self.chain.record)

    def store(self) -> Store:
        """A new database: a copy of an empty one takes a tenth of the time."""
        template, path = self.folder / "empty.db", self.folder / "node.db"
        identity = Identity.of(self.deployment, KEY.public_key)
        if not template.exists():
            Store.open(str(template), identity).close()
        for old in self.folder.glob("node.db*"):
            old.unlink()
        shutil.copy(template, path)
        return Store.open(str(path), identity)

    def liar(self, change: Change | None, name: str = "http://liar") -> Liar:
        return Liar(self.kept, change, name)


@pytest.fixture(scope="module")
def scene(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("liars")
    with redeployed(local_deployment, folder, block_seconds=2) as chain:
        chain.publish_message(GROUP, payloads.commit(GROUP, seed=1), 2)
        chain.mine(2)
        chain.pause_mining()
        chain.publish_message(GROUP, payloads.commit(GROUP, seed=2), 3)
        chain.publish_identity_update(INBOX, payloads.identity_update(INBOX, seed=3), 4)
        chain.publish_message(GROUP, b"\xff not an envelope", 5)
        chain.mine()
        chain.resume_mining()
        node = add_node(chain, 1)
        chain.publish_identity_update(INBOX, payloads.identity_update(INBOX, seed=4), 2)
        chain.mine(3)
        set_status(chain, node, False)
        add_node(chain, 2)
        chain.publish_message(GROUP, payloads.commit(GROUP, size=700, seed=5), 3)
        chain.mine(2)
        chain.publish_message(GROUP, payloads.commit(GROUP, seed=6), 4)
        yield Scene(chain, KeptAnswers(chain.anvil), folder, chain.head().number)


Rows = list[list[tuple[Any, ...]]]


def follow(scene: Scene, liars: list[Liar]) -> tuple[Rows, list[ChainkitError]]:
    """Follow the chain as ``index run`` does; return the stored payloads, and the errors."""
    clock, store, deployment = Clock(), scene.store(), scene.deployment
    pool = EndpointPool(
        [liar.endpoint for liar in liars],
        lambda endpoint: check_deployment(endpoint, deployment),
        clock=clock,
        random=lambda: 0.5,
        in_background=lambda job: job(),
    )
    settings = IndexerSettings(deployment, PAGE_BLOCKS, FinalityPolicy(blocks=4))
    prover = PageProver(settings, pool.others, clock)
    reader = PageReader(
        settings, Signer(KEY), recent_blocks=RECENT_BLOCKS, clock=clock, prover=prover
    )
    stop = Stop(clock)
    watch = Watch(stop)
    heads: Any = Heads(clock)
    take_step = lambda endpoint: step(endpoint, store, settings, reader)  # noqa: E731
    try:
        run(take_step, pool, heads, Goal(until_block=scene.head), stop, watch, clock=clock)
    except ChainkitError as error:
        watch.errors.append(error)
    with store.reading() as connection:
        rows = [rows_of(connection, table) for table in PAYLOADS]
    store.close()
    return rows, watch.errors


def follow_registry(scene: Scene, liars: list[Liar]) -> tuple[Rows, list[ChainkitError]]:
    """Follow the registry, with the next endpoint after each error; its windows are short."""
    store, errors = scene.store(), list[ChainkitError]()
    follower = RegistryFollower(store, followed_registry(scene.chain), window_blocks=RECENT_BLOCKS)
    for number in range(4 * MOST_ERRORS):
        try:
            result = follower.step(liars[len(errors) % len(liars)].endpoint)
        except ChainError as error:
            errors.append(error)
            continue
        is_done = isinstance(result, RegistryIdle) and result.cursor.number == scene.head
        if is_done or len(errors) > MOST_ERRORS:
            break
        if isinstance(result, RegistryIdle):
            # A head that is too low is no error: as the pool does, another one is asked.
            errors.append(ChainkitError("head", scene.head, number))
    with store.reading() as connection:
        rows = [rows_of(connection, table) for table in TABLES]
    store.close()
    return rows, errors


Follow = Callable[[Scene, list[Liar]], tuple[Rows, list[ChainkitError]]]


def clean_run(scene: Scene, follow_: Follow) -> tuple[Rows, list[Change]]:
    """Return what a clean run stores, and every change to what it was answered."""
    scene.kept.results.clear()
    rows, errors = follow_(scene, [scene.liar(None)])
    assert not errors, errors_of(errors)
    assert all(rows)
    return rows, scene.kept.changes()


@pytest.mark.parametrize(
    ("follow_", "minimum"),
    [(follow, 500), (follow_registry, 150)] if IS_SOAK else [(follow, 200), (follow_registry, 70)],
    ids=["payloads", "registry"],
)
def test_follow__liar_before_an_honest_endpoint__ends_as_a_clean_run(
    scene: Scene, follow_: Follow, minimum: int
) -> None:
    clean, every = clean_run(scene, follow_)
    changes = of_every_kind(every, OF_A_KIND["first" if follow_ is follow else "registry"])
    assert len(changes) >= minimum
    noticed = 0
    for change in changes:
        liar = scene.liar(change)

        rows, errors = follow_(scene, [liar, scene.liar(None, "http://honest")])

        assert rows == clean, f"{change}\n{errors_of(errors)}"
        assert liar.told, change
        noticed += bool(errors)
    # The others are in fields that nothing stored depends on.
    assert noticed > len(changes) // 3


def test_follow__liar_alone__signs_nothing_wrong_and_says_why(scene: Scene) -> None:
    clean, every = clean_run(scene, follow)
    for change in of_every_kind(every, OF_A_KIND["alone"]):
        rows, errors = follow(scene, [scene.liar(change)])

        for stored, expected in zip(rows, clean, strict=True):
            assert stored == expected[: len(stored)], change
        assert errors or rows == clean, change


def test_follow__one_bit_of_a_payload__is_disproved_and_the_endpoint_named(scene: Scene) -> None:
    _, every = clean_run(scene, follow)
    changes = [each for each in every if each.kind[-1] == "data"]
    of_logs = [each for each in changes if each.kind[0] == "eth_getLogs"]
    of_receipts = [each for each in changes if each.kind[0] == "eth_getBlockReceipts"]
    assert of_logs and of_receipts

    for change in (*of_logs, *of_receipts):
        _, errors = follow(scene, [scene.liar(change)])

        assert errors, change
        assert all("http://liar" in str(error) for error in errors), errors_of(errors)
        # A log that no contract can have emitted is doubted before anything is proved.
        assert change in of_logs or any(isinstance(error, Disproved) for error in errors)

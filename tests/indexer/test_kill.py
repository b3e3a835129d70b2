from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, cycle
from pathlib import Path
from random import Random

import pytest

from chainkit.errors import StoreError
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import IndexedBlock
from localnet.postgres import Postgres
from support.chains.branches import Branches, publish_round, timed_chain, two_branches
from support.chains.chain import Deployment, LocalChain
from support.endpoints.fault_proxy import FaultProxy
from support.indexer.follower import ALL_KNOWN, FINALITY, Follower, clean_run, learn
from support.indexer.honest_rows import HonestRows, Tables, chain_tables
from support.indexer.warm_indexer import WarmIndexer
from support.seeds import IS_SOAK

from .conftest import Node, publish

SOAK = 20 if IS_SOAK else 1
SEED = int(os.environ.get("CHAINKIT_SEED", "0x6b696c6c"), 0)
KILLED = -9
MOST_SECONDS = 30.0
FIRST_SECONDS = 0.25
"""The longest life, until one was too short to get on."""
KILLS = {"sqlite": 20, "postgres": 5}
"""In each of the three tests."""


# Longer than any other test where it is told to soak.
pytestmark = pytest.mark.timeout(300 * SOAK)


@dataclass
class Mortal:
    """A node whose process is killed again and again, and what its databases may hold."""

    indexer: WarmIndexer
    node: Node
    new_location: Callable[[], str]
    kills_wanted: int
    honest: HonestRows
    random: Random = field(default_factory=lambda: Random(SEED))
    longest_seconds: float = FIRST_SECONDS
    kills: int = 0
    location: str = ""
    has_tables: bool = False
    position: IndexedBlock | None = None

    def begin_again(self) -> None:
        """Go on with an empty database."""
        self.location, self.has_tables = self.new_location(), False
        # A life that ends where the last database ended got on nevertheless.
        self.position = None

    def begin(self, url: str, *options: str) -> None:
        """Start a process that has a random time to live."""
        seconds = self.random.uniform(0, self.longest_seconds)
        self.indexer.begin(self._arguments(url, *options), seconds)

    def died(self) -> bool:
        """Wait for the end; say whether it was killed, not done."""
        death = self.indexer.end()
        assert death.code in (0, KILLED), death.said
        self.kills += death.was_killed
        return death.was_killed

    def finish(self, url: str) -> None:
        """Run until all is done, and leave nothing undone."""
        death = self.indexer.live(self._arguments(url, "--until-idle"))
        assert death.code == 0, death.said
        self.check()

    def check(self) -> None:
        """Fail if the database holds anything that a clean run would not."""
        try:
            store = Store.open_existing(self.location)
        except StoreError:
            # Killed before it made the tables.
            assert not self.has_tables
            self.longest_seconds *= 1.2
            return
        self.has_tables = True
        self.honest.check(store)
        position = store.position()
        store.close()
        # However slow the machine is: some life is long enough to get on.
        is_new = position != self.position
        self.longest_seconds = FIRST_SECONDS if is_new else 1.2 * self.longest_seconds
        self.position = position

    def tables(self, with_journal: bool = False) -> Tables:
        store = Store.open_existing(self.location)
        tables = chain_tables(store, with_journal)
        store.close()
        return tables

    def _arguments(self, url: str, *options: str) -> list[str]:
        follower = self.node.follower_options(database=self.location, rpc=url)
        portions = ("--page-blocks", "2", "--poll-seconds", "0.01", "--finality", str(FINALITY))
        return ["index", "run", *follower, *portions, *options]


@pytest.fixture(params=["sqlite", "postgres"])
def databases(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        return server.new_database
    numbers = count()
    return lambda: str(tmp_path / f"mortal-{next(numbers)}.db")


@pytest.fixture
def mortal(
    warm_indexer: WarmIndexer,
    branches: Branches,
    databases: Callable[[], str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> Mortal:
    kills = KILLS[request.node.callspec.params["databases"]]
    node = Node(branches.before, tmp_path, 1)
    return Mortal(warm_indexer, node, databases, SOAK * kills, HonestRows())


@pytest.fixture(scope="module")
def branches(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Branches]:
    with two_branches(local_deployment, tmp_path_factory.mktemp("branches")) as running:
        yield running


def test_run__killed_while_catching_up__ends_as_a_clean_run(
    mortal: Mortal, branches: Branches, tmp_path: Path
) -> None:
    learn(mortal.honest, branches.before, tmp_path / "honest.db")
    clean = clean_run(branches.before, tmp_path / "clean.db")
    while mortal.kills < mortal.kills_wanted:
        mortal.begin_again()
        is_unfinished = True
        while is_unfinished:
            mortal.begin(branches.before.url, "--until-idle")
            is_unfinished = mortal.died()
            mortal.check()
        assert mortal.tables() == clean


def test_run__killed_while_repairing__ends_as_a_clean_run(
    mortal: Mortal, branches: Branches, tmp_path: Path
) -> None:
    learn(mortal.honest, branches.before, tmp_path / "before.db")
    learn(mortal.honest, branches.after, tmp_path / "after.db")
    mortal.begin_again()
    with (
        FaultProxy(branches.before.url) as proxy,
        Follower(branches.before.record, tmp_path / "witness.db") as witness,
    ):
        mortal.finish(proxy.url)
        witness.catch_up(branches.before.endpoint)
        for branch in cycle((branches.after, branches.before)):
            proxy.upstream = branch.url
            is_unfinished = True
            while is_unfinished:
                mortal.begin(proxy.url, "--until-idle")
                is_unfinished = mortal.died()
                mortal.check()
            witness.catch_up(branch.endpoint)
            assert mortal.tables(True) == chain_tables(witness.store, with_journal=True)
            if mortal.kills >= mortal.kills_wanted:
                break


def test_run__killed_while_following__ends_as_a_clean_run(
    mortal: Mortal, local_deployment: Deployment, tmp_path: Path
) -> None:
    mortal.begin_again()
    with (
        timed_chain(local_deployment, tmp_path) as chain,
        Follower(chain.record, tmp_path / "witness.db", finality=ALL_KNOWN) as witness,
    ):
        mortal.node = Node(chain, tmp_path, 1)
        while mortal.kills < mortal.kills_wanted:
            mortal.begin(chain.url)
            publish_round(chain, mortal.kills)
            mortal.died()
            witness.catch_up(chain.endpoint)
            mortal.honest.learn(witness.store)
            mortal.check()
        mortal.finish(chain.url)
        assert mortal.tables() == clean_run(chain, tmp_path / "clean.db")


def children_of(process: int) -> list[int]:
    return [
        int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    # Dead, but nobody has asked yet how it died.
    return state != "Z"


def test_run__killed__leaves_no_process_behind(node: Node, local_chain: LocalChain) -> None:
    publish(local_chain, 1)
    process = node.start()
    assert process.stderr is not None
    while "idle" not in process.stderr.readline():
        pass
    children = children_of(process.pid)
    assert children

    process.kill()

    process.wait()
    process.stderr.close()
    deadline = time.monotonic() + MOST_SECONDS
    while any(map(is_alive, children)):
        assert time.monotonic() < deadline
        time.sleep(0.01)

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import pytest

from chainkit.contracts.right_chain import check_deployment
from support.chains.branches import publish_round, timed_chain
from support.chains.chain import Deployment, LocalChain
from support.chains.restless_chain import RestlessChain
from support.endpoints import broken_answers, faults
from support.endpoints.fault_proxy import FaultProxy
from support.endpoints.restless_pool import RestlessPool
from support.indexer.follower import ALL_KNOWN, FINALITY, Follower
from support.indexer.honest_rows import HonestRows, chain_tables
from support.seeds import IS_SOAK, is_of_a_day, seeds

SEEDS = seeds(fixed=2, of_day=1, in_soak=60)
ROUNDS = 60 if IS_SOAK else 20
STEPS_PER_ROUND = 5

ALL_FAULTS = (*faults.UNTRUE, *faults.HARMLESS, *broken_answers.BROKEN, broken_answers.OUT_OF_ORDER)
SHOWS_ANOTHER_BRANCH = {"logs: of the other branch", "header: of the other branch",
                        "header: head of the other branch", "counter: newest"}  # fmt: skip
"""Together they may show a whole other branch, a lie that nobody can see through: a reorg."""


@dataclass
class World:
    """A restless chain, another branch of it, lying endpoints of both, and a node in between."""

    restless: RestlessChain
    other: LocalChain
    proxies: list[FaultProxy]
    pool: RestlessPool
    follower: Follower
    witnesses: list[tuple[LocalChain, Follower]]
    honest: HonestRows

    def move(self, random: Random) -> None:
        """Change the chain; learn what may be held from now on."""
        self.restless.move()
        if random.random() < 0.2:
            RestlessChain(self.other, random).publish()
        for chain, witness in self.witnesses:
            witness.catch_up(chain.endpoint)
            self.honest.learn(witness.store)

    def arm(self, random: Random) -> None:
        """Let each endpoint lie in some ways, and now and then in none."""
        allowed = [
            fault
            for fault in ALL_FAULTS
            if self.follower.settings.finality is ALL_KNOWN
            or fault.name not in SHOWS_ANOTHER_BRANCH
        ]
        for proxy in self.proxies:
            proxy.lift()
            for fault in random.sample(allowed, random.choice((0, 1, 2, 4))):
                proxy.arm(fault, probability=random.choice((0.1, 0.5, 1)), random=random)

    def step(self) -> None:
        self.pool.step(self.follower.step)
        self.honest.check(self.follower.store)

    def settle(self) -> None:
        """Lift all faults, mine above each height that was ever seen, and follow to the head."""
        for proxy in self.proxies:
            proxy.lift()
        self.restless.chain.mine(6)
        head = self.restless.chain.head().reference
        for _ in range(400):
            self.pool.step(self.follower.step)
            position = self.follower.store.position()
            if position is not None and position.header.reference == head:
                return
        raise AssertionError((position, head, self.pool.errors[-5:]))

    def delivered(self) -> int:
        return sum(proxy.delivered.total() for proxy in self.proxies)


@contextmanager
def world(deployment: Deployment, folder: Path, random: Random, seed: int) -> Iterator[World]:
    for name in ("chain", "other"):
        (folder / name).mkdir()
    with (
        timed_chain(deployment, folder / "chain") as chain,
        timed_chain(deployment, folder / "other") as other,
        FaultProxy(chain.url, other.url) as first,
        FaultProxy(chain.url, other.url) as second,
        FaultProxy(chain.url, other.url) as third,
        Follower(chain.record, folder / "witness.db", finality=ALL_KNOWN) as witness,
        Follower(chain.record, folder / "other.db", finality=ALL_KNOWN) as other_witness,
        Follower(
            chain.record,
            folder / "node.db",
            page_blocks=random.choice((3, 10, 100)),
            finality=ALL_KNOWN if seed % 2 else FINALITY,
        ) as follower,
    ):
        for each in (chain, other):
            publish_round(each, 0)
        assert chain.head() == other.head()
        proxies = [first, second, third]
        check = partial(check_deployment, record=chain.record)
        pool = RestlessPool([proxy.url for proxy in proxies], check)
        witnesses = [(chain, witness), (other, other_witness)]
        restless = RestlessChain(chain, random)
        yield World(restless, other, proxies, pool, follower, witnesses, HonestRows())


@pytest.mark.parametrize("seed", SEEDS)
def test_follow__faults_at_random_while_the_chain_forks__ends_as_a_clean_run(
    seed: int, local_deployment: Deployment, tmp_path: Path
) -> None:
    print(f"seed {seed}")
    random = Random(seed)
    with world(local_deployment, tmp_path, random, seed) as living:
        for _ in range(ROUNDS):
            living.move(random)
            living.arm(random)
            for _ in range(STEPS_PER_ROUND):
                living.step()
        living.settle()
        assert living.delivered() > ROUNDS // 2 or is_of_a_day(seed)
        chain = living.restless.chain
        with Follower(chain.record, tmp_path / "clean.db",
                      finality=living.follower.settings.finality) as clean:  # fmt: skip
            clean.catch_up(chain.endpoint)
            assert chain_tables(living.follower.store) == chain_tables(clean.store)

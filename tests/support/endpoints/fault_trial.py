"""An indexer behind a proxy that lies, over a chain that forks, checked after every single step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chainkit.errors import ChainError
from support.chains.branches import Branches
from support.endpoints.endpoints import impatient_endpoint
from support.endpoints.fault_proxy import Fault, FaultProxy
from support.endpoints.restless_pool import RestlessPool
from support.indexer.follower import Follower
from support.indexer.honest_rows import HonestRows, Tables

MOST_STEPS = 100
ATTEMPTS = 2
"""So often each moment's step meets the fault before it is lifted."""


@dataclass(frozen=True)
class Scene:
    """A chain that forks, what a clean run holds of each branch, and after the reorg."""

    branches: Branches
    honest: HonestRows
    tables: Tables
    journal: Tables
    empty: Path
    """A database without a row: to make its tables takes longer than to copy them."""


class Trial:
    """A follower behind the proxy whose database is checked after every single step."""

    def __init__(self, scene: Scene, proxy: FaultProxy, follower: Follower) -> None:
        self.scene, self.proxy, self.follower = scene, proxy, follower
        self.endpoint = impatient_endpoint(proxy.url)
        self.errors: list[ChainError] = []

    def suffer(self, *suffered: Fault) -> None:
        """Meet faults a few times, then an honest endpoint again."""
        self.proxy.arm(*suffered)
        for _ in range(ATTEMPTS):
            self.step()
        self.proxy.lift()

    def step(self) -> None:
        try:
            self.follower.step(self.endpoint)
        except ChainError as error:
            self.errors.append(error)
        self.scene.honest.check(self.follower.store)

    def catch_up(self) -> None:
        known = len(self.errors)
        self.follower.catch_up(self.endpoint)
        self.scene.honest.check(self.follower.store)
        assert len(self.errors) == known

    def fork(self) -> None:
        branches = self.scene.branches
        self.proxy.upstream, self.proxy.other = branches.after.url, branches.before.url


def live_through(trial: Trial, *suffered: Fault) -> None:
    """Meet a fault in the first page, in history, at the head, in a reorg and behind it."""
    trial.suffer(*suffered)
    trial.step()
    trial.suffer(*suffered)
    trial.catch_up()
    trial.suffer(*suffered)
    trial.fork()
    trial.suffer(*suffered)
    trial.step()
    trial.suffer(*suffered)
    trial.catch_up()


def follow_both_branches(trial: Trial, pool: RestlessPool, honest_proxy: FaultProxy) -> None:
    """Reach the head of each branch, or fail after more steps than it can take."""
    branches = trial.scene.branches
    for branch in (branches.before, branches.after):
        honest_proxy.upstream = branch.url
        if branch is branches.after:
            trial.fork()
        head = branch.head().reference
        for _ in range(MOST_STEPS):
            pool.step(trial.follower.step)
            trial.scene.honest.check(trial.follower.store)
            position = trial.follower.store.position()
            if position is not None and position.header.reference == head:
                break
        else:
            raise AssertionError((position, head, pool.errors[-3:]))


def by_name(fault: Fault) -> str:
    return fault.name.replace(" ", "_")

"""A pytest plugin with the parts of ``support.endpoints.fault_trial``; test modules name it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from chainkit.contracts.right_chain import check_deployment
from support.chains.branches import two_branches
from support.chains.chain import Deployment
from support.endpoints.fault_proxy import FaultProxy
from support.endpoints.fault_trial import Scene, Trial
from support.endpoints.restless_pool import RestlessPool
from support.indexer.follower import Follower, clean_run, learn
from support.indexer.honest_rows import HonestRows, chain_tables

PAGE_BLOCKS = 8


@pytest.fixture(scope="session")
def scene(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("branches")
    with two_branches(local_deployment, folder) as branches:
        honest = HonestRows()
        learn(honest, branches.before, folder / "before.db")
        learn(honest, branches.after, folder / "after.db")
        tables = clean_run(branches.after, folder / "clean.db")
        with Follower(branches.before.record, folder / "reorg.db") as follower:
            follower.catch_up(branches.before.endpoint)
            follower.catch_up(branches.after.endpoint)
            journal = chain_tables(follower.store, with_journal=True)
        assert journal["journal"]
        Follower(branches.before.record, folder / "empty.db").store.close()
        yield Scene(branches, honest, tables, journal, folder / "empty.db")


@pytest.fixture
def honest_proxy(scene: Scene) -> Iterator[FaultProxy]:
    with FaultProxy(scene.branches.before.url) as running:
        yield running


@pytest.fixture
def lying_proxy(scene: Scene) -> Iterator[FaultProxy]:
    with FaultProxy(scene.branches.before.url, other=scene.branches.after.url) as running:
        yield running


@pytest.fixture
def trial(scene: Scene, lying_proxy: FaultProxy, tmp_path: Path) -> Iterator[Trial]:
    location = shutil.copy(scene.empty, tmp_path / "node.db")
    record = scene.branches.before.record
    with Follower(record, location, page_blocks=PAGE_BLOCKS) as follower:
        yield Trial(scene, lying_proxy, follower)


@pytest.fixture
def pool(trial: Trial, honest_proxy: FaultProxy) -> RestlessPool:
    """The liar first, then an honest endpoint."""
    check = partial(check_deployment, record=trial.scene.branches.before.record)
    return RestlessPool([trial.proxy.url, honest_proxy.url], check)

"""The MLS engine as it is shipped: one child process for all tests that do not harm it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit_client.mls.child import ChildLimits
from chainkit_client.mls.node_engine import NodeEngine
from support.client.hostile import Hostile, bundle


@pytest.fixture(scope="session")
def engine() -> Iterator[NodeEngine]:
    with NodeEngine() as running:
        yield running


@pytest.fixture(scope="session")
def engine_of_suite_1() -> Iterator[NodeEngine]:
    with NodeEngine(cipher_suite=1) as running:
        yield running


@pytest.fixture(scope="session")
def hostile_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundle("hostile.mjs", tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="session")
def hostile(hostile_program: Path) -> Iterator[Hostile]:
    running = Hostile(hostile_program, ChildLimits())
    yield running
    running.child.end()

"""A council of each kind in turn, on one chain for all tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.chains.chain import Deployment
from support.council.simulations import ACCOUNTS, SimulatedCouncil, simulated_council, undone


@pytest.fixture(scope="module", params=ACCOUNTS)
def simulated_chain(
    request: pytest.FixtureRequest,
    local_deployment: Deployment,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SimulatedCouncil]:
    """One chain for all tests of a file and a kind of account, which undo what they do."""
    folder = tmp_path_factory.mktemp("simulation")
    with simulated_council(local_deployment, folder, request.param) as council:
        yield council


@pytest.fixture
def simulated(simulated_chain: SimulatedCouncil) -> Iterator[SimulatedCouncil]:
    """The council of each kind in turn, as it was at first."""
    with undone(simulated_chain):
        yield simulated_chain

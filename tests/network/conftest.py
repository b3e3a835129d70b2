"""One private network for the whole folder: a chain, its contracts, a node and a gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from localnet.accounts import COUNCIL, write_keystore
from localnet.anvil import Anvil
from localnet.commands import Settings
from localnet.network import Network, running_network
from localnet.private_file import write_private
from support.chains.chain import Deployment, send_deployment
from support.network.api import Api
from support.network.edge_network import EdgeNetwork, edge_network
from support.warm_commands import WarmCommands

PASSWORD = "network"


@pytest.fixture(scope="module", autouse=True)
def forked(commands_are_warm: None) -> None:
    """All commands are forks."""


@pytest.fixture(scope="session")
def chain() -> Iterator[Anvil]:
    with Anvil() as anvil:
        yield anvil


@pytest.fixture(scope="session")
def settings(
    chain: Anvil, local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Settings:
    return deployed(chain, local_deployment, tmp_path_factory.mktemp("network"))


@pytest.fixture(scope="session")
def network(settings: Settings, warm_commands: WarmCommands) -> Iterator[Network]:
    folder = settings.record_path.parent
    owner = folder / "owner.keystore"
    write_keystore(owner, PASSWORD, COUNCIL)
    with ExitStack() as stack:
        # Started before the first module's own commands are.
        with warm_commands.in_localnet():
            running = stack.enter_context(running_network(settings, folder, owner, PASSWORD))
        yield running


@pytest.fixture(scope="session")
def edge(
    local_deployment: Deployment,
    warm_commands: WarmCommands,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[EdgeNetwork]:
    """A network with TLS at one of its nodes."""
    with ExitStack() as stack:
        with warm_commands.in_localnet():
            folder = tmp_path_factory.mktemp("edge")
            running = stack.enter_context(edge_network(local_deployment, folder))
        yield running


@pytest.fixture
def node(network: Network) -> Iterator[Api]:
    """The API of the network's node."""
    api = Api(network.node_url)
    yield api
    api.close()


def deployed(chain: Anvil, deployment: Deployment, folder: Path) -> Settings:
    """Deploy contracts on a chain; the files of its network are in the folder."""
    settings = Settings(chain.url, folder / "deployment.json", folder / "password")
    write_private(settings.password_path, PASSWORD + "\n")
    send_deployment(deployment, chain, settings.record_path)
    return settings


def monitor_in(log: Path) -> str:
    """Return the URL of the monitor that a log tells of."""
    lines = map(json.loads, log.read_text().splitlines())
    [address] = [each["address"] for each in lines if each.get("event") == "listening"]
    return f"http://{address}"

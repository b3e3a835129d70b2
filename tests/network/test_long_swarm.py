"""Attackers of all kinds at once, for ten minutes, beside honest clients of each service.

``CHAINKIT_SWARM_SECONDS`` shortens it.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Final

import pytest

from chainkit.misbehavior.signed import take_apart
from chainkit.misbehavior.types import Misbehavior
from chainkit.types import TopicKind
from support import publishes
from support.chains.chain import Deployment
from support.endpoints.fault_proxy import FaultProxy
from support.network.api import Api
from support.network.beside import Reader, refused, resident_bytes
from support.network.certificates import make_pair, write_pair
from support.network.own_gateway import OwnGateway
from support.network.real_nodes import RealNetwork, RealNode, becomes, real_network, until
from support.network.storage_service import StorageService, content
from support.network.swarm import (
    AT_GATEWAY,
    AT_NODE,
    AT_STORAGE,
    AT_TLS,
    bad_endpoint,
    bad_nodes,
    swarm,
)
from support.seeds import only_in_soak

SECONDS: Final = float(os.environ.get("CHAINKIT_SWARM_SECONDS", "600"))
TIMES: Final = {"header_seconds": 5, "request_seconds": 10, "quiet_seconds": 17}
NAMES: Final = (
    *("node", "TLS", "other node", "gateway", "other gateway"),
    *("storage", "other storage"),
)
CONTROLS: Final = {
    "node": "other node",
    "TLS": "other node",
    "gateway": "other gateway",
    "storage": "other storage",
}
"""Services of the same kind that nobody attacks: they show how much the machine leaves to one."""
FLOOR_SECONDS: Final = 0.2
"""A delay that may always be."""
GATEWAY_ADDRESS: Final = "127.0.0.3"
LOOK_SECONDS: Final = 0.5
ASK_SECONDS, DOWNLOAD_SECONDS, DOWNLOADS = 0.01, 0.4, 40
"""Pauses of honest clients, and downloads of one file: more are refused."""
CATCH_UP_SECONDS: Final = 300.0
CHANCE: Final = random.Random(46)

pytestmark = [only_in_soak, pytest.mark.timeout(3 * SECONDS + 900)]


@dataclass(frozen=True)
class Services:
    """Three nodes, two gateways, two storage services, and a chain's endpoint.

    The second node has TLS. Nobody attacks the last service of each kind; the last gateway
    publishes at the last node.
    """

    network: RealNetwork
    nodes: list[RealNode]
    gateways: list[OwnGateway]
    clients: list[Api]
    """A client's connection to each gateway."""
    storages: list[StorageService]
    endpoint: FaultProxy
    """The first endpoint of all; the second one is the chain itself."""
    files: dict[int, list[tuple[str, bytes]]] = field(default_factory=lambda: defaultdict(list))
    """By a storage service's port, what an honest client uploaded, and may still download."""

    def honest(self) -> Mapping[str, Callable[[], None]]:
        """Return what an honest client does at each service."""
        nodes, storages = self.nodes, self.storages
        return {
            "node": lambda: self._ask_node(nodes[0]),
            "TLS": lambda: self._ask_node(nodes[1]),
            "other node": lambda: self._ask_node(nodes[2]),
            "gateway": lambda: self._ask_gateway(self.clients[0], nodes[0]),
            "other gateway": lambda: self._ask_gateway(self.clients[1], nodes[2]),
            "storage": lambda: self._ask_storage(storages[0]),
            "other storage": lambda: self._ask_storage(storages[1]),
        }

    def ports(self) -> list[int]:
        """Return the ports of strangers: of both nodes, the gateway and the storage service."""
        nodes = [each.gate.target for each in self.nodes[:2]]
        gateway = int(self.gateways[0].url.rpartition(":")[2])
        return [*(each for each in nodes if each), gateway, self.storages[0].port]

    def refused(self) -> dict[str, float]:
        """Count what each service that strangers ask refused, but for the storage service."""
        monitors = {"node": self.nodes[0].monitor, "TLS": self.nodes[1].monitor}
        monitors["gateway"] = self.gateways[0].monitor
        return {name: refused(monitor) for name, monitor in monitors.items()}

    def memory(self) -> dict[str, int]:
        return {name: resident_bytes(pid) for name, pid in self.processes().items()}

    def memory_is_within(self, quiet: Cost, times: float) -> bool:
        """Return whether each service has so many times of its quiet memory, at most."""
        return all(most < times * quiet.memory[name] for name, most in self.memory().items())

    def processes(self) -> Mapping[str, int]:
        services = [*self.nodes, *self.gateways, *self.storages]
        return {name: each.pid for name, each in zip(NAMES, services, strict=True)}

    def _ask_node(self, node: RealNode) -> None:
        key = CHANCE.randbytes(32)
        [envelope] = node.api.publish(publishes.paid(publishes.welcome(key), node.node_id))
        assert node.api.query(topics=[TopicKind.WELCOME.topic(key)]) == [envelope]

    def _ask_gateway(self, client: Api, node: RealNode) -> None:
        key = CHANCE.randbytes(32)
        [envelope] = client.publish_for_clients(publishes.welcome(key))
        assert envelope in node.api.query(topics=[TopicKind.WELCOME.topic(key)])

    def _ask_storage(self, service: StorageService) -> None:
        files = self.files[service.port]
        if not files:
            data = content()
            files.extend([(service.upload(data).text, data)] * DOWNLOADS)
        file_id, data = files.pop()
        assert service.download(file_id).body == data


@pytest.fixture
def services(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Services]:
    folder = tmp_path_factory.mktemp("swarm")
    with ExitStack() as stack:
        network = stack.enter_context(real_network(local_deployment, folder))
        endpoint = stack.enter_context(FaultProxy(network.chain.url))
        both = f"{endpoint.url} {network.chain.url}"
        network.settings = replace(network.settings, rpc_url=both)
        nodes = start_nodes(network)
        gateways = [
            start_gateway(stack, network, "gateway", nodes[0]),
            start_gateway(stack, network, "other-gateway", nodes[2]),
        ]
        storages = [
            StorageService(folder / name, "--patience", "5") for name in ("storage", "other")
        ]
        for storage in storages:
            stack.callback(storage.stop)
            storage.start()
        clients = [Api(each.url, is_own_connection=True) for each in gateways]
        for each in clients:
            stack.callback(each.close)
        yield Services(network, nodes, gateways, clients, storages, endpoint)


def start_gateway(stack: ExitStack, network: RealNetwork, name: str, node: RealNode) -> OwnGateway:
    # A gateway has an address of its own at its node, as the honest client has.
    node.gate.source = GATEWAY_ADDRESS
    folder = network.folder / name
    folder.mkdir()
    gateway = OwnGateway(
        *(network.settings, folder, (node.node_id, node.gate.url)),
        *("--limits", str(network.folder / "limits.json"), "--listen", "127.0.0.1:0"),
    )
    stack.callback(gateway.stop)
    gateway.url = gateway.start_at()
    return gateway


def start_nodes(network: RealNetwork) -> list[RealNode]:
    folder, pair = network.folder, make_pair()
    files = (folder / "certificate.pem", folder / "key.pem")
    write_pair(files, pair)
    limits = folder / "limits.json"
    limits.write_text(json.dumps({"edge": TIMES}))
    options = ("--limits", str(limits), "--peer-ca", str(files[0]))
    tls = ("--tls-certificate", str(files[0]), "--tls-key", str(files[1]))
    nodes = [
        network.add(None, *options),
        network.add(None, *options, *tls, roots=pair[0]),
        network.add(None, *options),
    ]
    for each in nodes:
        each.listens()
    for each in nodes:
        each.originates()
    until(lambda: all(each.peer_streams() == 2 for each in nodes))
    return nodes


@dataclass(frozen=True)
class Cost:
    """The 99th percentile of honest clients' delays, and the most memory, of each service."""

    seconds: Mapping[str, float]
    memory: Mapping[str, int]
    asked: Mapping[str, tuple[int, int]]
    """Questions that were answered, and refusals before."""


def cost(services: Services, seconds: float) -> Cost:
    """Be honest for so long."""
    readers = {
        name: Reader(ask, DOWNLOAD_SECONDS if "storage" in name else ASK_SECONDS)
        for name, ask in services.honest().items()
    }
    most = dict.fromkeys(services.processes(), 0)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        most = {name: max(most[name], now) for name, now in services.memory().items()}
        time.sleep(LOOK_SECONDS)
    for each in readers.values():
        each.close()
    return Cost(
        {name: each.quantile(0.99) for name, each in readers.items()},
        most,
        {name: (len(each.seconds), each.refused) for name, each in readers.items()},
    )


def test_swarm__beside_honest_clients__costs_them_at_most_as_much_again_and_accuses_nobody(
    services: Services,
) -> None:
    nodes, began_ns = services.nodes, time.time_ns()
    quiet = cost(services, SECONDS / 4)
    counted = services.refused()
    kinds = zip((AT_NODE, AT_TLS, AT_GATEWAY, AT_STORAGE), services.ports(), strict=True)
    with (
        bad_nodes(services.network.register) as liars,
        bad_endpoint(services.endpoint),
        swarm(*kinds) as attacks,
    ):
        beside = cost(services, SECONDS)
        idle = [each for each in attacks if not each.goes_on()]
    refused = {name: count - counted[name] for name, count in services.refused().items()}
    reports = [
        each
        for node in nodes
        for each in map(take_apart, node.api.query_reports())
        if each.report.reporter_time_ns > began_ns
    ]
    print(quiet, beside, refused, [(str(each), each.rounds.value) for each in attacks], sep="\n")

    assert not idle
    assert services.endpoint.delivered.total() > 0
    assert min(refused.values()) > 0, refused
    # The bad nodes were found out, and nobody else. That an answer took long is true of a machine
    # that the swarm fills.
    accused = {
        each.node_id for each in reports if each.report.misbehavior is not Misbehavior.SLOW_NODE
    }
    assert accused & {each.node_id for each in liars.values()}
    assert not accused & {each.node_id for each in nodes}, reports
    # Whatever else takes the machine's processors makes the others late, too; the time and the bad
    # nodes cost them memory.
    for name, other in CONTROLS.items():
        alone = max(quiet.seconds[name], beside.seconds[other])
        assert beside.seconds[name] < max(2 * alone, FLOOR_SECONDS), name
        assert beside.memory[name] < 2 * max(quiet.memory[name], beside.memory[other]), name
    # Nothing stays, and what was published beside the swarm came to the other node.
    left = becomes(lambda: services.memory_is_within(quiet, 2.0))
    assert left, services.memory()
    assert becomes(
        lambda: len({each.api.ranges(nodes[0].node_id)[0] for each in nodes}) == 1, CATCH_UP_SECONDS
    )

"""Attacks at full size on services with the shipped limits, and a reader beside them.

Envoy's times alone are shorter, so that an attack ends within seconds and not minutes.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import pytest

from chainkit.types import TopicKind
from support import publishes
from support.chains.chain import Deployment
from support.network import attackers
from support.network.api import PAYER, Api
from support.network.attackers import Attack, attacking
from support.network.beside import Reader, refused, resident_bytes
from support.network.certificates import make_pair, write_pair
from support.network.own_gateway import OwnGateway
from support.network.real_nodes import RealNetwork, RealNode, becomes, real_network
from support.seeds import only_in_soak

TIMES: Final = {"header_seconds": 5, "request_seconds": 10, "quiet_seconds": 17}
MEMORY_BYTES: Final = 150 << 20
BACK_SECONDS: Final = 360
"""Envoy's allocator keeps pages in case that the demand of the last minutes comes again."""
MEMORY_BYTES_OF_QUERIES: Final = 50 << 20
FLOOR_SECONDS: Final = {0.5: 0.25, 0.99: 1.0}
"""Delays of half and of nearly all readings that may always be: attackers take processors, too."""
REST_SECONDS: Final = 5.0
LARGE_PAYLOADS, LARGE_BYTES = 8, 1 << 20
"""Readers that take nothing leave some of these waiting."""
CHANCE: Final = random.Random(46)
MOST_LINES: Final = 20
"""Log lines of an attack, whatever its size."""

pytestmark = [only_in_soak, pytest.mark.timeout(900)]

ATTACKS: Final[Mapping[str, tuple[Attack, int, int]]] = {
    "dear_queries": (attackers.dear_queries, 30, 30),
    "dear_publishes": (attackers.dear_publishes, 30, 30),
    "dear_queries_of_1_mib": (attackers.queries_of_1_mib, 1000, 1000),
    "streams_without_request": (attackers.streams_without_request, 32_700, 32_700),
    "endless_bodies": (attackers.endless_bodies, 100, 100),
    "endless_readers": (attackers.endless_readers, 200, 200),
    "many_topics": (attackers.many_topics, 1000, 900),
}
"""The attack, how often, and the least of it that a metric must count."""

GATEWAY_ATTACKS: Final[Mapping[str, tuple[Attack, int, int]]] = {
    "dear_publishes": (attackers.dear_client_publishes, 30, 30),
    "streams_without_request": (attackers.client_streams_without_request, 32_700, 32_000),
    "endless_bodies": (attackers.endless_client_bodies, 100, 100),
}


def judge(
    pid: int,
    log: Callable[[], Sequence[str]],
    monitor: str,
    ask: Callable[[], object],
    attack: Attack,
    port: int,
    count: int,
    least: int,
    room: int = MEMORY_BYTES,
) -> None:
    """Run an attack, and check readers, memory, metrics and log."""
    quiet = Reader(ask)
    time.sleep(REST_SECONDS)
    quiet.close()
    lines, memory, counted = len(log()), resident_bytes(pid), refused(monitor)
    beside, most = Reader(ask), memory
    began = time.monotonic()
    with attacking(attack, port, count) as process:
        while process.is_alive() and time.monotonic() < began + 300:
            process.join(0.2)
            most = max(most, resident_bytes(pid))
        code = process.exitcode
    took = time.monotonic() - began
    beside.close()
    ended = time.monotonic()
    back = becomes(lambda: resident_bytes(pid) < memory + room, BACK_SECONDS)
    after, back_after = resident_bytes(pid), time.monotonic() - ended
    new = log()[lines:]
    print(
        f"{attack}: {took:.1f} s, p50 {quiet.quantile(0.5):.4f} {beside.quantile(0.5):.4f}, "
        f"p99 {quiet.quantile(0.99):.4f} {beside.quantile(0.99):.4f}, "
        f"most {quiet.quantile(1):.3f} {beside.quantile(1):.3f}, "
        f"MiB {memory >> 20} {most >> 20} {after >> 20} after {back_after:.0f} s, "
        f"counted {refused(monitor) - counted:g}, lines {len(new)} {new[:2]}"
    )
    assert code == 0, code
    for share, floor in FLOOR_SECONDS.items():
        assert beside.quantile(share) < max(2 * quiet.quantile(share), floor)
    assert back, (memory, after)
    assert becomes(lambda: refused(monitor) - counted >= least, 30), refused(monitor) - counted
    assert len(new) < MOST_LINES
    assert all(json.loads(line) for line in new)


@pytest.fixture(scope="module")
def network(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealNetwork]:
    folder = tmp_path_factory.mktemp("attacks")
    with real_network(local_deployment, folder) as network:
        yield network


@pytest.fixture(scope="module")
def node(network: RealNetwork) -> RealNode:
    folder = network.folder
    limits = folder / "limits.json"
    limits.write_text(json.dumps({"edge": TIMES}))
    node = network.add(None, "--limits", str(limits))
    node.listens()
    node.originates()
    for _ in range(LARGE_PAYLOADS):
        payload = publishes.welcome(CHANCE.randbytes(32), data=bytes(LARGE_BYTES))
        node.api.publish(publishes.paid(payload, node.node_id))
    return node


def attacked(node: RealNode, attack: Attack, count: int, least: int, room: int) -> None:
    key = CHANCE.randbytes(32)
    [envelope] = node.api.publish(publishes.paid(publishes.welcome(key), node.node_id))
    topic = TopicKind.WELCOME.topic(key)

    def ask() -> None:
        assert node.api.query(topics=[topic]) == [envelope]

    assert node.service is not None and node.gate.target is not None
    judge(
        node.pid,
        node.service.log_lines,
        node.monitor,
        ask,
        attack,
        node.gate.target,
        count,
        least,
        room,
    )


@pytest.mark.parametrize("name", ATTACKS)
def test_node__attacked_at_full_size__serves_its_readers_and_gives_all_back(
    node: RealNode, name: str
) -> None:
    attacked(node, *ATTACKS[name], MEMORY_BYTES_OF_QUERIES if "queries" in name else MEMORY_BYTES)


def test_node_with_tls__a_thousand_bad_handshakes__serves_its_readers(network: RealNetwork) -> None:
    files, pair = (network.folder / "certificate.pem", network.folder / "key.pem"), make_pair()
    write_pair(files, pair)
    tls = ("--tls-certificate", str(files[0]), "--tls-key", str(files[1]))
    node = network.add(None, "--peer-ca", str(files[0]), *tls, roots=pair[0])
    node.listens()
    node.originates()

    attacked(node, attackers.bad_handshakes, 1000, 1000, MEMORY_BYTES)


@pytest.fixture(scope="module")
def gateway(network: RealNetwork, node: RealNode) -> Iterator[OwnGateway]:
    folder = network.folder / "gateway"
    folder.mkdir()
    limits = folder / "limits.json"
    limits.write_text(json.dumps({"edge": TIMES}))
    options = ("--limits", str(limits), "--listen", "127.0.0.1:0")
    gateway = OwnGateway(network.settings, folder, (node.node_id, node.gate.url), *options)
    gateway.url = gateway.start_at()
    yield gateway
    gateway.stop()


@pytest.mark.parametrize("name", GATEWAY_ATTACKS)
def test_gateway__attacked_at_full_size__serves_its_clients_and_gives_all_back(
    gateway: OwnGateway, name: str
) -> None:
    api = Api(gateway.url)

    def ask() -> None:
        api.call("GetNodes", b"", PAYER)

    def log() -> Sequence[str]:
        return gateway.log.read_text().splitlines()

    attack, count, least = GATEWAY_ATTACKS[name]
    port = int(gateway.url.rpartition(":")[2])
    judge(gateway.pid, log, gateway.monitor, ask, attack, port, count, least, MEMORY_BYTES)
    api.close()

"""Strangers of all kinds at once, for ten minutes, beside an honest reader and an honest payer.

``CHAINKIT_SWARM_SECONDS`` shortens it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import pytest

from chainkit.types import TopicKind
from support import publishes
from support.chains.chain import Deployment
from support.network import attackers
from support.network.attackers import Attack
from support.network.real_nodes import RealNode, becomes, real_network, until
from support.seeds import only_in_soak

from .test_long_attacks import CHANCE, TIMES, Reader, refused, resident_bytes

SECONDS: Final = float(os.environ.get("CHAINKIT_SWARM_SECONDS", "600"))
ATTACKS: Final[Sequence[tuple[Attack, int]]] = (
    (attackers.dear_queries, 4),
    (attackers.dear_publishes, 2),
    (attackers.queries_of_1_mib, 20),
    (attackers.streams_without_request, 2000),
    (attackers.endless_bodies, 20),
    (attackers.endless_readers, 20),
    (attackers.many_topics, 20),
)
FLOOR_SECONDS: Final = 1.0
MEMORY_BYTES: Final = 400 << 20

pytestmark = [only_in_soak, pytest.mark.timeout(3 * SECONDS + 600)]


@contextmanager
def swarm(port: int) -> Iterator[None]:
    """Run each attack again and again, from an address of its own."""
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_repeat, args=(*each, port, f"127.0.0.{number}"), daemon=True)
        for number, each in enumerate(ATTACKS, 20)
    ]
    for each in processes:
        each.start()
    try:
        yield
        assert all(each.is_alive() for each in processes)
    finally:
        for each in processes:
            each.kill()
            each.join()


def _repeat(attack: Attack, count: int, port: int, address: str) -> None:
    os.nice(10)
    while True:
        # The service ends connections in the middle of an attack.
        with suppress(OSError, AssertionError):
            attack(port, address, count)


def honest(node: RealNode, seconds: float) -> tuple[float, int]:
    """Publish and read what was published; return the 99th percentile, and the memory behind it."""

    def ask() -> None:
        key = CHANCE.randbytes(32)
        [envelope] = node.api.publish(publishes.paid(publishes.welcome(key), node.node_id))
        assert node.api.query(topics=[TopicKind.WELCOME.topic(key)]) == [envelope]

    reader = Reader(ask)
    time.sleep(seconds)
    reader.close()
    return reader.quantile(0.99), resident_bytes(node.pid)


def test_swarm__beside_honest_clients__costs_them_at_most_as_much_again_and_accuses_nobody(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("swarm")
    limits = folder / "limits.json"
    limits.write_text(json.dumps({"edge": TIMES}))
    with real_network(local_deployment, folder) as network:
        nodes = [network.add(None, "--limits", str(limits)) for _ in range(2)]
        for each in nodes:
            each.listens()
        for each in nodes:
            each.originates()
        until(lambda: all(each.peer_streams() == 1 for each in nodes))
        node = nodes[0]
        assert node.gate.target is not None
        quiet, memory = honest(node, SECONDS / 4)
        counted = refused(node.monitor)
        with swarm(node.gate.target):
            beside, most = honest(node, SECONDS)
        print(
            f"p99 {quiet:.4f} {beside:.4f}, MiB {memory >> 20} {most >> 20}, "
            f"refused {refused(node.monitor) - counted:g}"
        )
        assert refused(node.monitor) > counted
        assert beside < max(2 * quiet, FLOOR_SECONDS)
        assert most < max(2 * memory, MEMORY_BYTES)
        # All that was published beside the swarm has come to the other node.
        assert becomes(lambda: len({each.api.ranges(node.node_id)[0] for each in nodes}) == 1)
        assert all(each.api.query_reports() == [] for each in nodes)

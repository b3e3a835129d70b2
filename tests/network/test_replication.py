"""Several nodes of one registry: each holds what the others originate, whatever happens to them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chainkit.protocol.originated_envelope import parse_originated
from localnet.accounts import COUNCIL, write_keystore
from localnet.commands import Settings
from localnet.network import Network, StartedNode, start_node
from support import publishes
from support.network.api import Api

from .conftest import PASSWORD

SECONDS = 60.0
CHANCE = random.Random(28)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@dataclass
class Peer:
    """A node of the test's own, with a connection to it."""

    node: StartedNode
    api: Api = field(init=False)

    def __post_init__(self) -> None:
        self.api = Api(self.node.url)

    def publish(self, count: int = 1) -> list[bytes]:
        """Welcomes, each for another installation."""
        return [self.api.publish(self.welcome())[0] for _ in range(count)]

    def welcome(self) -> bytes:
        client = publishes.welcome(CHANCE.randbytes(32))
        return publishes.paid(client, self.node.node_id)

    def holds(self, originator_id: int) -> list[bytes]:
        return self.api.query(originators=[originator_id])


@pytest.fixture(scope="module")
def peers(
    settings: Settings, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Peer]]:
    folder = tmp_path_factory.mktemp("peers")
    owner = folder / "owner.keystore"
    write_keystore(owner, PASSWORD, COUNCIL)
    with ExitStack() as stack:
        yield [Peer(_started(stack, settings, folder / name, owner)) for name in ("a", "b", "c")]


def _started(stack: ExitStack, settings: Settings, folder: Path, owner: Path) -> StartedNode:
    folder.mkdir()
    return start_node(stack, settings, folder, owner, folder / "node.db")


@pytest.mark.conforms("N27", "N28", "2.2.1-14")
def test_publish__on_any_node__all_others_hold_the_same_bytes(peers: list[Peer]) -> None:
    stored = {peer.node.node_id: peer.publish(3) for peer in peers}

    for peer in peers:
        for originator_id, envelopes in stored.items():
            until(lambda: peer.holds(originator_id)[-3:] == envelopes)  # noqa: B023


def test_stream__of_another_node__brings_what_is_published_elsewhere(peers: list[Peer]) -> None:
    first, second, _ = peers
    key = CHANCE.randbytes(32)
    stream = second.api.subscribe(topics=[b"\1" + key])
    stream.first_frame()

    [envelope] = first.api.publish(publishes.paid(publishes.welcome(key), first.node.node_id))

    assert stream.take(1) == [envelope]
    assert parse_originated(envelope).envelope.originator_id == first.node.node_id
    stream.close()

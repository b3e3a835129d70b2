"""``chainkit node watch``: three nodes of one registry, of which one has died."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from localnet.accounts import COUNCIL, write_keystore
from localnet.commands import CommandFailed, Settings, run, run_json
from localnet.network import Network, StartedNode, start_node
from support import publishes
from support.network.api import Api

from .conftest import PASSWORD, monitor_in

SECONDS = 30.0
CHANCE = random.Random(32)
PUBLISHED = 3


@dataclass
class Watched:
    """A node that lives and has envelopes, and one that was killed."""

    living: StartedNode
    dead: StartedNode
    monitor: str


@pytest.fixture(scope="module")
def watched(
    settings: Settings, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    owner = folder / "owner.keystore"
    write_keystore(owner, PASSWORD, COUNCIL)
    with ExitStack() as stack:
        nodes = []
        for name in ("living", "dead"):
            own = folder / name
            own.mkdir()
            listen = ("--listen", "127.0.0.1:0")
            nodes.append(start_node(stack, settings, own, owner, own / "node.db", *listen))
        living, dead = nodes
        api = Api(living.url)
        for _ in range(PUBLISHED):
            client = publishes.welcome(CHANCE.randbytes(32))
            api.publish(publishes.paid(client, living.node_id))
        api.close()
        os.kill(dead.pid, signal.SIGKILL)
        yield Watched(living, dead, monitor_in(folder / "living" / "node.log"))


def look(settings: Settings) -> dict[str, Any]:
    found: dict[str, Any] = run_json(
        settings, "node", "watch", "--once", "--patience", "10", expected=(1,)
    )
    return found


def test_watch__one_node_is_dead__says_who_holds_how_much_and_who_is_silent(
    settings: Settings, network: Network, watched: Watched
) -> None:
    living, dead = watched.living.node_id, watched.dead.node_id
    deadline = time.monotonic() + SECONDS
    while True:
        found = look(settings)
        nodes = {each["node_id"]: each for each in found["nodes"]}
        # The network's own node replicates what was published a moment ago.
        if nodes[network.node_id]["lag"][str(living)] == 0:
            break
        assert time.monotonic() < deadline

    assert {network.node_id, living, dead} <= set(nodes)
    for node_id in (network.node_id, living):
        assert nodes[node_id]["health"] == "SERVING"
        assert nodes[node_id]["held"][str(living)] == PUBLISHED
        assert nodes[node_id]["error"] is None
        assert None not in nodes[node_id]["held"].values()
    assert nodes[dead]["seconds"] is None
    assert "UNAVAILABLE" in nodes[dead]["error"]
    assert set(nodes[dead]["held"].values()) == {None}
    silent = [each for each in found["attention"] if each["node_id"] == dead]
    assert [each["reason"] for each in silent] == ["node_silent"]
    assert found["highest"][str(living)] == PUBLISHED


def test_watch__as_text__has_the_table_and_exits_with_1(
    settings: Settings, watched: Watched
) -> None:
    text = run(settings, "node", "watch", "--once", expected=(1,))

    lines = [line.split() for line in text.splitlines()]
    [heads] = [line for line in lines if line[:1] == ["originator"]]
    living, dead = (str(each.node_id) for each in (watched.living, watched.dead))
    # "at" and the node's id are two words of a head.
    nodes = [word for word in heads[2:] if word != "at"]
    [row] = [line for line in lines if line[:2] == [living, str(PUBLISHED)]]
    held = dict(zip(nodes, row[2:], strict=True))
    assert (held[living], held[dead]) == (str(PUBLISHED), "-")
    assert f"node {dead} does not answer: UNAVAILABLE" in text


def test_watch__registry_by_its_address__is_the_same_network(
    settings: Settings, watched: Watched
) -> None:
    address = run_json(settings, "registry", "list")["registry"]

    found = run_json(settings, "node", "watch", "--once", "--registry", address, expected=(1,))

    assert {each["node_id"] for each in found["nodes"]} == {
        each["node_id"] for each in look(settings)["nodes"]
    }


def test_watch__address_without_a_contract__is_told(settings: Settings) -> None:
    with pytest.raises(CommandFailed, match="expected a contract, got no code"):
        run(settings, "node", "watch", "--once", "--registry", f"0x{'12' * 20}")


def test_watch__endpoint_that_is_dead__ends_with_2(settings: Settings) -> None:
    dead = Settings("http://127.0.0.1:9", settings.record_path, settings.password_path)

    run(dead, "node", "watch", "--once", expected=(2,))


def test_status__peer_that_has_died__is_unreachable_and_says_who_is_asked_instead(
    settings: Settings, network: Network, watched: Watched
) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        found = run_json(settings, "node", "status", "--url", watched.monitor, expected=(0, 1))
        [peer] = [each for each in found["peers"] if each["node_id"] == watched.dead.node_id]
        if peer["state"] == "unreachable" and peer["live"]["substitutes"]:
            break
        assert time.monotonic() < deadline, peer

    assert network.node_id in peer["live"]["substitutes"]
    assert peer["live"]["silent_seconds"] >= 4.0
    assert f"node {watched.dead.node_id}: expected an answer" in peer["live"]["stream"]["error"]
    assert "peer_unreachable" in [each["reason"] for each in found["attention"]]
    text = run(settings, "node", "status", "--url", watched.monitor, expected=(1,))
    assert f"node {watched.dead.node_id} does not answer" in text
    assert f"node {watched.dead.node_id}: asked in its place: " in text


def test_check__one_node_is_dead__says_so_and_what_the_living_one_holds(
    settings: Settings, watched: Watched
) -> None:
    found = run_json(settings, "client", "check", expected=(1,))

    nodes = {each["node_id"]: each for each in found["nodes"]}
    living, dead = nodes[watched.living.node_id], nodes[watched.dead.node_id]
    # On a busy machine an answer may take more than a second, which is said.
    told = {each["type"] for each in living["findings"]} - {"SLOW_NODE"}
    assert (living["error"], told) == (None, set())
    assert living["highest"][str(watched.living.node_id)] == PUBLISHED
    assert [each["type"] for each in dead["findings"]] == ["UNRESPONSIVE_NODE"]


def test_check__a_node_that_nobody_registered__is_told(settings: Settings) -> None:
    with pytest.raises(CommandFailed, match=r"NODE: expected one of the registry: .*, got 7777"):
        run(settings, "client", "check", "7777")


# The last one of the module: it disables a node.
def test_check__a_disabled_node__is_shown_and_not_asked(
    settings: Settings, network: Network, watched: Watched, tmp_path: Path
) -> None:
    owner = tmp_path / "owner.keystore"
    write_keystore(owner, PASSWORD, COUNCIL)
    node_id = str(watched.dead.node_id)
    run(settings, "registry", "disable", node_id, "--broadcast", "--keystore", owner)

    found = run_json(settings, "client", "check", node_id)

    [node] = found["nodes"]
    assert (node["error"], node["findings"]) == ("it is disabled", [])

"""The page of a running node in a real browser, and the commands that show the same."""

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
from urllib.request import urlopen

import pytest

from localnet.accounts import COUNCIL, write_keystore
from localnet.commands import Settings, run, run_json
from localnet.network import Network, StartedNode, start_node
from support import publishes
from support.live_page import LivePage, picture
from support.network.api import Api

from .conftest import PASSWORD, monitor_in

SECONDS = 30.0
CHANCE = random.Random(31)
SCREENS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]


@dataclass
class Watched:
    """A node with a monitor."""

    node: StartedNode
    database: Path
    monitor: str

    def publish(self) -> None:
        api = Api(self.node.url)
        client = publishes.welcome(CHANCE.randbytes(32))
        api.publish(publishes.paid(client, self.node.node_id))
        api.close()


@pytest.fixture(scope="module")
def watched(
    settings: Settings, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    """A node beside the network's own, which is its peer."""
    folder = tmp_path_factory.mktemp("watched")
    owner = folder / "owner.keystore"
    write_keystore(owner, PASSWORD, COUNCIL)
    with ExitStack() as stack:
        database = folder / "node.db"
        node = start_node(stack, settings, folder, owner, database, "--listen", "127.0.0.1:0")
        yield Watched(node, database, monitor_in(folder / "node.log"))


@pytest.fixture(scope="module")
def page(watched: Watched) -> Iterator[LivePage]:
    with LivePage(f"{watched.monitor}/status") as page:
        page.wait("#pulse-text", "live")
        yield page


def test_page__of_a_node_with_a_peer__shows_both_and_their_streams(
    watched: Watched, network: Network, page: LivePage
) -> None:
    page.wait(f'#peers tr[data-key="node {network.node_id}"] .badge', "open")

    seen = page.read()

    assert seen["complaints"] == []
    assert {url.removeprefix(watched.monitor) for url in seen["requests"]} <= {
        "/status",
        "/status.json",
        "data:,",
    }
    assert seen["headings"] == [
        f"Node {watched.node.node_id}",
        *("Originators", "Peers", "Storage", "Gaps and repairs", "Streams", "Reorgs"),
        "Reports of misbehavior",
    ]
    # The first look at what fills the database follows the first step of the indexer.
    page.wait("#storage-text", "growth is not known yet, and has room for ")
    originators = {row[0]: row for row in page.rows("originators")}
    assert originators["0, the chain"][1] == "chain"
    assert originators[str(watched.node.node_id)][1] == "own"
    assert originators[str(network.node_id)][1] == "peer"
    peers = {row[0]: row for row in page.rows("peers")}
    assert peers[f"node {network.node_id}"][1:3] == ["open", network.node_url]


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_page__on_any_screen__fits_it_and_can_be_read(
    page: LivePage, width: int, scheme: str
) -> None:
    seen = page.look(width, scheme, picture(f"{width}-{scheme}"))

    assert seen["overflow"] == []
    assert seen["contrasts"] == []
    assert seen["background"] == {"light": "rgb(246, 248, 250)", "dark": "rgb(13, 20, 29)"}[scheme]


def test_page__tables__name_their_heads_and_themselves(page: LivePage) -> None:
    seen = page.read()

    assert set(seen["heads"]) == {"row", "col"}
    assert seen["unnamed"] == 0


def test_page__something_is_published__shows_it_without_replacing_rows(
    watched: Watched, page: LivePage
) -> None:
    page.remember("originators")
    before = _held(page, watched)

    watched.publish()
    own = f'#originators tr[data-key="{watched.node.node_id}"]'
    page.wait(f"{own} td:nth-child(3)", str(before + 1))

    assert _held(page, watched) == before + 1
    assert page.is_kept()


def _held(page: LivePage, watched: Watched) -> int:
    [row] = [row for row in page.rows("originators") if row[0] == str(watched.node.node_id)]
    return int(row[2])


def test_page__node_that_is_away__says_since_when_and_comes_back(
    watched: Watched, page: LivePage
) -> None:
    os.kill(watched.node.pid, signal.SIGSTOP)
    try:
        page.wait("#pulse-text", "not answering since ")
        assert page.rows("originators")
    finally:
        os.kill(watched.node.pid, signal.SIGCONT)

    page.wait("#pulse-text", "live")


def test_monitor__status__is_bounded_by_headers_and_never_kept(watched: Watched) -> None:
    with urlopen(f"{watched.monitor}/", timeout=SECONDS) as answer:
        policy, kind = answer.headers["Content-Security-Policy"], answer.headers["Content-Type"]

    assert kind == "text/html; charset=utf-8"
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    with urlopen(f"{watched.monitor}/status.json", timeout=SECONDS) as answer:
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_status__by_url_and_by_database__tells_the_same_but_for_the_live_parts(
    settings: Settings, watched: Watched, network: Network
) -> None:
    live, peer = asked(settings, network, "--url", watched.monitor)
    deadline = time.monotonic() + SECONDS
    while live["live"]["failing_checks"] or peer["state"] != "open":
        assert time.monotonic() < deadline, live["attention"]
        live, peer = asked(settings, network, "--url", watched.monitor)
    stored, unknown = asked(settings, network, "--database", watched.database)

    assert live["live"]["peer_streams"] >= 1
    assert (live["live"]["own_log_waits"], peer["live"]["stream"]["error"]) == (None, None)
    assert (stored["live"], unknown["state"]) == (None, "unknown")
    for name in ("node_id", "public_key", "chain_id", "is_enabled"):
        assert live[name] == stored[name]
    held = {each["originator_id"]: each["held_id"] for each in live["originators"]}
    assert held == {each["originator_id"]: each["held_id"] for each in stored["originators"]}
    # Nodes of other tests, which have ended, need attention.
    reasons = {each["reason"] for each in live["attention"]}
    assert reasons <= {"peer_unreachable", "peer_failing"}
    text = run(settings, "node", "status", "--url", watched.monitor, expected=(0, 1))
    assert f"node         {watched.node.node_id}, enabled" in text
    assert network.node_url in text


def asked(
    settings: Settings, network: Network, *options: str | Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A snapshot, and in it the network's own node as a peer."""
    found = run_json(settings, "node", "status", *options, expected=(0, 1))
    [peer] = [each for each in found["peers"] if each["node_id"] == network.node_id]
    return found, peer

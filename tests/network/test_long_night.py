"""An operator's night: three real nodes, payers, and every fault of the trial in turn.

``CHAINKIT_NIGHT_HOURS`` shortens it: a simulated hour is six minutes (``night_alarms``), and each
fault comes at least once.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import cycle
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

import grpc
import pytest

from chainkit.misbehavior.signed import take_apart
from chainkit.protocol.originated_envelope import parse_originated
from localnet.commands import start_command
from localnet.postgres import Postgres
from support.chains.chain import Deployment
from support.command_line import run
from support.network import skewed_clock
from support.network.night_alarms import TICK_SECONDS, Scrapes
from support.network.real_nodes import RealNetwork, RealNode, becomes, real_network, until
from support.network.tcp_proxy import Gate, Mode
from support.seeds import only_in_soak

HOURS = float(os.environ.get("CHAINKIT_NIGHT_HOURS", "8"))
SECONDS_OF_AN_HOUR = 3600 / TICK_SECONDS
HEALS_SECONDS = 300.0

pytestmark = [
    only_in_soak,
    pytest.mark.timeout(3 * 3600),
    pytest.mark.skipif(
        not shutil.which("promtool"), reason="needs promtool, of Debian's prometheus"
    ),
]


@dataclass
class Night:
    """Three nodes, the third one on PostgreSQL, and the payers of each."""

    network: RealNetwork
    chain: Gate
    """Before the chain's endpoint."""
    postgres: Postgres
    patch: pytest.MonkeyPatch
    acknowledged: dict[int, list[bytes]] = field(default_factory=dict)
    ended: Event = field(default_factory=Event)

    @property
    def nodes(self) -> list[RealNode]:
        return self.network.nodes

    def clock(self, node: RealNode) -> Path:
        """The file with the seconds by which a node's clock is ahead."""
        return self.network.folder / f"seconds-{self.nodes.index(node)}"

    def set_clock(self, node: RealNode, seconds: int) -> None:
        path = self.clock(node)
        path.with_suffix(".new").write_text(str(seconds))
        os.replace(path.with_suffix(".new"), path)

    def add(self, database: str | None) -> None:
        path = self.network.folder / f"seconds-{len(self.nodes)}"
        path.write_text("0")
        self.patch.setenv("SKEWED_CLOCK", str(path))
        self.network.add(database)

    def restart(self, node: RealNode) -> None:
        self.patch.setenv("SKEWED_CLOCK", str(self.clock(node)))
        node.restart()

    def pays(self, node: RealNode) -> None:
        """Publish through a node until the night ends; refusals are part of it."""
        while not self.ended.wait(0.5):
            # A connection that was closed under the call says so by ValueError.
            with suppress(grpc.RpcError, ValueError):
                self.acknowledged.setdefault(node.node_id, []).extend(node.publish())

    def heals(self, but_for: Collection[str] = ()) -> bool:
        """Wait until no node needs attention, and all hold what was acknowledged by now.

        ``but_for`` are reasons that go on for a while after their cause.
        """
        told = {each.node_id: list(self.acknowledged.get(each.node_id, ())) for each in self.nodes}

        def is_well() -> bool:
            needs = any(each.attention() - {*but_for} for each in self.nodes)
            return not needs and all(self.is_equal(each, some) for each, some in told.items())

        return becomes(is_well, HEALS_SECONDS)

    def is_equal(self, originator_id: int, told: Sequence[bytes]) -> bool:
        """Whether all hold the same of an originator, and all of this."""
        first, *others = (holds_all(each, originator_id) for each in self.nodes)
        shortest = min(len(each) for each in (first, *others))
        same = all(each[:shortest] == first[:shortest] for each in others)
        return same and set(told) <= set(first[:shortest])


def holds_all(node: RealNode, originator_id: int) -> list[bytes]:
    """Return all that a node has of an originator, page by page."""
    found: list[bytes] = []
    last = 0
    while page := node.api.query(originators=[originator_id], cursor={originator_id: last}):
        found += page
        last = parse_originated(page[-1]).envelope.sequence_id
    return found


@pytest.fixture(scope="module")
def night(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Night]:
    folder = tmp_path_factory.mktemp("night")
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        paths = [str(Path(skewed_clock.__file__).parent), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        # A fork of a warm process is past its start, and with it past the clock.
        patch.setattr("localnet.commands.start_command", start_command)
        postgres = stack.enter_context(Postgres(fsync="off"))
        network = stack.enter_context(real_network(local_deployment, folder))
        chain = network.proxy.gate()
        chain.target = urlsplit(network.settings.rpc_url).port or 0
        network.settings = replace(network.settings, rpc_url=chain.url)
        made = Night(network, chain, postgres, patch)
        for database in (None, None, postgres.new_database()):
            made.add(database)
        for node in made.nodes:
            node.listens()
        for node in made.nodes:
            node.originates()
        assert made.heals()
        yield made


@contextmanager
def payers(night: Night) -> Iterator[None]:
    threads = [Thread(target=night.pays, args=(node,)) for node in night.nodes]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        night.ended.set()
        for each in threads:
            each.join()


def shows(node: RealNode, reason: str, seconds: float) -> None:
    """Wait until the node itself says what is wrong, and let it go on for so long."""
    until(lambda: reason in node.attention(), HEALS_SECONDS)
    time.sleep(seconds)


def twin(night: Night) -> None:
    first = night.nodes[1]
    night.patch.setenv("SKEWED_CLOCK", str(night.clock(first)))
    found = night.network.twin(first)
    found.listens()
    shows(first, "twin_found", 3)
    found.kill()


def clock(night: Night) -> None:
    """The clock is set while the node runs, and set right again."""
    night.set_clock(night.nodes[0], 600)
    shows(night.nodes[0], "clock_wrong", 10)
    night.set_clock(night.nodes[0], 0)


def no_space(night: Night) -> None:
    node = night.nodes[1]
    limits = node.folder / "limits.json"
    limits.write_text(json.dumps({"storage": {"free_bytes": 2**62}}))
    node.kill()
    node.options = ("--limits", str(limits))
    night.restart(node)
    shows(node, "storage_short", 20)
    node.kill()
    node.options = ()
    night.restart(node)


def no_database(night: Night) -> None:
    night.postgres.stop()
    time.sleep(15)
    night.postgres.start()


def disabled(night: Night) -> None:
    node = night.nodes[1]
    night.network.set_enabled(node.node_id, is_enabled=False)
    shows(node, "disabled", 40)
    night.network.set_enabled(node.node_id, is_enabled=True)


def no_chain(night: Night) -> None:
    night.chain.set(Mode.CUT)
    for node in night.nodes:
        shows(node, "endpoint_failing", 0)
    time.sleep(15)
    night.chain.set(Mode.OPEN)


def paused(night: Night) -> None:
    os.kill(night.nodes[2].pid, signal.SIGSTOP)
    try:
        # Each scrape waits for the node in vain: ten of them make the minute of IndexerDown.
        time.sleep(45)
    finally:
        os.kill(night.nodes[2].pid, signal.SIGCONT)


def parted(night: Night) -> None:
    night.network.partition(night.nodes[:1])
    shows(night.nodes[0], "peer_unreachable", 10)
    night.network.set_all(Mode.OPEN)


def restored(night: Night) -> None:
    """An older copy of the database is put in the place of the node's own."""
    node = night.nodes[0]
    copy = night.network.folder / "older.db"
    copy.unlink(missing_ok=True)
    assert run("index", "backup", "--database", node.database, "--out", str(copy)).code == 0
    time.sleep(5)
    node.kill()
    for each in Path(node.database).parent.glob("node.db*"):
        each.unlink()
    shutil.copy(copy, node.database)
    night.restart(node)


def killed(night: Night) -> None:
    """A node is away so long that all others call for a person."""
    node = night.nodes[0]
    node.kill()
    shows(night.nodes[1], "peer_unreachable", 75)
    night.restart(node)


FAULTS: list[Callable[[Night], None]] = [
    *(twin, clock, no_space, no_database, disabled),
    *(no_chain, paused, parted, restored, killed),
]

MUST_RING = {
    "NodeTwinFound": {1},
    "NodeClockWrong": {0},
    "NodeStorageShort": {1},
    "DatabaseUnavailable": {2},
    "NodeNotEnabled": {1},
    "AllEndpointsOut": {0, 1, 2},
    "IndexerDown": {0, 2},
    "NodePeersUnreachable": {1, 2},
    "NodeRefusesPublishes": {0, 1, 2},
}
"""Alarms, and the places of the nodes where each rings."""

MAY_RING = {
    *("NodeOverloaded", "NodeOwnLogWaits", "NotReady", "IndexerDown", "NodePeersUnreachable"),
    "DiskNearlyFull",
}
"""Alarms that a busy machine causes, or that a fault causes where it takes longer.

The disk is the machine's: what others write in a minute is an hour's writing to the rules.
"""


def test_night__every_fault_in_turn__all_is_equal_and_the_right_alarms_ring(
    night: Night, tmp_path: Path
) -> None:
    ends = time.monotonic() + HOURS * SECONDS_OF_AN_HOUR
    scrapes = Scrapes(lambda: {str(each.node_id): each.monitor for each in night.nodes})
    said: list[str] = []
    try:
        with payers(night):
            time.sleep(20)
            quiet_ticks = scrapes.ticks
            for number, fault in enumerate(cycle(FAULTS)):
                if number >= len(FAULTS) and time.monotonic() >= ends:
                    break
                begin = scrapes.ticks
                fault(night)
                is_well = night.heals(but_for=["twin_found", "publishes_refused"])
                said.append(f"{fault.__name__}: ticks {begin} to {scrapes.ticks}")
                assert is_well, f"{said}: {list(map(state, night.nodes))}"
        assert night.heals()
    finally:
        scrapes.close()

    check_accusations(night)
    for node in night.nodes:
        assert run("node", "verify", "--database", node.database).code == 0
    check_alarms(night, scrapes.rang(tmp_path), quiet_ticks, said)


def state(node: RealNode) -> str:
    """Return why a node needs attention, or why it does not say."""
    try:
        return str(node.attention())
    except OSError as error:
        return str(error)


def check_accusations(night: Night) -> None:
    """No node accuses another one of more than its silence, and nobody has a proof."""
    for node in night.nodes:
        reports, after_ns = [], 0
        while page := node.api.query_reports(after_ns):
            reports += [take_apart(each).report for each in page]
            after_ns = page[-1].server_time_ns
        assert [each for each in reports if not each.misbehavior.is_liveness] == []
        assert not any(each["proved"] for each in node.hosts())


def check_alarms(
    night: Night, rang: dict[str, dict[str, list[int]]], quiet_ticks: int, said: list[str]
) -> None:
    places = {str(each.node_id): place for place, each in enumerate(night.nodes)}
    found = {
        alarm: {places[node]: ticks for node, ticks in nodes.items()}
        for alarm, nodes in rang.items()
    }
    early = {alarm for alarm, nodes in found.items() if min(map(min, nodes.values())) < quiet_ticks}
    faults = [f"{alarm} rang before the first fault" for alarm in early - MAY_RING]
    for alarm, nodes in MUST_RING.items():
        if silent := nodes - found.get(alarm, {}).keys():
            faults.append(f"{alarm} was silent at nodes {sorted(silent)}")
    for alarm, nodes in found.items():
        if alarm not in MAY_RING and (wrong := nodes.keys() - MUST_RING.get(alarm, set())):
            when = {node: (min(nodes[node]), max(nodes[node])) for node in wrong}
            faults.append(f"{alarm} rang at {when}")
    assert not faults, "\n".join([*faults, *said])

"""Nodes in processes of their own on a chain of their own, each behind a gate of one proxy."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import grpc

from chainkit.signatures import SigningKey
from localnet.accounts import COUNCIL, development_account, write_keystore
from localnet.commands import Background, Settings
from localnet.network import wait_for_entry
from localnet.private_file import write_private
from support import publishes
from support.chains.chain import Deployment, LocalChain, dev_address, redeployed
from support.network.api import Api
from support.network.tcp_proxy import Gate, Mode, TcpProxy
from support.solidity import encode_call

SECONDS = 60.0
PASSWORD = "nodes"
FIRST_ACCOUNT = 20
"""The nodes' keys are those of development accounts that nothing else uses."""
CHANCE = random.Random(54)
_TWINS = count()


def becomes(is_so: Callable[[], bool], seconds: float = SECONDS) -> bool:
    """Wait until something is so, and tell whether it was in time.

    A node that is away meanwhile answers later.
    """
    deadline = time.monotonic() + seconds
    while True:
        with suppress(grpc.RpcError, OSError):
            if is_so():
                return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)


def until(is_so: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Wait until something is so, as ``becomes`` does; fail where it is not in time."""
    assert becomes(is_so, seconds)


@dataclass
class RealNode:
    """A node's place in the registry, its key and database, which outlive its processes."""

    settings: Settings
    folder: Path
    node_id: int
    key: SigningKey
    gate: Gate
    database: str
    options: tuple[str, ...] = ()
    has_record: bool = True
    roots: bytes | None = None
    """The authority of its certificate, PEM; None for plain text."""
    service: Background | None = None
    api: Api = field(init=False)
    monitor: str = field(init=False)

    @property
    def pid(self) -> int:
        assert self.service is not None
        return self.service.pid

    @property
    def record(self) -> Path:
        return self.folder / "sequence-record"

    def begin(self) -> None:
        """Start a process; it needs some time until it answers."""
        record = ("--sequence-record", self.record) if self.has_record else ()
        self.service = Background(
            self.settings,
            self.folder / "node.log",
            *("node", "run", "--keystore", self.folder / "node.keystore"),
            *("--database", self.database, "--grpc", "127.0.0.1:0", "--listen", "127.0.0.1:0"),
            *("--stale-seconds", "0", "--poll-seconds", "0.2", "--log-format", "json"),
            *record,
            *self.options,
        )
        self.service.start()

    def listens(self) -> None:
        """Wait until it answers, and connect its gate."""
        assert self.service is not None
        monitor = wait_for_entry(self.service, lambda each: each.get("event") == "listening")
        self.monitor = f"http://{monitor['address']}"
        port = wait_for_entry(self.service, lambda each: each.get("event") == "node_listening")
        self.gate.target = int(port["port"])
        host = "http://127.0.0.1" if self.roots is None else "https://localhost"
        self.api = Api(f"{host}:{port['port']}", is_own_connection=True, roots=self.roots)

    def originates(self) -> None:
        """Wait until it knows its own log."""
        self.said("own_log_known")

    def said(self, event: str, **fields: Any) -> None:
        """Wait until its log has an event with such fields, since its start."""
        assert self.service is not None
        wanted = {"event": event, **fields}
        wait_for_entry(self.service, lambda entry: wanted.items() <= entry.items())

    def events(self, event: str) -> int:
        """Count an event in its log, since its start."""
        assert self.service is not None
        entries = map(json.loads, self.service.log_lines())
        return sum(each.get("event") == event for each in entries)

    def restart(self) -> None:
        """Start a process again, and wait until it answers."""
        self.begin()
        self.listens()

    def kill(self) -> None:
        """End its process at once, as a power cut does, if there is one."""
        if self.service is not None:
            os.kill(self.pid, signal.SIGKILL)
            self.service.stop()
            self.service = None
            self.api.close()

    def welcome(self) -> bytes:
        """A welcome for another installation each time, paid to it."""
        return publishes.paid(publishes.welcome(CHANCE.randbytes(32)), self.node_id)

    def publish(self, count: int = 1) -> list[bytes]:
        """Publish some welcomes, one after the other."""
        return [self.api.publish(self.welcome())[0] for _ in range(count)]

    def holds(self, originator_id: int) -> list[bytes]:
        """Return what it has of an originator."""
        return self.api.query(originators=[originator_id])

    def peer_streams(self) -> int:
        """Return how many streams of other nodes' envelopes it has open."""
        return self.number("chainkit_node_peer_streams_open")

    def number(self, sample: str) -> int:
        """Return a sample of a scrape, by its name with its labels as the text has them."""
        lines = self._monitored("/metrics").decode().splitlines()
        [value] = [each.rpartition(" ")[2] for each in lines if each.startswith(f"{sample} ")]
        return int(float(value))

    def substitutes(self, originator: RealNode) -> set[int]:
        """Return which nodes it asks for another one's envelopes, by its status."""
        peers = json.loads(self._monitored("/status.json"))["peers"]
        [live] = [each["live"] for each in peers if each["node_id"] == originator.node_id]
        if live is None:
            raise TimeoutError("the node's event loop had no turn")
        return set(live["substitutes"])

    def comparisons(self) -> dict[int, str | None]:
        """Return the error of its last comparison with each node it compared logs with."""
        peers = json.loads(self._monitored("/status.json"))["peers"]
        found = {each["node_id"]: (each["live"] or {}).get("comparison") for each in peers}
        return {node_id: each["error"] for node_id, each in found.items() if each is not None}

    def attention(self) -> set[str]:
        """Return its reasons for a person to look at it, by its status."""
        return {each["reason"] for each in json.loads(self._monitored("/status.json"))["attention"]}

    def stream_error(self, peer: RealNode) -> str:
        """Return why its stream of another node is not open, by its status."""
        peers = json.loads(self._monitored("/status.json"))["peers"]
        [live] = [each["live"] for each in peers if each["node_id"] == peer.node_id]
        return str(live and live["stream"] and live["stream"]["error"])

    def metric(self, name: str) -> float:
        """Return one of its numbers."""
        lines = self._monitored("/metrics").decode().splitlines()
        [value] = [each.split()[1] for each in lines if each.startswith(f"chainkit_node_{name} ")]
        return float(value)

    def failing_checks(self) -> set[str]:
        """Return what makes it not ready, by its status."""
        live = json.loads(self._monitored("/status.json"))["live"]
        return {each["name"] for each in live["failing_checks"]} if live else set()

    def hosts(self) -> list[dict[str, int]]:
        """Return who hosts reports about it, by its status."""
        live = json.loads(self._monitored("/status.json"))["live"]
        return list(live["hosts"]) if live else []

    def _monitored(self, path: str) -> bytes:
        with urllib.request.urlopen(f"{self.monitor}{path}", timeout=SECONDS) as answer:
            return bytes(answer.read())


@dataclass
class RealNetwork:
    """A chain, a proxy, and the nodes that were added so far."""

    chain: LocalChain
    settings: Settings
    proxy: TcpProxy
    folder: Path
    stack: ExitStack
    nodes: list[RealNode] = field(default_factory=list)

    def add(
        self,
        database: str | None = None,
        *options: str,
        roots: bytes | None = None,
        has_record: bool = True,
        before: Callable[[str], str] = lambda url: url,
    ) -> RealNode:
        """Register a node with a new key, and start its process; by default on SQLite.

        ``roots`` are those of its certificate for localhost, which the options name. ``before``
        takes its gate's URL, and gives that of a proxy before the gate.
        """
        number = len(self.nodes)
        folder = self.folder / str(number)
        folder.mkdir()
        account = FIRST_ACCOUNT + number
        write_keystore(folder / "node.keystore", PASSWORD, account)
        key = SigningKey(bytes(development_account(account).key))
        gate = self.proxy.gate()
        of_gate = before(gate.url)
        url = of_gate if roots is None else of_gate.replace("http://127.0.0.1", "https://localhost")
        place = database or str(folder / "node.db")
        node_id = self.register(key, url)
        node = RealNode(
            self.settings, folder, node_id, key, gate, place, options, has_record, roots
        )
        self.nodes.append(node)
        self.stack.callback(node.kill)
        node.begin()
        return node

    def twin(self, node: RealNode) -> RealNode:
        """Start a second process with a node's key, on a database of its own, at no URL."""
        folder = self.folder / f"twin-{next(_TWINS)}"
        folder.mkdir()
        shutil.copy(node.folder / "node.keystore", folder)
        twin = replace(
            node, folder=folder, gate=self.proxy.gate(), database=str(folder / "node.db")
        )
        self.stack.callback(twin.kill)
        twin.begin()
        return twin

    def register(self, key: SigningKey, url: str) -> int:
        """Have the registry list a node; return its id."""
        return self.chain.add_node(dev_address(COUNCIL), key.public_key, url)

    def set_enabled(self, node_id: int, is_enabled: bool) -> None:
        """Enable or disable a node in the registry."""
        data = encode_call("updateHealth(uint256,bool)", node_id, is_enabled)
        registry = self.chain.record.node_registry.address
        receipt = self.chain.endpoint.receipt(self.chain.send(registry, data, COUNCIL))
        assert receipt is not None and receipt["status"] == "0x1", receipt

    def keys(self) -> dict[int, bytes]:
        """Return the keys of all nodes that were added, by their ids."""
        return {each.node_id: each.key.public_key for each in self.nodes}

    def partition(self, group: Sequence[RealNode]) -> None:
        """Cut all connections between some nodes and all others."""
        rest = [each for each in self.nodes if each not in group]
        for one in group:
            for other in rest:
                self.cut(one, other)

    def cut(self, one: RealNode, other: RealNode) -> None:
        """Cut the connections between two nodes, in both directions."""
        one.gate.set(Mode.CUT, other.pid)
        other.gate.set(Mode.CUT, one.pid)

    def set_all(self, mode: Mode) -> None:
        """Treat all connections so."""
        for each in self.nodes:
            each.gate.set(mode)


@contextmanager
def real_network(deployment: Deployment, folder: Path) -> Iterator[RealNetwork]:
    """Start a chain and a proxy; nodes are added to it, and end with the block."""
    with ExitStack() as stack:
        chain = stack.enter_context(redeployed(deployment, folder))
        settings = Settings(chain.url, chain.record_path, folder / "password")
        write_private(settings.password_path, PASSWORD + "\n")
        proxy = stack.enter_context(TcpProxy())
        yield RealNetwork(chain, settings, proxy, folder, stack)

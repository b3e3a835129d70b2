"""The nodes that are measured, as operators start them, but without limits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import psycopg

from benchmarks.index.chain import BenchmarkChain
from benchmarks.node.builds import Build
from localnet.accounts import COUNCIL, write_keystore
from localnet.anvil import Anvil
from localnet.deployment import PROJECT
from localnet.network import GATEWAY_LISTENS, gateway_command, start_node, start_service
from localnet.private_file import write_private
from localnet.process import end, end_with_parent, interruptions_deferred

_PASSWORD: Final = "bench"
_UNLIMITED: Final = (
    *("requests_per_second", "streams_of_one", "streams", "filter_bytes_of_one", "filter_bytes"),
    *("calls", "answer_bytes_per_second"),
)
_GATEWAY_LIMITS: Final = (
    *("--envelopes-per-second", "1000000", "--burst", "1000000"),
    *("--bytes-per-second", str(1 << 30)),
)
_STORED: Final = """
SELECT count(*), coalesce(sum(octet_length(envelope) + %s), 0)
FROM envelopes WHERE originator_id = %s
"""
_FRAME_BYTES: Final = 3
"""Tag and length in a frame, of an envelope of some hundred bytes."""


class Stored(NamedTuple):
    """Envelopes of a node's own log."""

    envelopes: int
    streamed_bytes: int
    """In the frames of a stream."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A running node, with a chain of its own."""

    node_id: int
    node_port: int
    pid: int
    database: str
    """The node's, as its options take it."""
    chain: BenchmarkChain
    """It mines when it is told to."""
    build: Build
    folder: Path

    def stored(self) -> Stored:
        """Return what it has originated, on PostgreSQL."""
        with psycopg.connect(of_libpq(self.database)) as connection:
            row = connection.execute(_STORED, (_FRAME_BYTES, self.node_id)).fetchone()
        assert row is not None
        return Stored(*map(int, row))


@dataclass(frozen=True, slots=True)
class MeasuredGateway:
    """A running gateway that publishes on a measured node."""

    port: int
    pid: int
    node: Measured


@contextmanager
def measured_node(database: str, folder: Path, build: Build) -> Iterator[Measured]:
    """Run anvil and a node; both end with the block, and the node's files are in a new folder."""
    folder.mkdir()
    with ExitStack() as stack:
        anvil = stack.enter_context(Anvil())
        settings = build.settings(anvil.url, folder)
        write_private(settings.password_path, _PASSWORD + "\n")
        chain = BenchmarkChain(anvil, settings.record_path)
        anvil.request("evm_setAutomine", True)
        owner = folder / "owner.keystore"
        write_keystore(owner, _PASSWORD, COUNCIL)
        limits = folder / "limits.json"
        limits.write_text(json.dumps({"strangers": dict.fromkeys(_UNLIMITED, 0)}))
        options = ("--limits", str(limits), "--websocket", anvil.url.replace("http", "ws", 1))
        node = start_node(stack, settings, folder, owner, database, *options)
        anvil.request("evm_setAutomine", False)
        port = int(node.url.rpartition(":")[2])
        yield Measured(node.node_id, port, node.pid, database, chain, build, folder)


@contextmanager
def measured_gateway(node: Measured) -> Iterator[MeasuredGateway]:
    """Run a gateway of the node's build, without limits on its clients, until the block ends."""
    settings = node.build.settings(node.chain.url, node.folder)
    at = f"{node.node_id}=http://127.0.0.1:{node.node_port}"
    options = (*_GATEWAY_LIMITS, "--node", at)
    with ExitStack() as stack:
        gateway = gateway_command(settings, node.folder, _PASSWORD, *options)
        yield MeasuredGateway(start_service(stack, gateway, GATEWAY_LISTENS), gateway.pid, node)


def of_libpq(url: str) -> str:
    """Return a database's URL as libpq takes it."""
    return url.replace("postgresql+psycopg", "postgresql")


@contextmanager
def floor_server() -> Iterator[int]:
    """Run the floors' server until the block ends; yield its port."""
    with interruptions_deferred():
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.node.floor_server"],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=end_with_parent,
        )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        end(process)

"""The node that is measured, as its operator starts it, but without limits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.index.chain import BenchmarkChain
from localnet.accounts import COUNCIL, write_keystore
from localnet.anvil import Anvil
from localnet.commands import Settings
from localnet.deployment import PROJECT
from localnet.network import start_node
from localnet.postgres import Postgres
from localnet.private_file import write_private
from localnet.process import end, end_with_parent, interruptions_deferred

_PASSWORD: Final = "bench"
_UNLIMITED: Final = (
    *("requests_per_second", "streams_of_one", "streams", "filter_bytes_of_one", "filter_bytes"),
    *("calls", "answer_bytes_per_second"),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """A running node and the server of the floors."""

    node_id: int
    node_port: int
    pid: int
    floor_port: int
    database: str
    """The node's, as its options take it."""
    database_url: str
    """The same as libpq takes it, where the node is on PostgreSQL."""
    floor_url: str
    """A database beside it, for the floors' own tables."""
    chain: BenchmarkChain
    """It mines when it is told to."""


@contextmanager
def measured_node(folder: Path, on_sqlite: bool = False) -> Iterator[Measured]:
    """Run anvil, PostgreSQL, a node and the floors' server; all end with the block.

    The node is on PostgreSQL, or on SQLite.
    """
    with ExitStack() as stack:
        anvil = stack.enter_context(Anvil())
        server = stack.enter_context(Postgres())
        settings = Settings(anvil.url, folder / "deployment.json", folder / "password")
        write_private(settings.password_path, _PASSWORD + "\n")
        chain = BenchmarkChain(anvil, settings.record_path)
        anvil.request("evm_setAutomine", True)
        owner = folder / "owner.keystore"
        write_keystore(owner, _PASSWORD, COUNCIL)
        database = str(folder / "node.db") if on_sqlite else server.new_database()
        limits = folder / "limits.json"
        limits.write_text(json.dumps({"strangers": dict.fromkeys(_UNLIMITED, 0)}))
        options = ("--limits", str(limits), "--websocket", anvil.url.replace("http", "ws", 1))
        node = start_node(stack, settings, folder, owner, database, *options)
        anvil.request("evm_setAutomine", False)
        yield Measured(
            node.node_id,
            int(node.url.rpartition(":")[2]),
            node.pid,
            _floor_server(stack),
            database,
            _of_libpq(database),
            _of_libpq(server.new_database()),
            chain,
        )


def _of_libpq(url: str) -> str:
    return url.replace("postgresql+psycopg", "postgresql")


def _floor_server(stack: ExitStack) -> int:
    with interruptions_deferred():
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.node.floor_server"],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=end_with_parent,
        )
    stack.callback(end, process)
    assert process.stdout is not None
    return int(process.stdout.readline())

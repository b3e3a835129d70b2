"""The node that is measured: on PostgreSQL, as its operator starts it, but without limits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from localnet.accounts import COUNCIL, write_keystore
from localnet.anvil import Anvil
from localnet.commands import Settings
from localnet.deployment import PROJECT, deploy
from localnet.network import start_node
from localnet.postgres import Postgres
from localnet.private_file import write_private
from localnet.process import end, end_with_parent, interruptions_deferred

_PASSWORD: Final = "bench"
_UNLIMITED: Final = (
    *("--requests-per-second", "0", "--streams-per-address", "0", "--streams", "0"),
    *("--answer-bytes-per-second", "0", "--calls", "0"),
    *("--filter-bytes", "0", "--filter-bytes-per-address", "0"),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """A running node and the server of the floors."""

    node_id: int
    node_port: int
    floor_port: int
    database_url: str
    """libpq's, for the floors' own table."""


@contextmanager
def measured_node(folder: Path) -> Iterator[Measured]:
    """Run anvil, PostgreSQL, a node and the floors' server; all end with the block."""
    with ExitStack() as stack:
        anvil = stack.enter_context(Anvil())
        server = stack.enter_context(Postgres())
        settings = Settings(anvil.url, folder / "deployment.json", folder / "password")
        write_private(settings.password_path, _PASSWORD + "\n")
        deploy(anvil.url, settings.record_path)
        owner = folder / "owner.keystore"
        write_keystore(owner, _PASSWORD, COUNCIL)
        database = server.new_database()
        node_id, url = start_node(stack, settings, folder, owner, database, *_UNLIMITED)
        plain = server.new_database().replace("postgresql+psycopg", "postgresql")
        yield Measured(node_id, int(url.rpartition(":")[2]), _floor_server(stack), plain)


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

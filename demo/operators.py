"""The three node operators of the story: each has a key, a database and an indexer or a node."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from chainkit.types import BlockReference
from localnet.commands import Background, CommandFailed, Settings, run, run_json
from localnet.ports import free_port

CATCH_UP_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.2


@dataclass
class Operator:
    """An operator with a node."""

    name: str
    folder: Path
    settings: Settings
    node_id: int = 0
    indexer: Background | None = None
    port: int = field(default_factory=free_port)
    """The port of the node, also after a restart."""

    @property
    def keystore(self) -> Path:
        """Where the node's key is."""
        return self.folder / "key.json"

    @property
    def database(self) -> Path:
        """Where the node's envelopes are."""
        return self.folder / "node.db"

    @property
    def export(self) -> Path:
        """The folder that the auditor gets."""
        return self.folder / "export"

    def make_key(self) -> dict[str, str]:
        """Make the node's key; return its public key and address."""
        self.folder.mkdir()
        keys: dict[str, str] = run_json(self.settings, "key", "new", "--keystore", self.keystore)
        return keys

    @property
    def url(self) -> str:
        """The URL of the node."""
        return f"http://127.0.0.1:{self.port}"

    def make_node(self) -> Background:
        """Return a node, which follows the chain and serves once started."""
        self.indexer = Background(
            self.settings,
            self.folder / "node.log",
            *("node", "run", "--database", self.database, "--keystore", self.keystore),
            # Nobody mines while nothing happens: the chain is not stale.
            *("--stale-seconds", "0", "--grpc", f"127.0.0.1:{self.port}"),
            *("--log-format", "json"),
        )
        return self.indexer

    def holds(self, envelope: bytes) -> bool:
        """Return whether the node's database has an envelope."""
        with closing(sqlite3.connect(self.database)) as connection:
            query = "SELECT count(*) FROM envelopes WHERE envelope = ?"
            (count,) = connection.execute(query, (envelope,)).fetchone()
        return bool(count)

    def reports(self) -> list[dict[str, Any]]:
        """Return the reports of misbehavior that the node hosts."""
        reports: list[dict[str, Any]] = run_json(
            self.settings, "node", "reports", "--database", self.database
        )
        return reports

    def wait_for(self, head: BlockReference) -> None:
        """Wait until the cursor is at the head, by hash."""
        assert self.indexer is not None
        wanted = {"number": head.number, "hash": "0x" + head.hash.hex()}
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while not self.database.exists() or (cursor := self.status()["cursor"]) != wanted:
            self.indexer.check()
            if time.monotonic() > deadline:
                limit = f"within {CATCH_UP_SECONDS:.0f} s"
                raise CommandFailed(f"index of {self.name}", f"cursor {wanted}", cursor, limit)
            time.sleep(_POLL_SECONDS)

    def status(self) -> dict[str, Any]:
        """Return what the node's database holds."""
        status: dict[str, Any] = run_json(
            self.settings, "index", "status", "--database", self.database
        )
        return status

    def enabled_nodes(self) -> list[int]:
        """Return the ids of the nodes that the operator's node is to follow."""
        status = run_json(
            self.settings,
            *("index", "status", "--database", self.database),
            *("--rpc", self.settings.rpc_url, "--deployment", self.settings.record_path),
        )
        ids: list[int] = status["registry"]["enabled_nodes"]
        return ids

    def write_export(self) -> None:
        """Write what the auditor gets."""
        run(
            self.settings,
            *("index", "export", "--database", self.database, "--out", self.export),
        )

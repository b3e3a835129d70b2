"""The three node operators of the story: each has a key, a database and an indexer or a node."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from chainkit.types import BlockReference
from localnet.commands import Background, CommandFailed, Settings, run, run_json

CATCH_UP_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.2


@dataclass
class Operator:
    """Somebody who runs a node."""

    name: str
    folder: Path
    settings: Settings
    node_id: int = 0
    indexer: Background | None = None

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

    def make_indexer(self) -> Background:
        """Return the indexer, which follows the chain once it is started."""
        self.indexer = Background(
            self.settings,
            self.folder / "indexer.log",
            *("index", "run", "--database", self.database, "--keystore", self.keystore),
        )
        return self.indexer

    def make_node(self) -> Background:
        """Return a node, which does what the indexer does, and serves."""
        self.indexer = Background(
            self.settings,
            self.folder / "node.log",
            *("node", "run", "--database", self.database, "--keystore", self.keystore),
            # Nobody mines while nothing happens: the chain is not stale.
            *("--stale-seconds", "0", "--grpc", "127.0.0.1:0", "--log-format", "json"),
        )
        return self.indexer

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

    def wait_for_registration(self) -> None:
        """Wait until the node has read in the registry that it is enabled."""
        assert self.indexer is not None
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while self.node_id not in ((self.status()["registry"] or {}).get("enabled_nodes") or ()):
            self.indexer.check()
            if time.monotonic() > deadline:
                limit = f"within {CATCH_UP_SECONDS:.0f} s"
                raise CommandFailed(f"registry of {self.name}", f"node {self.node_id}", "no", limit)
            time.sleep(_POLL_SECONDS)

    def status(self) -> dict[str, Any]:
        """Return what the node's database holds."""
        status: dict[str, Any] = run_json(
            self.settings, "index", "status", "--database", self.database
        )
        return status

    def enabled_nodes(self) -> list[int]:
        """Return the ids of the nodes that this one is to follow, as its operator sees them."""
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

"""The network while it runs: nodes, a gateway, real clients, and a node that begins to lie."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from chainkit.terminal.keystore import load_signing_key
from demo.cheat import LiveLie, lie
from demo.operators import Operator
from demo.summary import count_codes
from demo.talk import READ
from localnet.accounts import write_keystore
from localnet.commands import Background, CommandFailed, Settings, run_json
from localnet.deployment import PROJECT
from localnet.network import GATEWAY_ACCOUNT, publish_welcome, start_service, wait_for_entry
from localnet.process import run_to_end
from localnet.storage import start_storage

SECONDS: Final = 60.0
"""Seconds that other nodes may take to notice."""

_POLL_SECONDS: Final = 0.3


class LiveNetwork:
    """The operators' nodes, and their clients."""

    def __init__(
        self, settings: Settings, folder: Path, stack: ExitStack, operators: list[Operator]
    ) -> None:
        """Take the operators, whose nodes are not started yet; the stack stops what is started."""
        self._settings = settings
        self._folder = folder
        self._stack = stack
        self._operators = operators
        self.gateway_url = ""
        self.storage_url = ""
        self.told: list[LiveLie] = []

    def start_nodes(self) -> None:
        """Start a node for each operator, before the registry lists it."""
        for operator in self._operators:
            node = operator.make_node()
            start_service(self._stack, node, "node_listening")

    def start_gateway(self, password: str) -> None:
        """Start a gateway, once each node has found its entry and may originate.

        A storage service, to which it gives uploads, starts before.
        """
        for operator in self._operators:
            assert operator.indexer is not None
            wait_for_entry(operator.indexer, lambda entry: entry.get("event") == "own_log_known")
        keystore = self._folder / "gateway.keystore"
        write_keystore(keystore, password, GATEWAY_ACCOUNT)
        storage = start_storage(self._stack, self._settings, self._folder)
        self.storage_url = storage.url
        gateway = Background(
            self._settings,
            self._folder / "gateway.log",
            *("gateway", "run", "--keystore", keystore, "--journal", self._folder / "gateway.db"),
            *("--grpc", "127.0.0.1:0", "--log-format", "json", *storage.gateway_options),
        )
        port = start_service(self._stack, gateway, "gateway_listening")
        self.gateway_url = f"http://127.0.0.1:{port}"

    def talk(self, text: str) -> list[str]:
        """Let one real client write to another; return all texts that the other one reads."""
        clients = self._folder / "clients"
        clients.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "demo.talk", self.gateway_url, str(clients), text]
        done = run_to_end(command, os.environ, PROJECT)
        if done.returncode != 0:
            raise CommandFailed("real clients", "exit 0", done.returncode, done.stderr[-2000:])
        read: list[str] = json.loads((clients / READ).read_text())
        return read

    def lie(self, liar: Operator) -> None:
        """Let an operator falsify its own log, and serve the false log to all others."""
        published = publish_welcome(liar.url, liar.node_id, b"\6" * 32)
        for operator in self._operators:
            _until(f"{operator.name} to hold it", lambda: operator.holds(published))  # noqa: B023
        assert liar.indexer is not None
        liar.indexer.stop()
        key = load_signing_key(liar.keystore, self._settings.password_path)
        self.told = lie(liar.database, liar.node_id, key)
        start_service(self._stack, liar.make_node(), "node_listening")

    def wait_until_caught(self, liar: Operator) -> dict[str, int]:
        """Wait until the honest nodes host a proof of each lie; return how many, by type."""
        told = count_codes(each.misbehavior for each in self.told)
        honest = [each for each in self._operators if each is not liar]

        def caught() -> dict[str, int]:
            proofs = {
                (row["type"], json.dumps(row["evidence"]))
                for operator in honest
                for row in operator.reports()
                if row["node_id"] == liar.node_id and row["weight"] == "proved"
            }
            return count_codes(kind for kind, _ in proofs)

        _until("the honest nodes to catch every lie", lambda: caught() == told)
        return caught()

    def check_as_client(self) -> dict[int, dict[str, int]]:
        """Let a client compare all nodes; return the proved failures of each node, by type."""
        checked = run_json(
            self._settings,
            *("client", "check", "--evidence", self._folder / "client-evidence"),
            expected=(0, 1),
        )
        return {
            node["node_id"]: count_codes(
                each["type"] for each in node["findings"] if each["weight"] == "proved"
            )
            for node in checked["nodes"]
        }

    def wait_until_followed_elsewhere(self, disabled: Operator) -> None:
        """Wait until the other nodes ask each other for the envelopes of a disabled node."""
        for operator in self._operators:
            if operator is not disabled:
                assert operator.indexer is not None
                wait_for_entry(
                    operator.indexer,
                    lambda entry: (
                        entry.get("event") == "peer_stream_open"
                        and entry["originator_id"] == disabled.node_id
                        and entry["peer_id"] != disabled.node_id
                    ),
                )

    def gather(self, folder: Path) -> dict[str, Any]:
        """Let the council ask all nodes for their reports."""
        gathered: dict[str, Any] = run_json(
            self._settings, "council", "gather", folder, expected=(0, 1)
        )
        return gathered


def _until(what: str, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise CommandFailed("wait", what, f"nothing within {SECONDS:g} s")
        time.sleep(_POLL_SECONDS)

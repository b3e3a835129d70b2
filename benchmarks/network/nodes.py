"""Real nodes on a private chain, whose databases can be filled while they do not run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from chainkit.signatures import SigningKey
from chainkit.terminal.keystore import load_signing_key
from localnet.accounts import COUNCIL, development_account, write_keystore
from localnet.anvil import Anvil
from localnet.commands import Background, Settings, run_json
from localnet.deployment import deploy
from localnet.network import start_service, wait_for_entry
from localnet.ports import free_port
from localnet.private_file import write_private

PASSWORD: Final = "bench"


@dataclass(frozen=True, slots=True)
class Registry:
    """A private chain with the contracts, as its owner uses it."""

    anvil: Anvil
    settings: Settings
    folder: Path

    def add(self, public_key: str, url: str) -> int:
        """List a node, and return its id."""
        added = run_json(
            self.settings,
            *("registry", "add", "--public-key", public_key, "--http-address", url),
            *("--holder", development_account(COUNCIL).address, "--no-check-url"),
            *("--broadcast", "--keystore", self.folder / "owner.keystore"),
        )
        return int(added["node_id"])


@contextmanager
def new_registry(folder: Path) -> Iterator[Registry]:
    """Run anvil with the contracts until the block ends; the folder is made."""
    folder.mkdir()
    with Anvil() as anvil:
        settings = Settings(anvil.url, folder / "deployment.json", folder / "password")
        write_private(settings.password_path, PASSWORD + "\n")
        deploy(anvil.url, settings.record_path)
        write_keystore(folder / "owner.keystore", PASSWORD, COUNCIL)
        yield Registry(anvil, settings, folder)


class BenchmarkNode:
    """A node's process, which may end and start again at the same port."""

    def __init__(self, stack: ExitStack, registry: Registry, name: str) -> None:
        """Make its key. Each process that it starts ends with the stack."""
        self._stack = stack
        self._registry = registry
        self._folder = registry.folder / name
        self._folder.mkdir()
        self._keystore = self._folder / "node.keystore"
        keys = run_json(registry.settings, "key", "new", "--keystore", self._keystore)
        self._public_key: str = keys["public_key"]
        self._process: Background | None = None
        self.database = self._folder / "node.db"
        self.port = free_port()
        self.node_id = 0

    @property
    def key(self) -> SigningKey:
        """The key that signs its envelopes."""
        return load_signing_key(self._keystore, self._registry.settings.password_path)

    @property
    def pid(self) -> int:
        """The process that runs."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._process = Background(
            self._registry.settings,
            self._folder / "node.log",
            *("node", "run", "--keystore", self._keystore, "--database", self.database),
            *("--grpc", f"127.0.0.1:{self.port}", "--stale-seconds", "0", "--log-format", "json"),
        )
        start_service(self._stack, self._process, "node_listening")

    def stop(self) -> None:
        """End it, if it was started, so that its database may be opened to write."""
        if self._process is not None:
            self._process.stop()

    def join(self, port: int | None = None) -> None:
        """Have the registry list it, by its own port or by one in front of it."""
        url = f"http://127.0.0.1:{port or self.port}"
        self.node_id = self._registry.add(self._public_key, url)

    def wait_for(self, event: str, **fields: Any) -> None:
        """Wait until it has logged an event with some fields since its last start."""
        assert self._process is not None
        wanted = {"event": event, **fields}
        wait_for_entry(self._process, lambda entry: wanted.items() <= entry.items())

    def count_of(self, event: str) -> int:
        """Count the lines of an event since its last start."""
        assert self._process is not None
        return sum(f'"{event}"' in line for line in self._process.log_lines())

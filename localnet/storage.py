"""A storage service for message history on a private network."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from localnet.commands import Background, Settings
from localnet.network import start_service
from localnet.private_file import write_private


@dataclass(frozen=True, slots=True)
class StartedStorage:
    """A storage service, and the key of its grants."""

    url: str
    grant_key: Path

    @property
    def gateway_options(self) -> tuple[str, ...]:
        """The options by which a gateway gives uploads to its clients."""
        return ("--backups-url", self.url, "--grant-key", str(self.grant_key))


def start_storage(stack: ExitStack, settings: Settings, folder: Path) -> StartedStorage:
    """Start a storage service with a new key; files of an earlier run expire by themselves."""
    grant_key = folder / "grant.key"
    grant_key.unlink(missing_ok=True)
    write_private(grant_key, secrets.token_hex(32) + "\n")
    service = Background(
        settings,
        folder / "storage.log",
        *("backups", "serve", "--folder", folder / "storage", "--http", "127.0.0.1:0"),
        *("--grant-key", grant_key, "--log-format", "json"),
    )
    port = start_service(stack, service, "backups_listening")
    return StartedStorage(f"http://127.0.0.1:{port}", grant_key)

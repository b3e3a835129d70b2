"""A client's home folder, and how to open the client.

::

    async with opened(HomeFolder(Path("ann")), password) as client:
        await client.messenger.sync()
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from chainkit.contracts.deployment import record_subject
from chainkit.contracts.followed import read_followed_deployment
from chainkit.documents.fields import read_json
from chainkit.documents.files import moved_into_place
from chainkit.errors import ConfigurationError
from chainkit.nodes.gateway import Gateway
from chainkit.protocol.retention import LEAST_RETENTION_DAYS, MAXIMUM_RETENTION_DAYS
from chainkit.terminal.connection import open_recorded_chain
from chainkit.text.node_url import grpc_target
from chainkit_client.exchange.exchange import HistoryExchange
from chainkit_client.exchange.origin import origin_of
from chainkit_client.messenger import Messenger
from chainkit_client.mls.engine import MlsEngine
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.network.chain import Chain
from chainkit_client.storage.store import Store

_DATABASE: Final = "client.db"
_SETTINGS: Final = "settings.json"
_WALLET: Final = "wallet.keystore"
_OPTIONAL: Final = {"retention_days": (int, "a number of days"), "storage": (str, "a URL")}
_MOST_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Settings:
    """The network that a client uses, and the wallet of its user."""

    gateway: str
    """URL of a gateway that needs no key."""
    rpc: str = field(repr=False)
    """URL of a JSON-RPC endpoint; it may contain a key."""
    deployment: str
    """Absolute path of the deployment record."""
    address: str
    """The wallet's address, in lower case."""
    retention_days: int | None = None
    """For how many days nodes keep the texts; None for the gateway's policy."""
    storage: str | None = None
    """URL of the storage service for history between own devices; None keeps history off."""

    def __post_init__(self) -> None:
        """Raise ConfigurationError where a URL or the days cannot be used."""
        grpc_target("gateway", self.gateway)
        if self.storage is not None:
            origin_of(self.storage, "storage service")
        days = self.retention_days
        if days is not None and not LEAST_RETENTION_DAYS <= days <= MAXIMUM_RETENTION_DAYS:
            expected = f"{LEAST_RETENTION_DAYS} to {MAXIMUM_RETENTION_DAYS} days"
            raise ConfigurationError("retention", expected, days)


@dataclass(frozen=True, slots=True)
class HomeFolder:
    """The folder of one installation, which `chainkit client init` makes."""

    home_path: Path

    @property
    def database_path(self) -> Path:
        """The client's database."""
        return self.home_path / _DATABASE

    @property
    def settings_path(self) -> Path:
        """The settings, which only the owner may read."""
        return self.home_path / _SETTINGS

    @property
    def wallet_path(self) -> Path:
        """The keystore of a wallet that `chainkit client init` made."""
        return self.home_path / _WALLET

    def make(self) -> None:
        """Make the folder, for the owner only. Raises ConfigurationError where that fails."""
        try:
            self.home_path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            got = os.strerror(error.errno or 0)
            subject = f"home {self.home_path}"
            raise ConfigurationError(subject, "a folder that can be made", got) from error

    def read_settings(self) -> Settings:
        """Return the settings. Raises ConfigurationError where the file is missing or malformed."""
        path = self.settings_path
        if not path.exists():
            expected = "a client's home: `chainkit client init` makes one"
            raise ConfigurationError(f"home {self.home_path}", expected, f"no {_SETTINGS}")
        subject = f"settings {path}"
        content = read_json(path, subject, _MOST_BYTES)
        names = sorted(Settings.__dataclass_fields__.keys() - _OPTIONAL.keys())
        if not isinstance(content, dict) or sorted(content.keys() - _OPTIONAL.keys()) != names:
            got = sorted(content) if isinstance(content, dict) else type(content).__name__
            raise ConfigurationError(subject, f"an object with {', '.join(names)}", got)
        for name, value in content.items():
            if name in _OPTIONAL:
                kind, expected = _OPTIONAL[name]
                if value is not None and type(value) is not kind:
                    got = type(value).__name__
                    raise ConfigurationError(f"{subject}: {name}", f"{expected}, or null", got)
            elif not isinstance(value, str):
                raise ConfigurationError(f"{subject}: {name}", "a text", type(value).__name__)
        return Settings(**content)

    def write_settings(self, settings: Settings) -> None:
        """Write the settings in one step. Raises ConfigurationError."""
        path = self.settings_path
        try:
            with moved_into_place(path) as partial:
                descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "w") as file:
                    json.dump(asdict(settings), file, indent=2, sort_keys=True)
                    file.write("\n")
        except OSError as error:
            got = os.strerror(error.errno or 0)
            subject = f"settings {path}"
            raise ConfigurationError(subject, "a file that can be written", got) from error


@dataclass(frozen=True, slots=True)
class Client:
    """The open parts of a client."""

    messenger: Messenger
    store: Store = field(repr=False)
    chain: Chain = field(repr=False)
    gateway: Gateway = field(repr=False)
    history: HistoryExchange = field(repr=False)
    engine: MlsEngine = field(repr=False)


@asynccontextmanager
async def opened(
    home: HomeFolder, password: str, settings: Settings | None = None
) -> AsyncIterator[Client]:
    """Open a client; make the database where there is none.

    ``settings`` replace the folder's settings. Raises ConfigurationError, StoreError, and
    ChainError where the endpoint does not answer, or serves another chain.
    """
    settings = home.read_settings() if settings is None else settings
    chain = await asyncio.to_thread(connect_chain, settings)
    store = Store.open(home.database_path, password)
    try:
        async with opened_on(store, chain, settings, home.home_path) as client:
            yield client
    finally:
        store.close()


@asynccontextmanager
async def opened_on(
    store: Store, chain: Chain, settings: Settings, folder: Path
) -> AsyncIterator[Client]:
    """Open a client on a database, which the caller closes; ``folder`` takes nameless files."""
    with NodeEngine() as engine:
        gateway = Gateway(settings.gateway)
        async with Messenger(store, engine, chain, gateway, settings.retention_days) as messenger:
            history = HistoryExchange(
                messenger, store, gateway, settings.storage, folder, engine.close
            )
            yield Client(messenger, store, chain, gateway, history, engine)


def connect_chain(settings: Settings) -> Chain:
    """Connect to the endpoint of a client's settings; as ``chain_of``."""
    return chain_of(settings.rpc, Path(settings.deployment))


def chain_of(rpc_url: str, deployment_path: Path) -> Chain:
    """Connect to an endpoint, and check that it serves the deployment's chain.

    Raises ConfigurationError where clients cannot order what the record's contracts emit.
    """
    endpoint, record, _ = open_recorded_chain(rpc_url, deployment_path)
    deployment = read_followed_deployment(deployment_path)
    deployment.contracts_by_kind(record_subject(deployment_path))
    return Chain(endpoint, record, frozenset(deployment.originator_ids))

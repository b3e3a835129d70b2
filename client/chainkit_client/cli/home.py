"""The home folder of a client: its database, its settings, and the wallet that was made for it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import click

from chainkit.documents.fields import read_json
from chainkit.documents.files import moved_into_place
from chainkit.errors import ConfigurationError
from chainkit.terminal.keystore import read_password
from chainkit.terminal.options import file_option, gathered, several
from chainkit.text.node_url import grpc_target

_DATABASE: Final = "client.db"
_SETTINGS: Final = "settings.json"
_WALLET: Final = "wallet.keystore"
_MOST_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Settings:
    """The network that a client uses, and whose it is."""

    gateway: str
    """URL; a gateway that needs no key."""
    rpc: str = field(repr=False)
    """URL of a JSON-RPC endpoint; it may contain a key."""
    deployment: str
    """Absolute path of the deployment record."""
    address: str
    """The wallet's, in lower case."""

    def __post_init__(self) -> None:
        """Raise ConfigurationError where the gateway's URL cannot be used."""
        grpc_target("gateway", self.gateway)


@dataclass(frozen=True, slots=True)
class Home:
    """A home folder as a command is given it."""

    home_path: Path
    password_path: Path | None

    @property
    def database_path(self) -> Path:
        """The client's database."""
        return self.home_path / _DATABASE

    @property
    def settings_path(self) -> Path:
        """Its settings, which its owner alone may read."""
        return self.home_path / _SETTINGS

    @property
    def wallet_path(self) -> Path:
        """The keystore of a wallet that was made for it."""
        return self.home_path / _WALLET

    def make(self) -> None:
        """Make the folder, for its owner alone. Raises ConfigurationError where that fails."""
        try:
            self.home_path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            got = os.strerror(error.errno or 0)
            subject = f"home {self.home_path}"
            raise ConfigurationError(subject, "a folder that can be made", got) from error

    def password(self, confirm: bool = False) -> str:
        """Return the client's password, asking for it where there is no file."""
        return read_password(self.password_path, confirm)

    def read_settings(self) -> Settings:
        """Return the settings. Raises ConfigurationError where there are none, or others."""
        path = self.settings_path
        if not path.exists():
            expected = "a client's home: `chainkit client init` makes one"
            raise ConfigurationError(f"home {self.home_path}", expected, f"no {_SETTINGS}")
        subject = f"settings {path}"
        content = read_json(path, subject, _MOST_BYTES)
        names = sorted(Settings.__dataclass_fields__)
        if not isinstance(content, dict) or sorted(content) != names:
            got = sorted(content) if isinstance(content, dict) else type(content).__name__
            raise ConfigurationError(subject, f"an object with {', '.join(names)}", got)
        for name, value in content.items():
            if not isinstance(value, str):
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


home_options = several(
    click.option(
        "--home",
        "home_path",
        envvar="CHAINKIT_CLIENT_HOME",
        show_envvar=True,
        required=True,
        metavar="FOLDER",
        type=click.Path(path_type=Path),
        help="The client's folder, as `chainkit client init` makes it.",
    ),
    file_option(
        "--password-file",
        "password_path",
        "CHAINKIT_PASSWORD_FILE",
        "File with the client's password; asked for where it is not given.",
    ),
    gathered(Home, "home"),
)
"""Hand a command its ``home``."""

"""The home folder as an option of commands, with the password that opens its database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from chainkit.nodes.trust import peer_ca_option
from chainkit.terminal.options import file_option, gathered, several
from chainkit.terminal.passwords import read_password
from chainkit_client.home import HomeFolder


@dataclass(frozen=True, slots=True)
class Home(HomeFolder):
    """A home folder, and the path of its password."""

    password_path: Path | None

    def password(self, confirm: bool = False) -> str:
        """Return the client's password; ask the user where there is no file."""
        return read_password(self.password_path, confirm)


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
    peer_ca_option,
    gathered(Home, "home"),
)
"""Pass ``home`` to a command."""

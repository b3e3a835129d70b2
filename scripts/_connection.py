"""Connects a script to the caller's chain, and reports a failure in a sentence."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

import click
from ape import networks
from ape.api import ProviderAPI
from ape.exceptions import ApeException
from ape.logging import LogLevel, logger

from chainkit.errors import ChainkitError
from chainkit.terminal.facts import folded

# Ape's own option falls back to a throw-away anvil, where nobody would find what was done, and
# answers a missing or dead network with pages of choices or a traceback.
network_option = click.option(
    "--network",
    "network",
    required=True,
    metavar="URL",
    help="JSON-RPC endpoint of the chain, or one of Ape's network choices.",
)


class Undone(click.ClickException):
    """The error of a script that could not do its task; it exits with 2, as `chainkit` does."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the error, folded on a terminal."""
        click.echo(folded(f"Error: {self.format_message()}"), file=file, err=True)


@contextmanager
def connected(network: str) -> Iterator[ProviderAPI]:
    """Yield the provider of a network; errors of chainkit and Ape become click's."""
    try:
        with ExitStack() as stack:
            # Ape announces the connection on standard output, where a caller may expect JSON.
            with logger.at_level(LogLevel.WARNING):
                provider = stack.enter_context(networks.parse_network_choice(network))
            yield provider
    except (ChainkitError, ApeException) as error:
        raise Undone(first_line(error)) from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error: Ape's errors continue with pages of suggestions."""
    line = str(error).strip().partition("\n")[0].removesuffix(" Options:")
    return line or type(error).__name__

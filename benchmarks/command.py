"""Interruptions, errors and exit codes of the commands of all benchmarks."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from chainkit.errors import ChainkitError
from localnet.process import interrupt


@contextmanager
def measuring() -> Iterator[None]:
    """End what was started where a signal comes; exit with 130 then, and with 2 on an error."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    try:
        yield
    except (ChainkitError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(130)

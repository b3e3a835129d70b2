"""Shows a person that a stage is still at work, and how long it took."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

_TICK_SECONDS: Final = 1.0
_CLEAR_LINE: Final = "\r\x1b[K"


@contextmanager
def stage(title: str, seconds: dict[str, float], name: str) -> Iterator[None]:
    """Announce a stage, count its seconds at a terminal, and record them under ``name``."""
    click.secho(title, bold=True)
    started = time.monotonic()
    done = threading.Event()
    ticker = threading.Thread(target=_tick, args=(started, done), daemon=True)
    if sys.stderr.isatty():
        ticker.start()
    try:
        yield
    finally:
        done.set()
        if ticker.is_alive():
            ticker.join()
        seconds[name] = time.monotonic() - started
        click.echo(f"       {seconds[name]:.1f} s")


def _tick(started: float, done: threading.Event) -> None:
    while not done.wait(_TICK_SECONDS):
        sys.stderr.write(f"{_CLEAR_LINE}       … {time.monotonic() - started:.0f} s")
        sys.stderr.flush()
    sys.stderr.write(_CLEAR_LINE)
    sys.stderr.flush()


def say(text: str) -> None:
    """Print one event of a stage."""
    if sys.stderr.isatty():
        sys.stderr.write(_CLEAR_LINE)
        sys.stderr.flush()
    click.echo(f"       {text}")

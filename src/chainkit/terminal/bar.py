"""A progress bar that only a person sees."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click


@contextmanager
def progress_bar(label: str, length: int) -> Iterator[Callable[[int], None]]:
    """Give a function that takes how much more of ``length`` is done."""
    if not sys.stderr.isatty():
        yield lambda more: None
        return
    bar: Any = click.progressbar(length=length, label=label, file=sys.stderr)
    with bar:
        yield bar.update

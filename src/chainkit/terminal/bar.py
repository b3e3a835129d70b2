"""A progress bar that only a person sees."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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


@contextmanager
def late_progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function that takes how much is done so far, and of how much.

    The bar is drawn when the function is first called: before, the length is not known.
    """
    with ExitStack() as stack:
        advance: Callable[[int], None] | None = None
        shown = 0

        def report(done: int, length: int) -> None:
            nonlocal advance, shown
            if advance is None:
                advance = stack.enter_context(progress_bar(label, length))
            advance(done - shown)
            shown = done

        yield report

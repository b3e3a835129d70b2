"""Reports a long wait to a person: on standard error, and only after some seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from chainkit.terminal.facts import echo_notice

FIRST_SECONDS: Final = 2.0
AGAIN_SECONDS: Final = 15.0


@contextmanager
def told_while_waiting(
    words: Callable[[], str], first_seconds: float = FIRST_SECONDS
) -> Iterator[None]:
    """Report what a slow block waits for: after some seconds, and again later."""
    ended = threading.Event()

    def tell() -> None:
        pause = first_seconds
        while not ended.wait(pause):
            echo_notice(words())
            pause = AGAIN_SECONDS

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()

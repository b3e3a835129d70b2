"""An event loop whose clock jumps to the next timer: no thread, no socket, no waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class _NoSelector:
    """Instead of waiting for sockets, time passes."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        assert timeout is not None, "all tasks wait for each other"
        self._loop.now += timeout
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs the same program in the same order each time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._selector = _NoSelector(self)

    def time(self) -> float:
        return self.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """Do at once what the product does in a thread."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        """Nobody calls from another thread."""


def run(program: Coroutine[Any, Any, Any]) -> Any:
    """Run a program on a loop of its own, to its end; tasks that are left are cancelled."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(program)

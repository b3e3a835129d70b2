"""Closes the parts of a process in order; a part that fails keeps no other part open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from inspect import iscoroutinefunction
from types import TracebackType
from typing import Any

from chainkit.service.log_lines import LogEvent, log_event


class ClosingSteps(AsyncExitStack):
    """Runs all steps at the end of its block, the last added first, and raises the first failure.

    A failure in the block is raised before a failure of a step. Later failures are logged.
    """

    def add(self, close: Callable[[], Any]) -> None:
        """Add a step. A plain function may block, so it runs in a thread."""

        async def run(
            kind: type[BaseException] | None,
            first: BaseException | None,
            trace: TracebackType | None,
        ) -> None:
            try:
                await (close() if iscoroutinefunction(close) else asyncio.to_thread(close))
            except Exception as error:
                if first is None:
                    raise
                if error is not first:
                    text = f"not closed: {type(error).__name__}: {error}"
                    log_event(LogEvent("not_closed", text, level=logging.ERROR))

        self.push_async_exit(run)

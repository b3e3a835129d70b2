"""An event loop in a thread of its own, for what a test starts and asks from another one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

_SECONDS = 10.0


class LoopThread:
    """Runs from its construction until it is ended."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something on the loop to its end."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS)

    def end(self, last: Coroutine[Any, Any, Any]) -> None:
        """Run something as the last, and end the thread."""
        self.do(last)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_SECONDS)
        self._loop.close()

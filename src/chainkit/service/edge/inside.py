"""Envoy's process, seen from the Python in it.

Envoy's main thread calls the application's start (ASGI lifespan), and listens once the start is
done. The command runs in a thread of its own, as it would outside; its event loop is the one that
Envoy's calls come in on. Python's main thread is Envoy's, so signals are waited for in a thread:
they were held back before the process became Envoy's. The process ends with the command's code.
"""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

from chainkit.service.edge.admin import EdgeAdmin
from chainkit.service.edge.calls import Receive, Scope, Send
from chainkit.service.edge.configuration import LISTENER, EdgePlaces
from chainkit.service.edge.handed import take_over
from chainkit.service.edge.secret_files import SecretFiles

Answer = Callable[[Scope, Receive, Send], Awaitable[None]]
_T = TypeVar("_T")

ENDING: Final = (signal.SIGINT, signal.SIGTERM)
"""The signals that end a service."""

_START_SECONDS: Final = 30.0
_FLUSH_SECONDS: Final = 1.0
_TURN_SECONDS: Final = 0.02
_GARBAGE: Final = (10_000, 1_000, 10)
"""Thresholds of the search for cycles of objects, which holds up every call. A search through so
many new objects takes some 5 ms; one through 100,000, which a thousand calls at once leave, took
80. Nearly nothing is found, so older objects are searched seldom."""


class Inside:
    """The process; there is one, where it is Envoy's."""

    present: Inside | None = None

    def __init__(self, command: Callable[[], None]) -> None:
        """Take the program's main function, which ends with SystemExit."""
        self._command = command
        handed = take_over()
        self._places = EdgePlaces(Path(handed.places), Path())
        self.admin = EdgeAdmin(self._places.admin)
        self.secrets = SecretFiles(self._places.secret)
        self._signals = _Signals()
        self._answer: Answer | None = None
        self.refused: Counter[str] = Counter()
        """Requests that were refused before their method saw them, by the reason."""

    async def application(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take ASGI's events."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif self._answer is not None:
            await self._answer(scope, receive, send)

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine on the loop of the calls, and return its result; in another thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def ended_by_signals(self) -> asyncio.Event:
        """Return an event that SIGINT and SIGTERM set; on the event loop's thread."""
        return self._signals.event()

    def count_refused(self, reason: str) -> None:
        """Count a request that was refused before its method saw it."""
        self.refused[reason] += 1

    async def listen(self, answer: Answer) -> int:
        """Let Envoy listen, hand it the calls, and return the port."""
        # All that the service needs is there now, and is not searched for garbage any more.
        gc.freeze()
        gc.set_threshold(*_GARBAGE)
        self._answer = answer
        self._listens.set()
        async with asyncio.timeout(_START_SECONDS):
            while True:
                port = await self._asked(self.admin.port)
                if port is not None:
                    return port
                await asyncio.sleep(_TURN_SECONDS)

    async def stop_listening(self) -> None:
        """Take no more connections."""
        await self._asked(self.admin.drain)

    async def flush(self) -> None:
        """Wait until Envoy has sent the ends of all calls, for a second at most."""
        pattern = f"http.{LISTENER}.downstream_rq_active"
        until = self._loop.time() + _FLUSH_SECONDS
        while self._loop.time() < until:
            active = await self._asked(lambda: self.admin.counters(pattern))
            if not active or not active.get("downstream_rq_active"):
                return
            await asyncio.sleep(_TURN_SECONDS)

    async def _asked(self, question: Callable[[], _T]) -> _T | None:
        """Return Envoy's answer; None where Envoy does not answer, yet or any more."""
        try:
            return await asyncio.to_thread(question)
        except OSError:
            return None

    async def _live(self, receive: Receive, send: Send) -> None:
        self._loop = asyncio.get_running_loop()
        self._listens = asyncio.Event()
        await receive()
        Inside.present = self
        threading.Thread(target=self._work, name="command").start()
        await self._listens.wait()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        # Envoy ends by itself: the command ends the process.
        self._signals.came()
        await asyncio.Event().wait()

    def _work(self) -> None:
        """Run the command, and end the process as the command would."""
        code = 1
        try:
            self._command()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            # The process ends before the thread could print it.
            traceback.print_exc()
        finally:
            shutil.rmtree(self._places.folder, ignore_errors=True)
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            # Envoy's own end would ask the application again, and end with another code.
            os._exit(code)


class _Signals:
    """Waits for SIGINT and SIGTERM, which all threads of this process hold back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._has_come = False
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        threading.Thread(target=self._wait, name="signals", daemon=True).start()

    def event(self) -> asyncio.Event:
        ended = asyncio.Event()
        with self._lock:
            if self._has_come:
                ended.set()
            self._waiting.append((asyncio.get_running_loop(), ended))
        return ended

    def came(self) -> None:
        with self._lock:
            self._has_come = True
            for loop, ended in self._waiting:
                loop.call_soon_threadsafe(ended.set)

    def _wait(self) -> None:
        while True:
            number = signal.sigwait(ENDING)
            if not self._waiting:
                # Nothing has begun that would have to be ended in order.
                os._exit(128 + number)
            self.came()

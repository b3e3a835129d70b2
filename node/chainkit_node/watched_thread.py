"""A thread beside the event loop, without which the process must not go on."""

from __future__ import annotations

import threading
from collections.abc import Callable


class WatchedThread:
    """Keeps the error that ended the thread, and reports the end."""

    def __init__(self, name: str, work: Callable[[], object], ended: Callable[[], object]) -> None:
        """Take the work, which must end on request, and a callback for the thread's end."""
        self._work = work
        self._ended = ended
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        """Begin the work."""
        self._thread.start()

    def finish(self) -> None:
        """Wait until the thread ends, if it was started. Raises the error that ended it."""
        if self._thread.ident is not None:
            self._thread.join()
        self.raise_error()

    def raise_error(self) -> None:
        """Raise the error that ended the thread, if there is one so far."""
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error
        finally:
            self._ended()

"""Child processes that never outlive their parent."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_INTERRUPTIONS: Final = (signal.SIGINT, signal.SIGTERM)
_GRACE_SECONDS: Final = 15.0


class _Deferral:
    """Whether the main thread holds interruptions back, and whether one came meanwhile."""

    active = False
    pending = False


def interrupt(number: int, frame: object) -> None:
    """Raise KeyboardInterrupt, at once or at the end of ``interruptions_deferred``: a handler.

    Python runs it in the main thread, whichever thread got the signal. An exception
    inside a hook of fork would be ignored there, and the interruption lost.
    """
    if _Deferral.active:
        _Deferral.pending = True
        return
    raise KeyboardInterrupt


@contextmanager
def interruptions_deferred() -> Iterator[None]:
    """Hold SIGINT and SIGTERM back until the end of the block.

    An interruption between the start of a child and its assignment to a name would lose the child.
    """
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTIONS)
    in_main_thread = threading.current_thread() is threading.main_thread()
    _Deferral.active |= in_main_thread
    try:
        yield
    finally:
        came = in_main_thread and _Deferral.pending
        if in_main_thread:
            _Deferral.active = _Deferral.pending = False
        # This may itself raise what the mask held back; earlier notes are forgotten by then.
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
        if came:
            raise KeyboardInterrupt


def end_with_parent() -> None:
    """Ask the kernel to end the child when its parent dies, even by SIGKILL (Linux only).

    Runs in the child, which also inherits the mask of ``interruptions_deferred``.
    """
    for number in _INTERRUPTIONS:
        # Our handler would only note what comes before the program is there.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTIONS)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def end(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> int:
    """Ask a process to end, insist after a while, and return its exit code."""
    if process.poll() is None:
        process.terminate()
    try:
        return process.wait(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def run_to_end(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path | None = None,
    typed: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a command with ``typed`` as its input, and return its output.

    An interruption also ends the command.
    """
    process = None
    try:
        with interruptions_deferred():
            process = subprocess.Popen(
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=end_with_parent,
            )
        output, errors = process.communicate(typed)
    except BaseException:
        if process is not None:
            end(process)
        raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)

"""The child process in which MLS is computed: started, asked, bounded and ended here.

It reads requests from its standard input and writes answers to its standard output, one at a time.
It has an empty environment, may read no file but its own program, and can open nothing once it has
started, so it has no network either. The end of its standard input ends it: it outlives nobody.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import IO, Final

from chainkit_client.mls.engine import EngineFailed
from chainkit_client.mls.frames import FrameReader, encode_frame

_SUBJECT: Final = "child process of the MLS engine"
_PIECE: Final = 1 << 20
_MOST_ERROR_BYTES: Final = 2000
"""Kept of its standard error: words of Node where it cannot start, or ends by a fault."""
_START_SECONDS: Final = 30.0
"""Ninety milliseconds, on an idle machine."""
_END_SECONDS: Final = 2.0


class ChildEnded(EngineFailed):
    """It ended instead of answering."""


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """The bounds of one child."""

    seconds: float = 30.0
    """For one call; a commit in the largest group takes a second."""
    heap_mebibytes: int = 512
    """For JavaScript's objects."""
    data_bytes: int = 2 << 30
    """For all its memory that can be written, buffers included."""


class Child:
    """One child process. It serves one thread at a time; after an error it is dead."""

    def __init__(self, node: Path, program: Path, limits: ChildLimits) -> None:
        """Start it, and wait until it says that it is ready. Raises EngineFailed."""
        self._limits = limits
        self._errors = b""
        self._waiting = memoryview(b"")
        """The part of a request that is not sent yet."""
        try:
            self._process = subprocess.Popen(
                [
                    str(node),
                    "--permission",
                    f"--allow-fs-read={program}",
                    f"--max-old-space-size={limits.heap_mebibytes}",
                    str(program),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={},
                cwd="/",
                # Ctrl-C is for the program in front of the user, which then ends its child.
                process_group=0,
            )
        except OSError as error:
            raise EngineFailed(_SUBJECT, "Node.js 22.13 or newer", error) from None
        self._input, self._output, self._error = map(_pipe, self._pipes())
        try:
            answer = self._exchange(_START_SECONDS)
            if answer[:1] != [b"ready"]:
                raise EngineFailed(_SUBJECT, "ready", "another first frame")
            self._limit()
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """False once it has ended, whatever ended it."""
        return self._process.poll() is None

    def ask(self, fields: Iterable[bytes]) -> list[bytes]:
        """Send a request and return its answer.

        Raises EngineFailed, then it is killed; ChildEnded where it ended by itself.
        """
        self.begin(fields)
        return self.finish()

    def begin(self, fields: Iterable[bytes]) -> None:
        """Send as much of a request as the pipe takes now; ``finish`` comes before the next one.

        Raises as ``ask`` does.
        """
        request = memoryview(encode_frame(fields))
        with self._killed_by_errors():
            self._waiting = request[self._write(request) :]

    def finish(self) -> list[bytes]:
        """Send what is left of a request, and return its answer; raises as ``ask`` does."""
        with self._killed_by_errors():
            return self._exchange(self._limits.seconds)

    def end(self) -> None:
        """Let it end by itself, and kill it where it does not."""
        with suppress(OSError):
            os.close(self._input)
        self._input = -1
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End it at once; again changes nothing."""
        self._process.kill()
        self._process.wait()
        self.forget()

    def forget(self) -> None:
        """Close this process's ends of the pipes."""
        for descriptor in (self._input, self._output, self._error):
            if descriptor >= 0:
                os.close(descriptor)
        self._input = self._output = self._error = -1

    def _pipes(self) -> tuple[IO[bytes], ...]:
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        return tuple(pipe for pipe in pipes if pipe is not None)

    def _limit(self) -> None:
        if sys.platform == "linux":
            # From here on it opens nothing, neither files nor sockets; a core would hold secrets.
            for limit, value in (
                (resource.RLIMIT_NOFILE, 0),
                (resource.RLIMIT_CORE, 0),
                (resource.RLIMIT_DATA, self._limits.data_bytes),
            ):
                resource.prlimit(self.pid, limit, (value, value))

    @contextmanager
    def _killed_by_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            # An answer that comes late, or in part, must never be taken for the next one.
            self.kill()
            raise

    def _exchange(self, seconds: float) -> list[bytes]:
        deadline = monotonic() + seconds
        reader = FrameReader()
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        poll.register(self._error, select.POLLIN)
        if self._waiting:
            poll.register(self._input, select.POLLOUT)
        while (left := deadline - monotonic()) > 0:
            for descriptor, _ in poll.poll(left * 1000):
                if descriptor == self._input:
                    self._waiting = self._waiting[self._write(self._waiting) :]
                    if not self._waiting:
                        poll.unregister(self._input)
                elif descriptor == self._error:
                    if not self._read_error():
                        poll.unregister(self._error)
                else:
                    piece = os.read(self._output, _PIECE)
                    if not piece:
                        raise ChildEnded(_SUBJECT, "an answer", self._end_of_life())
                    if (fields := reader.feed(piece)) is not None:
                        return fields
        raise EngineFailed(_SUBJECT, f"an answer within {seconds:g} s", "none")

    def _write(self, waiting: memoryview) -> int:
        try:
            return os.write(self._input, waiting)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            raise ChildEnded(_SUBJECT, "an answer", self._end_of_life()) from None

    def _read_error(self) -> bool:
        piece = os.read(self._error, _PIECE)
        self._errors = (self._errors + piece)[:_MOST_ERROR_BYTES]
        return bool(piece)

    def _end_of_life(self) -> str:
        """Return how it ended. Its output is closed, so it ends now or never."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self._process.kill()
        code = self._process.wait()
        with suppress(BlockingIOError):
            while self._read_error():
                pass
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        said = self._errors.decode(errors="replace").strip()
        return f"{how}: {said}" if said else how


def _pipe(pipe: IO[bytes]) -> int:
    # A number of our own: Popen's object closes its one whenever it is collected.
    descriptor = os.dup(pipe.fileno())
    pipe.close()
    os.set_blocking(descriptor, False)
    return descriptor

"""The child process that computes MLS: start, requests, limits and end.

The child reads requests from its standard input and writes answers to its standard output, one at a
time. The child has an empty environment, may read no file but its program, and can open nothing
after its start, so it has no network either. The end of its standard input ends the child.
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
"""The most bytes kept of the child's standard error, with Node's words about a fault."""
_START_SECONDS: Final = 30.0
"""A start takes ninety milliseconds on an idle machine."""
_END_SECONDS: Final = 2.0


class ChildEnded(EngineFailed):
    """The child ended instead of answering."""


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """The bounds of one child."""

    seconds: float = 30.0
    """The time for one call; a commit in the largest group takes a second."""
    heap_mebibytes: int = 512
    """The memory for JavaScript's objects."""
    data_bytes: int = 2 << 30
    """All writable memory of the child, buffers included."""


class Child:
    """One child process, for one thread at a time; an error kills the process."""

    def __init__(self, node: Path, program: Path, limits: ChildLimits) -> None:
        """Start the child, and wait until it reports that it is ready. Raises EngineFailed."""
        self._limits = limits
        self._errors = b""
        self._waiting = memoryview(b"")
        """The unsent part of a request."""
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
                # Ctrl-C goes to the client program, which then ends its child.
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
        """The child's process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """False once the child has ended, for any reason."""
        return self._process.poll() is None

    def ask(self, fields: Iterable[bytes]) -> list[bytes]:
        """Send a request and return its answer.

        Raises EngineFailed, after killing the child; ChildEnded where the child ended by itself.
        """
        self.begin(fields)
        return self.finish()

    def begin(self, fields: Iterable[bytes]) -> None:
        """Send as much of a request as the pipe takes now; call ``finish`` before the next request.

        Raises as ``ask`` does.
        """
        request = memoryview(encode_frame(fields))
        with self._killed_by_errors():
            self._waiting = request[self._write(request) :]

    def finish(self) -> list[bytes]:
        """Send the rest of a request, and return the answer; raises as ``ask`` does."""
        with self._killed_by_errors():
            return self._exchange(self._limits.seconds)

    def end(self) -> None:
        """Let the child end by itself, and kill a child that does not."""
        with suppress(OSError):
            os.close(self._input)
        self._input = -1
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill the child; a second call changes nothing."""
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
            # From here on the child opens no file or socket; a core dump would contain secrets.
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
            # A late or partial answer must never count as the next request's answer.
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
        """Return how the child ended; after closing its output, the child ends now or never."""
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
    # Duplicate the descriptor: Popen closes its own when Python collects the object.
    descriptor = os.dup(pipe.fileno())
    pipe.close()
    os.set_blocking(descriptor, False)
    return descriptor

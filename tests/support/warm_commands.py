"""`chainkit` commands as forks of one process that has imported what they need.

Python's own start and the imports take a second or two of each command. A fork has a process of
its own, the streams, the folder and the environment that it is given, and ends with its own exit
code; the installed program itself is what tests/e2e starts. The parent has a single thread, and
ends with whoever started it; so do the commands.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import IO, Any, Final, Self

import pytest

from localnet.commands import CHAINKIT
from support.project import TESTS

COMMANDS: Final = (
    "node run",
    "node serve",
    "node reports",
    "node status",
    "node watch",
    "gateway run",
    "backups serve",
    "client check",
    "index run",
    "index status",
    "key new",
    "registry add",
    "registry list",
)
"""The help of each imports what the command imports."""
LATE_IMPORTS: Final = (
    "alembic.command",
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
)
_DIES_WITH_PARENT: Final = 1


class WarmProcess:
    """A command that runs, with what the tests use of ``subprocess.Popen``."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stderr: IO[str] | None = None
        self._connection = connection

    def poll(self) -> int | None:
        """Return the exit code, or minus the signal; None while the command runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Raises TimeoutExpired."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                said = self._connection.recv(64)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0) from None
            self._connection.close()
            assert said, "the parent of all commands has ended"
            self.returncode = int(said)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[None, str]:
        """Read the errors to their end, and wait for the end of the command."""
        assert self.stderr is not None
        with self.stderr:
            said = self.stderr.read()
        self.wait(timeout)
        return None, said

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the command to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the command at once."""
        self.send_signal(signal.SIGKILL)


class WarmCommands:
    """The parent to fork from, which starts with the first command; use as a context manager."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._control: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._control is not None:
            self._control.close()
            self._parent.wait()

    def _open(self) -> socket.socket:
        with self._lock:
            if self._control is None:
                self._control = self._start_parent()
            return self._control

    def _start_parent(self) -> socket.socket:
        paths = [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._parent = subprocess.Popen(
                [sys.executable, "-m", "support.warm_commands", str(theirs.fileno())],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
                pass_fds=[theirs.fileno()],
            )
        return control

    @contextlib.contextmanager
    def in_localnet(self) -> Iterator[None]:
        """Start all commands of ``localnet.commands`` so."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("localnet.commands.run_to_end", self.run_to_end)
            patch.setattr("localnet.commands.start_command", self.start_command)
            yield

    def start_command(
        self, arguments: Sequence[str], environment: Mapping[str, str], log: IO[bytes]
    ) -> WarmProcess:
        """As ``localnet.commands.start_command`` does."""
        with open(os.devnull, "rb") as nothing:
            streams = (nothing.fileno(), log.fileno(), log.fileno())
            return self.start(arguments, environment, streams, own_session=True)

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[int],
        folder: Path | None = None,
        *,
        own_session: bool = False,
    ) -> WarmProcess:
        """Start `chainkit` with arguments; ``streams`` are its input, output and errors."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        wanted = [list(arguments), dict(environment), str(folder or Path.cwd()), own_session]
        with theirs:
            fds = [*streams, theirs.fileno()]
            socket.send_fds(self._open(), [json.dumps(wanted).encode()], fds)
        return WarmProcess(ours, int(ours.recv(64)))

    def run_to_end(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path | None = None,
        typed: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """As ``localnet.process.run_to_end`` does, for the installed `chainkit`."""
        program, *arguments = command
        assert program == CHAINKIT
        with contextlib.ExitStack() as stack:
            files = [os.memfd_create(name) for name in ("input", "output", "errors")]
            for each in files:
                stack.callback(os.close, each)
            os.write(files[0], typed.encode())
            os.lseek(files[0], 0, os.SEEK_SET)
            process = self.start(arguments, environment, files, folder)
            try:
                code = process.wait()
            except BaseException:
                process.kill()
                raise
            said = [_content(each) for each in files[1:]]
            return subprocess.CompletedProcess(list(command), code, *said)


def _content(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, encoding="utf-8", closefd=False) as file:
        return file.read()


@pytest.fixture(scope="session")
def warm_commands() -> Iterator[WarmCommands]:
    """The parent of a worker's commands, whichever folder the worker's tests use."""
    with WarmCommands() as warm:
        yield warm


# Not for the session: some folders start the installed program.
@pytest.fixture(scope="module")
def commands_are_warm(warm_commands: WarmCommands) -> Iterator[None]:
    with warm_commands.in_localnet():
        yield


# ---------------------------------------------------------------- in the parent


def _import_everything() -> None:
    for name in LATE_IMPORTS:
        import_module(name)
    for command in COMMANDS:
        sys.argv = ["chainkit", *command.split(), "--help"]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            import_module("chainkit.cli.main").main()


def _serve(control: socket.socket) -> None:
    """Fork for each request until nobody can send one; returns in a command's process alone."""
    # Nobody waits for those that wait for the commands.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, fds, _, _ = socket.recv_fds(control, 2**20, 4)
        if not data:
            sys.exit(0)
        assert len(os.listdir("/proc/self/task")) == 1
        if os.fork() == 0:
            control.close()
            _watch(json.loads(data), fds)
            return
        for each in fds:
            os.close(each)


def _watch(wanted: list[Any], fds: list[int]) -> None:
    """Start the command, send its process id and end; returns in the command's process alone."""
    _die_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        _become(wanted, fds)
        return
    for each in fds[:3]:
        os.close(each)
    os.write(fds[3], str(child).encode())
    ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    with contextlib.suppress(OSError):
        os.write(fds[3], str(code).encode())
        # The process id is nobody else's before the starter knows of the end, as with Popen.
        os.read(fds[3], 1)
    os._exit(0)


def _become(wanted: list[Any], fds: list[int]) -> None:
    arguments, environment, folder, own_session = wanted
    _die_with_parent(signal.SIGTERM)
    if own_session:
        os.setsid()
    for number, each in enumerate(fds[:3]):
        os.dup2(each, number)
    for each in fds:
        os.close(each)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    sys.argv = ["chainkit", *arguments]
    # Click names the program by it.
    sys.modules["__main__"].__package__ = None


def _die_with_parent(number: int) -> None:
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, number)


def _main(descriptor: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    _import_everything()
    # Objects that the collector leaves alone stay shared between the forks.
    gc.collect()
    gc.freeze()
    # In a group of its own: Ctrl-C of a terminal is for the starting process.
    os.setpgid(0, 0)
    _serve(socket.socket(fileno=descriptor))
    # As with the installed program: Python itself ends the process.
    import_module("chainkit.cli.main").main()


if __name__ == "__main__":
    _main(int(sys.argv[1]))

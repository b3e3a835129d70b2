"""A private PostgreSQL as a child process: on a free port, ended with its owner."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Self

import psycopg
from sqlalchemy import make_url

from chainkit.errors import ConfigurationError
from localnet.ports import free_port
from localnet.private_file import write_private
from localnet.process import end_with_parent, interruptions_deferred

_INSTALLED: Final = Path("/usr/lib/postgresql")
"""Debian's folder of servers, one folder per version, outside of the PATH."""

_UNPRIVILEGED: Final = ("postgres", "nobody")
_PR_SET_PDEATHSIG: Final = 1
_READY_SECONDS: Final = 60.0
_STOPPED_SECONDS: Final = 15.0
_SUPERUSER: Final = "postgres"


class Postgres:
    """A running server with an empty data folder; use as a context manager.

    The server listens on loopback alone, asks for a random password, and keeps its data safe as in
    production. ``settings`` are the server's, as in ``Postgres(max_connections="20")``.
    """

    def __init__(self, **settings: str) -> None:
        """Start the server on a free port and wait until it answers."""
        self._programs = _programs()
        self._account = _account()
        self._password = secrets.token_hex(16)
        self._settings = settings
        self._databases = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="chainkit-postgres-"))
        try:
            self._make_data_folder()
            self.port = free_port()
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __enter__(self) -> Self:
        """Return this object: the server runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the server and remove its data."""
        self.stop(immediately=True)
        shutil.rmtree(self.folder)

    @property
    def url(self) -> str:
        """SQLAlchemy URL of the maintenance database, with the password."""
        return self._url(_SUPERUSER)

    def new_database(self) -> str:
        """Make an empty database and return its SQLAlchemy URL, with the password."""
        self._databases += 1
        name = f"chainkit_{self._databases}"
        self.execute(f"CREATE DATABASE {name}")
        return self._url(name)

    def drop_database(self, url: str) -> None:
        """Remove a database that ``new_database`` made, even with connected clients."""
        self.execute(f"DROP DATABASE {make_url(url).database} WITH (FORCE)")

    def kill_connections(self) -> int:
        """Cut every client off, as an administrator can; return how many there were."""
        rows = self.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return len(rows)

    def execute(self, statement: str) -> list[Any]:
        """Run one statement as the superuser, by itself, and return its rows, if any."""
        with self._connect() as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        """Start the server again on the same port and data, and wait until it answers."""
        command = [str(self._programs / "postgres"), "-D", str(self._data)]
        options = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            # A socket in a shared folder would let other users of the machine connect.
            "unix_socket_directories": "",
            **self._settings,
        }
        command += [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with interruptions_deferred(), (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                # As with anvil: Ctrl-C is for the processes that still use the server.
                start_new_session=True,
                preexec_fn=_end_with_parent,
                **self._account,
            )
        self._wait_until_ready(self._process)

    def stop(self, immediately: bool = False) -> None:
        """Stop the server and its connections; ``immediately`` as in a crash, with a recovery."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGQUIT if immediately else signal.SIGINT)
        try:
            self._process.wait(_STOPPED_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def restart(self, immediately: bool = False) -> None:
        """Stop and start: every connection is lost."""
        self.stop(immediately)
        self.start()

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _url(self, database: str) -> str:
        address = f"127.0.0.1:{self.port}"
        return f"postgresql+psycopg://{_SUPERUSER}:{self._password}@{address}/{database}"

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=_SUPERUSER,
            password=self._password,
            dbname=_SUPERUSER,
            autocommit=True,
        )

    def _make_data_folder(self) -> None:
        password_file = self.folder / "password"
        write_private(password_file, self._password)
        if self._account:
            for path in (password_file, self.folder):
                os.chown(path, self._account["user"], self._account["group"])
        result = subprocess.run(
            [
                self._programs / "initdb",
                *("--pgdata", self._data, "--username", _SUPERUSER, "--pwfile", password_file),
                *("--auth", "scram-sha-256", "--encoding", "UTF8", "--no-locale"),
                # A database that nobody has used yet need not outlive a power cut.
                "--no-sync",
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            **self._account,
        )
        password_file.unlink()
        if result.returncode:
            raise RuntimeError(f"initdb: expected a data folder, got {result.stderr}")

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(psycopg.OperationalError):
                self._connect().close()
                return
            time.sleep(0.02)
        log = (self.folder / "log").read_text()
        raise RuntimeError(f"postgres: expected to answer, got {log}")


def _programs() -> Path:
    """Return the folder of the server's programs: pgserver's, else the newest of Debian."""
    package = find_spec("pgserver")
    folders = sorted(_INSTALLED.glob("*/bin"), key=lambda path: int(path.parent.name))
    if package is not None and package.origin is not None:
        folders.append(Path(package.origin).parent / "pginstall" / "bin")
    for folder in reversed(folders):
        if (folder / "postgres").exists():
            return folder
    raise ConfigurationError("postgres", "its programs (`make setup`)", "none")


def _account() -> dict[str, Any]:
    """Return the account to run the server as, for subprocess: the server refuses root."""
    if os.geteuid() != 0:
        return {}
    for name in _UNPRIVILEGED:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise ConfigurationError("postgres", "an unprivileged account to run it", "root alone")


def _end_with_parent() -> None:
    """As for every child here; but SIGQUIT ends a server at once: SIGTERM waits for clients.

    Runs after the change of user, which would make the kernel forget the setting.
    """
    end_with_parent()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)

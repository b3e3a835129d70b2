"""The real `chainkit` command, started by a fork of a process that has imported it already.

Each line on standard input is one life: arguments, and after how many seconds it is killed with
SIGKILL (null: never). Each line on standard output says how it ended. The parent has a single
thread.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from support.warm_parent import WarmParent

IMPORTED = (
    "alembic.command",
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
    "chainkit.cli.main",
)
"""Modules that the command imports only when it is called, beside all of ``PACKAGES``."""

PACKAGES = ("chainkit.cli", "chainkit.chain", "chainkit_indexer", "chainkit_indexer.cli")


@dataclass(frozen=True)
class Death:
    """How a life ended."""

    was_killed: bool
    code: int
    """Exit code, or minus the signal."""
    said: str
    """The whole text on standard error."""


class WarmIndexer(WarmParent):
    """A parent to fork from. ``log`` receives what the lives write."""

    def __init__(self, log: Path) -> None:
        self._log = log
        settings = {k: v for k, v in os.environ.items() if not k.startswith("CHAINKIT_")}
        super().__init__("support.indexer.warm_indexer", str(log), environment=settings)

    def begin(self, arguments: Sequence[str], seconds: float | None = None) -> None:
        """Start `chainkit` with arguments, to be killed after so many seconds."""
        self._log.unlink(missing_ok=True)
        self.ask([list(arguments), seconds])

    def end(self) -> Death:
        """Wait until the life that was begun is over."""
        was_killed, code = self.answer()
        return Death(was_killed, code, self.said)

    @property
    def said(self) -> str:
        """Standard error of the life that was begun, so far."""
        return self._log.read_text() if self._log.exists() else ""

    def live(self, arguments: Sequence[str], seconds: float | None = None) -> Death:
        self.begin(arguments, seconds)
        return self.end()


def _main(log: str) -> None:
    _import_everything()
    for line in sys.stdin:
        arguments, seconds = json.loads(line)
        assert threading.active_count() == 1, threading.enumerate()
        child = os.fork()
        if child == 0:
            _live(arguments, log)
        print(json.dumps(_end(child, seconds)), flush=True)


def _import_everything() -> None:
    for name in IMPORTED:
        import_module(name)
    for name in PACKAGES:
        for module in iter_modules(import_module(name).__path__, f"{name}."):
            if not module.ispkg:
                import_module(module.name)
    signing = import_module("chainkit_indexer.follow.signing")
    # The signer's process is one more Python that would have to start in each life.
    setattr(signing, "SignerProcess", signing.Signer)  # noqa: B010


def _live(arguments: list[str], log: str) -> None:
    code: Any = 1
    try:
        for number, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
            path = log if number == 2 else os.devnull
            opened = os.open(path, flags | (os.O_CREAT | os.O_TRUNC if number == 2 else 0), 0o600)
            os.dup2(opened, number)
        sys.argv = ["chainkit", *arguments]
        import_module("chainkit.cli.main").main()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def _end(child: int, seconds: float | None) -> tuple[bool, int]:
    descriptor = os.pidfd_open(child)
    ended, _, _ = select.select([descriptor], [], [], seconds)
    os.close(descriptor)
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code == -signal.SIGKILL, code


if __name__ == "__main__":
    _main(sys.argv[1])

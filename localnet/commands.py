"""Runs chainkit as its users do: the installed command, in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from chainkit.errors import ChainkitError
from localnet.process import end, end_with_parent, interruptions_deferred, run_to_end

CHAINKIT: Final = str(Path(sys.executable).parent / "chainkit")


class CommandFailed(ChainkitError):
    """A command ended with another exit code than the story needs."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of every command, passed in the environment as an operator would set them."""

    rpc_url: str
    record_path: Path
    password_path: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    """Further variables of the environment."""

    @property
    def password(self) -> str:
        """The password of all keystores."""
        return self.password_path.read_text().strip()

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a command."""
        return {
            **os.environ,
            "CHAINKIT_RPC": self.rpc_url,
            "CHAINKIT_DEPLOYMENT": str(self.record_path),
            "CHAINKIT_PASSWORD_FILE": str(self.password_path),
            **self.variables,
        }


def run(
    settings: Settings, *arguments: str | Path, expected: Sequence[int] = (0,), typed: str = ""
) -> str:
    """Run ``chainkit`` to its end and return its output; ``typed`` is a person's input.

    Raises CommandFailed for an exit code that is not among the expected.
    """
    command = [CHAINKIT, *map(str, arguments)]
    done = run_to_end(command, settings.environment, typed=typed)
    if done.returncode not in expected:
        shown = f"chainkit {' '.join(map(str, arguments))}"
        wanted = " or ".join(map(str, expected))
        raise CommandFailed(shown, f"exit {wanted}", done.returncode, done.stderr.strip()[-2000:])
    return done.stdout


def run_json(settings: Settings, *arguments: str | Path, expected: Sequence[int] = (0,)) -> Any:
    """Run ``chainkit … --json`` and return its output, parsed."""
    return json.loads(run(settings, *arguments, "--json", expected=expected))


def start_command(
    arguments: Sequence[str], environment: Mapping[str, str], log: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start ``chainkit`` without input, in a session of its own; its output goes to a file."""
    return subprocess.Popen(
        [CHAINKIT, *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=end_with_parent,
    )


class Background:
    """A ``chainkit`` command that runs until it is stopped, with its log in a file."""

    def __init__(self, settings: Settings, log_path: Path, *arguments: str | Path) -> None:
        """Prepare the command; ``start`` starts it."""
        self._settings = settings
        self._log_path = log_path
        self._arguments = [str(argument) for argument in arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the command. Its ``stop`` must be registered before."""
        with self._log_path.open("wb") as log, interruptions_deferred():
            self._process = start_command(self._arguments, self._settings.environment, log)

    @property
    def pid(self) -> int:
        """The process id of the started command."""
        assert self._process is not None
        return self._process.pid

    def check(self) -> None:
        """Raise CommandFailed if the command is not running any more."""
        code = self._process.poll() if self._process else None
        if code is not None:
            command = f"chainkit {' '.join(self._arguments)}"
            log = self._log_path.read_text()[-2000:]
            raise CommandFailed(command, "to be running", f"exit {code}", log)

    def log_lines(self) -> list[str]:
        """Return the lines of its log so far."""
        return self._log_path.read_text(errors="replace").splitlines()

    def stop(self) -> int:
        """End the command as a service manager does, and return its exit code, 0 if not started."""
        return end(self._process) if self._process else 0

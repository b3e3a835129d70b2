"""Commands that are forks behave as those of the installed program."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

import pytest

from localnet.commands import CHAINKIT
from localnet.process import run_to_end
from support.warm_commands import WarmCommands


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("nothing",),
        ("index", "status"),
        ("index", "status", "--database", "nowhere.db", "--json"),
    ],
)
def test_run__any_ending__is_as_the_installed_programs(
    warm_commands: WarmCommands, words: tuple[str, ...], tmp_path: Path
) -> None:
    command = [CHAINKIT, *words]
    warm = warm_commands.run_to_end(command, os.environ, tmp_path)
    installed = run_to_end(command, os.environ, tmp_path)

    assert vars(warm) == vars(installed)


def test_start__killed__keeps_its_process_id_until_the_end_is_asked_for(
    warm_commands: WarmCommands, tmp_path: Path
) -> None:
    # Opening it waits for somebody who writes.
    os.mkfifo(tmp_path / "password")
    environment = os.environ | {"CHAINKIT_PASSWORD_FILE": str(tmp_path / "password")}
    with (tmp_path / "log").open("wb") as log:
        words = ["key", "new", "--keystore", str(tmp_path / "key.json")]
        process = warm_commands.start_command(words, environment, log)

    os.kill(process.pid, signal.SIGKILL)
    descriptor = os.pidfd_open(process.pid)
    select.select([descriptor], [], [])
    os.close(descriptor)
    # The process id is not free yet: a second signal reaches no other process.
    os.kill(process.pid, signal.SIGKILL)

    assert process.wait() == -signal.SIGKILL
    assert process.poll() == -signal.SIGKILL

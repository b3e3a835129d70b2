"""The files that operate an indexer: containers, alarms, dashboard and runbook."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, Final

import click
import yaml

from chainkit.cli.main import chainkit as root_command
from support.project import DOCS, ROOT

OPERATIONS: Final = ROOT / "operations"
RUNBOOK: Final = DOCS / "runbook"
DASHBOARD: Final = OPERATIONS / "grafana" / "dashboard.json"

_PR_SET_MDWE: Final = 65
_REFUSE_EXEC_GAIN: Final = 1


def load(path: Path) -> Any:
    """The content of a YAML file."""
    return yaml.safe_load(path.read_text())


def parse(words: list[str]) -> click.Command:
    """Find the command and let click's own parser judge the options."""
    command: click.Command = root_command
    context = click.Context(command, info_name="chainkit")
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, words
        command, words = found, words[1:]
        context = click.Context(command, parent=context)
    command.make_parser(context).parse_args(list(words))
    return command


def deny_memory_gain() -> None:
    """Set what MemoryDenyWriteExecute of systemd sets, in a child before it becomes the program."""
    assert ctypes.CDLL(None).prctl(_PR_SET_MDWE, _REFUSE_EXEC_GAIN, 0, 0, 0) == 0

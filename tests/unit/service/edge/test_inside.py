"""The end of a command inside Envoy's process: its exit code, and the words of a failure."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Envoy itself is in the tests of the network: this is the command's end alone.
PROGRAM = """
from pathlib import Path
from chainkit.service.edge.configuration import EdgePlaces
from chainkit.service.edge.inside import Inside

def command():
    {command}

inside = object.__new__(Inside)
inside._command, inside._places = command, EdgePlaces(Path("no-such-folder"), Path())
inside._work()
"""


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit", 0, ""),
        ("raise SystemExit('words')", 1, ""),
        ("return", 0, ""),
        ("raise RuntimeError('a fault')", 1, "RuntimeError: a fault"),
    ],
)
def test_command__ends__process_has_its_code_and_a_faults_traceback(
    command: str, code: int, words: str
) -> None:
    program = PROGRAM.format(command=command)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.returncode == code
    assert words in done.stderr

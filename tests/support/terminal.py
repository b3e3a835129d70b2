"""A person at a terminal: what is typed there comes from a pseudo-terminal, not from a pipe."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_at_terminal(
    command: Sequence[str],
    typed: str,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end whose standard input is a terminal; its outputs are captured."""
    keyboard, terminal = pty.openpty()
    try:
        os.write(keyboard, typed.encode())
        return subprocess.run(
            command,
            stdin=terminal,
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment,
            check=False,
        )
    finally:
        os.close(terminal)
        os.close(keyboard)

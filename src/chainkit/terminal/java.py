"""The Java on this machine, which the auditor's jobs need."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Final

JAVA_HINT: Final = "install the Debian package openjdk-17-jre-headless"
MINIMUM_JAVA: Final = 17


def java_version() -> int | None:
    """Return the major version of the Java on the PATH, or None."""
    program = shutil.which("java")
    if program is None:
        return None
    match = re.search(r'version "(\d+)', output_of(program, "-version") or "")
    return int(match.group(1)) if match else None


def output_of(*command: str) -> str | None:
    """Return a program's output about itself, None if the program cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout + done.stderr

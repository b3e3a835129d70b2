"""The machine and packages that figures were measured on: they say nothing without them."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Final

_KIBIBYTES_PER_GIBIBYTE: Final = 1024 * 1024


def hardware() -> dict[str, str | int]:
    """Return the machine, its system, and Python's version."""
    return {
        "cpu": _first(Path("/proc/cpuinfo"), r"model name\s*: (.+)"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(_memory_kibibytes() / _KIBIBYTES_PER_GIBIBYTE),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of installed packages by name."""
    return {name: version(name) for name in packages}


def _memory_kibibytes() -> int:
    return int(_first(Path("/proc/meminfo"), r"MemTotal:\s*(\d+) kB"))


def _first(path: Path, pattern: str) -> str:
    found = re.search(pattern, path.read_text())
    return found[1] if found else "unknown"

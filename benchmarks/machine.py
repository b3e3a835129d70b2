"""The machine and packages that figures were measured on: they say nothing without them."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

_KIBIBYTES_PER_GIBIBYTE: Final = 1024 * 1024


_PLATFORM: Final = ("cpu", "cores", "memory_gib", "system")


def machine(packages: Iterable[str], **programs: str) -> dict[str, str | int]:
    """Return the machine, its system, and the versions of Python, programs and packages."""
    return {
        "cpu": _first(Path("/proc/cpuinfo"), r"model name\s*: (.+)"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(_memory_kibibytes() / _KIBIBYTES_PER_GIBIBYTE),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **programs,
        **{name: version(name) for name in packages},
    }


def described(on: Mapping[str, str | int], remark: str = "") -> str:
    """Return a machine and its versions as lines of a list, with a remark on the machine."""
    versions = ", ".join(f"{k} {v}" for k, v in on.items() if k not in _PLATFORM)
    return f"""- **Machine:** {on["cpu"]}, {on["cores"]} cores, {on["memory_gib"]} GiB of memory,
  {on["system"]}.{remark}
- **Versions:** {versions}."""


def _memory_kibibytes() -> int:
    return int(_first(Path("/proc/meminfo"), r"MemTotal:\s*(\d+) kB"))


def _first(path: Path, pattern: str) -> str:
    found = re.search(pattern, path.read_text())
    return found[1] if found else "unknown"

"""What the figures were measured on: they say nothing without it."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
from importlib.metadata import version
from pathlib import Path
from typing import Final

from localnet.anvil import Anvil
from localnet.postgres import Postgres

_PACKAGES: Final = ("web3", "SQLAlchemy", "psycopg", "coincurve", "protobuf", "orjson")
_KIBIBYTES_PER_GIBIBYTE: Final = 1024 * 1024


def machine(anvil: Anvil, server: Postgres) -> dict[str, str | int]:
    """Return names and versions of the hardware and of the programs that took part."""
    [(postgres,)] = server.execute("SHOW server_version")
    return {
        "cpu": _first(Path("/proc/cpuinfo"), r"model name\s*: (.+)"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(_memory_kibibytes() / _KIBIBYTES_PER_GIBIBYTE),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": str(postgres).split()[0],
        "anvil": anvil.request("web3_clientVersion").rpartition("/v")[2],
        **{name: version(name) for name in _PACKAGES},
    }


def _memory_kibibytes() -> int:
    return int(_first(Path("/proc/meminfo"), r"MemTotal:\s*(\d+) kB"))


def _first(path: Path, pattern: str) -> str:
    found = re.search(pattern, path.read_text())
    return found[1] if found else "unknown"

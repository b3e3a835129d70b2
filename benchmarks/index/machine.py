"""The hardware and programs behind the figures, which say nothing without them."""

from __future__ import annotations

import sqlite3
from typing import Final

from benchmarks.machine import hardware, versions
from localnet.anvil import Anvil
from localnet.postgres import Postgres

_PACKAGES: Final = ("web3", "SQLAlchemy", "psycopg", "coincurve", "protobuf", "orjson")


def machine(anvil: Anvil, server: Postgres) -> dict[str, str | int]:
    """Return names and versions of the hardware and of the programs that took part."""
    [(postgres,)] = server.execute("SHOW server_version")
    return {
        **hardware(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": str(postgres).split()[0],
        "anvil": anvil.request("web3_clientVersion").rpartition("/v")[2],
        **versions(_PACKAGES),
    }

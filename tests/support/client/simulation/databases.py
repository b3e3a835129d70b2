"""Databases of simulated clients: a new one costs no password, and its statements no compiling."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Dialect

from chainkit_client.storage.database import Database
from chainkit_client.storage.sealing import Seal
from chainkit_client.storage.store import Store

_TEMPLATE = "template.db"
_DIALECTS: list[Dialect] = []
_COMPILED: dict[Any, Any] = {}


def new_store(path: Path) -> Store:
    """Make a database; all in one folder of folders begin as the same one."""
    folder = path.parent.parent
    seal = _made_template(folder)
    shutil.copy(folder / _TEMPLATE, path)
    database = Database(path)
    # SQLAlchemy looks statements up by the dialect, too, and each engine has its own.
    _DIALECTS.append(database._engine.dialect)
    del _DIALECTS[1:]
    for engine in (database._engine, database._writer):
        engine.dialect = _DIALECTS[0]
    shared = {"compiled_cache": _COMPILED}
    database._engine = database._engine.execution_options(**shared)
    database._writer = database._writer.execution_options(**shared)
    return Store(database, seal)


@cache
def _made_template(folder: Path) -> Seal:
    store = Store.open(folder / _TEMPLATE, "password", 2)
    store.close()
    return store.seal

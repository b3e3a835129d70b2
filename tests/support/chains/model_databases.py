"""Databases for one model after the other: their content, and a process that ends amid a step."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from sqlalchemy import Engine, delete, event, select

from chainkit_indexer.storage import schema
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from support.chains.model_node import Row

TABLES = ("envelopes", "envelope_logs", "quarantine", "blocks", "cursor", "reorgs", "journal")


class Killed(Exception):
    """The process ends here: no error that the indexer knows."""


class Databases:
    """Empty databases for one example after the other, of one kind."""

    def __init__(self, folder: Path, new_url: Callable[[], str] | None) -> None:
        self._folder = folder
        self._new_url = new_url
        self._locations: dict[int, str] = {}
        self._names = count()

    def empty(self, identity: Identity) -> str:
        """An empty database that belongs to an identity already, which is the slow part."""
        kind = len({contract.originator_id for contract in identity.contracts})
        is_file = self._new_url is None
        if kind not in self._locations:
            location = str(self._folder / f"template-{kind}") if is_file else self._new_url()
            Store.open(location, identity).close()
            self._locations[kind] = location
        if is_file:
            return self._copy(self._locations[kind])
        self._clear(self._locations[kind], identity)
        return self._locations[kind]

    def _copy(self, template: str) -> str:
        return str(shutil.copy(template, self._folder / f"node-{next(self._names)}.db"))

    def _clear(self, location: str, identity: Identity) -> None:
        store = Store.open(location, identity)
        with store.writing() as connection:
            for table in reversed(schema.metadata.sorted_tables):
                if table not in (schema.identity, schema.contracts):
                    connection.execute(delete(table))
        store.close()


def tables_of(store: Store) -> dict[str, list[Row]]:
    with store.reading() as connection:
        return {
            name: [
                tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))
            ]
            for name, table in schema.metadata.tables.items()
            if name in TABLES
        }


@contextmanager
def killed_at(statement: int) -> Iterator[None]:
    """End a step at one of its statements to the database, before the statement runs."""
    left = iter(range(statement, -1, -1))

    def hook(*_: object) -> None:
        if next(left, -1) == 0:
            raise Killed

    event.listen(Engine, "before_cursor_execute", hook)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", hook)

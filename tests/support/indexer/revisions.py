"""Databases as older revisions had them; in 0003, each envelope was in one row with its log."""

from __future__ import annotations

from typing import Final

from alembic import command
from alembic.config import Config
from sqlalchemy import insert, inspect, select, text

from chainkit_indexer.storage import schema
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.store import Store

_SAME: Final = [
    table
    for table in schema.metadata.sorted_tables
    if table not in (schema.envelopes, schema.envelope_logs)
]


def make_tables(database: Database, revision: str) -> None:
    """Let Alembic make the tables of a revision in an empty database."""
    database.prepare()
    config = Config()
    config.set_main_option("script_location", "chainkit_indexer:storage/migrations")
    with database.writing() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def copy_rows_to_0003(source: Store, database: Database) -> None:
    """Put the rows of a database of today into tables of revision 0003."""
    names = schema.chain_envelopes.c.keys()
    places = ", ".join(f":{name}" for name in names)
    into_envelopes = text(f"INSERT INTO envelopes ({', '.join(names)}) VALUES ({places})")
    with source.reading() as reader, database.writing() as writer:
        for table in _SAME:
            if rows := [dict(row) for row in reader.execute(select(table)).mappings()]:
                writer.execute(insert(table), rows)
        envelopes = reader.execute(select(schema.chain_envelopes)).mappings()
        writer.execute(into_envelopes, [dict(row) for row in envelopes])
        assert "envelope_logs" not in inspect(writer).get_table_names()

"""Makes and upgrades the tables; each database has its revision in ``alembic_version``.

Alembic itself is loaded only to upgrade: it costs 14 MB and a third of a second. A test compares
the tables of the revisions with ``schema``.
"""

from __future__ import annotations

import shlex
from typing import Final

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    insert,
    inspect,
    select,
)

from chainkit.errors import StoreError
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.migrations.versions import revision_0001

REVISION: Final = "0001"
"""The newest revision in ``migrations/versions``. Revisions sort as text."""

_MIGRATIONS: Final = "chainkit_indexer:storage/migrations"

_VERSION_TABLE: Final = "alembic_version"
_versions = Table(
    _VERSION_TABLE,
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{_VERSION_TABLE}_pkc"),
)
"""The table as Alembic makes it."""

_COMMON_TABLES: Final = frozenset({"identity", "blocks", "cursor", "envelopes", "journal"})
"""The attributes of every revision."""


def revision(database: Database) -> str | None:
    """Return the revision of a database, or None where it has no tables yet.

    Raises StoreError where the tables are not an indexer's, or older than all revisions.
    """
    with database.reading() as connection:
        tables = set(inspect(connection).get_table_names())
        if not tables:
            return None
        if not tables >= _COMMON_TABLES:
            found = ", ".join(sorted(tables))
            raise StoreError(f"database {database.name}", "an indexer's tables", found)
        if _VERSION_TABLE not in tables:
            place = f"a chainkit from before revision {revision_0001.revision} made it"
            raise StoreError(f"database {database.name}", "one with a revision", "none", place)
        return str(connection.execute(select(_versions)).scalar_one_or_none())


def check_revision(database: Database) -> str | None:
    """Return the revision if this program can use it, or None where there are no tables yet.

    Raises StoreError for an older revision, with the command that upgrades it, and for a newer one.
    """
    found = revision(database)
    if found is not None and found < REVISION:
        command = f"chainkit index migrate --database {shlex.quote(database.name)} --apply"
        place = f"upgrade it: {command}"
        raise StoreError(f"database {database.name}", f"revision {REVISION}", found, place)
    _refuse_newer(database, found)
    return found


def existing_revision(database: Database) -> str:
    """Return the revision of a database that has tables, also an older one.

    Raises StoreError where there are no tables, newer ones, or ones without a revision.
    """
    found = revision(database)
    if found is None:
        raise StoreError(f"database {database.name}", "an indexer's tables", "none")
    _refuse_newer(database, found)
    return found


def create(database: Database) -> None:
    """Make the tables of a database that has none."""
    database.prepare()
    with database.writing() as connection:
        revision_0001.make(connection)
        _versions.create(connection)
        connection.execute(insert(_versions).values(version_num=revision_0001.revision))
        if revision_0001.revision != REVISION:
            _migrate(connection)


def upgrade(database: Database) -> str:
    """Bring the tables of a database up to date and return the revision that it had before.

    The upgrade is one transaction, so it may be killed anywhere. Raises StoreInUse if an indexer
    uses the database, and StoreError where there are no tables, newer ones, or ones without a
    revision.
    """
    database.lock()
    found = existing_revision(database)
    if found != REVISION:
        with database.writing() as connection:
            _migrate(connection)
    return found


def _refuse_newer(database: Database, found: str | None) -> None:
    if found is not None and found > REVISION:
        expected = f"revision {REVISION} or older"
        place = "a newer chainkit made it, or one from before the first release"
        raise StoreError(f"database {database.name}", expected, found, place)


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", _MIGRATIONS)
    config.attributes["connection"] = connection
    command.upgrade(config, REVISION)

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from chainkit.errors import StoreError, StoreInUse
from chainkit_indexer.storage import migrate, schema
from chainkit_indexer.storage.database import Database
from support.indexer import revisions, version_0_1_0
from support.seeds import IS_SOAK

UPGRADE_KILLED_AT = """
import os, signal, sys
from sqlalchemy import Engine, event
from chainkit_indexer.storage import migrate
from chainkit_indexer.storage.database import Database

def executed(_connection, _cursor, statement, *_):
    if statement.split()[0] in ("ALTER", "CREATE", "DROP", "INSERT", "UPDATE"):
        count()

def count(*_):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

left = int(sys.argv[2])
event.listen(Engine, "after_cursor_execute", executed)
event.listen(Engine, "commit", count)
migrate.upgrade(Database(sys.argv[1]))
"""


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url)
    yield opened
    opened.close()


def described(database: Database) -> dict[str, Any]:
    """Everything that the database itself says about its tables."""
    with database.reading() as connection:
        found = inspect(connection)
        return {
            table: {
                "columns": [str(column) for column in found.get_columns(table)],
                "primary key": found.get_pk_constraint(table),
                "foreign keys": found.get_foreign_keys(table),
                "checks": found.get_check_constraints(table),
                "indexes": sorted(str(index) for index in found.get_indexes(table)),
            }
            for table in found.get_table_names()
        }


def content(database: Database) -> dict[str, list[dict[str, Any]]]:
    with database.reading() as connection:
        return {
            table: [
                dict(row)
                for row in connection.execute(
                    text(f"SELECT * FROM {table} ORDER BY {', '.join(key)}")
                ).mappings()
            ]
            for table, key in _keys(connection).items()
        }


def _keys(connection: Any) -> dict[str, list[str]]:
    found = inspect(connection)
    return {
        table: found.get_pk_constraint(table)["constrained_columns"] or ["1"]
        for table in found.get_table_names()
    }


def without(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{name: row[name] for name in row if name not in names} for row in rows]


def set_revision(database: Database, revision: str) -> None:
    with database.writing() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))


def test_revision__of_the_program__is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", "chainkit_indexer:storage/migrations")
    revisions = [each.revision for each in ScriptDirectory.from_config(config).walk_revisions()]

    assert revisions == sorted(revisions, reverse=True)
    assert revisions[0] == migrate.REVISION


def migrated(database: Database, revision: str, other: Path, request: Any) -> Database:
    """Let Alembic make an empty database of the same kind up to a revision."""
    made = Database(str(other))
    if database.file is None:
        made = Database(request.getfixturevalue("postgres").new_database())
    revisions.make_tables(made, revision)
    return made


def view(database: Database) -> str:
    with database.reading() as connection:
        definition = inspect(connection).get_view_definition("served_envelopes")
    return " ".join(definition.replace("\n", " ").split())


def test_create__empty_database__makes_what_the_migrations_make(
    database: Database, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert migrate.check_revision(database) is None
    migrate.create(database)
    by_migrations = migrated(database, migrate.REVISION, tmp_path / "other.db", request)

    assert described(database) == described(by_migrations)
    assert view(database) == view(by_migrations)
    for each in (database, by_migrations):
        with each.reading() as connection:
            context = MigrationContext.configure(connection, opts={"compare_server_default": True})
            assert compare_metadata(context, schema.metadata) == []
        assert migrate.check_revision(each) == migrate.REVISION
    by_migrations.close()


def test_first_revision__compared_with_version_0_1_0__has_the_same_tables(
    database: Database, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    version_0_1_0.make(database, with_rows=False)
    other = migrated(database, "0001", tmp_path / "other.db", request)

    tables = described(other)
    del tables["alembic_version"]
    assert tables == described(database)
    assert migrate.revision(other) == migrate.revision(database) == "0001"
    other.close()


def test_upgrade__rows_of_version_0_1_0__loses_none(database: Database) -> None:
    version_0_1_0.make(database)
    old = content(database)
    assert old == version_0_1_0.content()

    assert migrate.upgrade(database) == "0001"

    new = content(database)
    assert new["identity"] == without(
        old["identity"], "schema_version", "group_messages", "identity_updates"
    )
    assert new["contracts"] == [
        {
            "address": address,
            "name": name,
            "kind": kind,
            "originator_id": 0,
            "identifier_length": 32,
            "is_identifier_indexed": False,
            "is_sequence_indexed": False,
            "block": version_0_1_0.FIRST_BLOCK,
        }
        for address, name, kind in (
            (version_0_1_0.GROUP_MESSAGES, "GroupMessages", 0),
            (version_0_1_0.IDENTITY_UPDATES, "IdentityUpdates", 2),
        )
    ]
    counted = [f'{{"0": {row["last_sequence_id"]}}}' for row in old["blocks"]]
    assert [row["sequence_ids"] for row in new["blocks"]] == counted
    assert without(new["blocks"], "sequence_ids") == without(old["blocks"], "last_sequence_id")
    assert new["cursor"] == [
        {
            "id": 1,
            "block_number": version_0_1_0.LAST_BLOCK,
            "block_hash": version_0_1_0.block_hash(version_0_1_0.LAST_BLOCK),
            "sequence_ids": f'{{"0": {version_0_1_0.LAST_SEQUENCE_ID}}}',
            "final_block_number": -1,
        }
    ]
    assert new["quarantine"] == without(old["quarantine"], "payload_digest")
    place = [*version_0_1_0.place(1)][2:]
    envelopes = without(old["envelopes"], "payload_digest", *place)
    assert new["envelopes"] == [row | {"expires_at": None} for row in envelopes]
    content_of_envelopes = ("payload_digest", "originator_ns", "topic", "envelope")
    assert new["envelope_logs"] == without(old["envelopes"], *content_of_envelopes)
    assert without(new["reorgs"], "rewound_to") == old["reorgs"]
    assert new["journal"] == old["journal"]


def test_upgrade__tables_of_version_0_1_0__become_those_of_the_schema(database: Database) -> None:
    version_0_1_0.make(database)

    migrate.upgrade(database)

    with database.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
    assert migrate.check_revision(database) == migrate.REVISION
    assert migrate.upgrade(database) == migrate.REVISION


def test_upgrade__before_the_first_page__has_no_cursor(database: Database) -> None:
    version_0_1_0.make(database, with_rows=False)

    migrate.upgrade(database)

    assert not any(rows for table, rows in content(database).items() if table != "alembic_version")


def test_served_envelopes__some_final__say_how_final_each_is(database: Database) -> None:
    version_0_1_0.make(database)
    migrate.upgrade(database)
    final, last = 30, version_0_1_0.LAST_BLOCK
    with database.writing() as connection:
        connection.execute(text(f"UPDATE cursor SET final_block_number = {final}"))

    with database.reading() as connection:
        served = connection.execute(
            text("SELECT * FROM served_envelopes ORDER BY sequence_id")
        ).mappings()
        rows = [dict(row) for row in served]

    stored = content(database)
    added = ("confirmations", "finality", "established")
    assert without(rows, *added) == [
        log | without([envelope], "expires_at")[0]
        for log, envelope in zip(stored["envelope_logs"], stored["envelopes"], strict=True)
    ]
    for row in rows:
        number = row["block_number"]
        assert row["confirmations"] == last - number + 1
        assert row["finality"] == ("final" if number <= final else "soft")
        # An older program read what one endpoint said, and proved nothing of it.
        assert row["established"] == "one endpoint"


def test_upgrade__killed_anywhere__leaves_the_old_state(
    database: Database, database_url: str
) -> None:
    version_0_1_0.make(database)
    database.close()
    before = content(database), described(database)
    kills = 0
    # The first is the end of a transaction that only reads.
    for change in range(2, 1000, 1 if IS_SOAK else 11):
        command = [sys.executable, "-c", UPGRADE_KILLED_AT, database_url, str(change)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode == 0:
            break
        assert result.returncode == -signal.SIGKILL, result.stderr
        assert (content(database), described(database)) == before
        database.close()
        kills += 1

    assert kills >= 3
    assert migrate.check_revision(database) == migrate.REVISION


def test_check_revision__older__names_the_command(database: Database) -> None:
    version_0_1_0.make(database)

    with pytest.raises(StoreError) as caught:
        migrate.check_revision(database)

    message = f"database {database.name}: expected revision {migrate.REVISION}, got 0001"
    assert str(caught.value).startswith(message)
    assert f"chainkit index migrate --database {database.name}" in str(caught.value).replace(
        "'", ""
    )


def test_check_revision__newer__names_both(database: Database) -> None:
    migrate.create(database)
    set_revision(database, "0999")
    before = content(database)

    for refusal in (migrate.check_revision, migrate.upgrade):
        with pytest.raises(StoreError, match=f"revision {migrate.REVISION} or older, got 0999"):
            refusal(database)

    assert content(database) == before


def test_revision__tables_of_another_program__are_refused(database: Database) -> None:
    with database.writing() as connection:
        connection.execute(text("CREATE TABLE bookmarks (url TEXT)"))

    for refusal in (migrate.check_revision, migrate.upgrade):
        with pytest.raises(StoreError, match="expected an indexer's tables, got bookmarks"):
            refusal(database)


def test_upgrade__no_tables__is_refused(database: Database) -> None:
    with pytest.raises(StoreError, match="expected an indexer's tables, got none"):
        migrate.upgrade(database)


def test_upgrade__an_indexer_runs_on_it__is_refused(database: Database, database_url: str) -> None:
    version_0_1_0.make(database)
    other = Database(database_url)

    with pytest.raises(StoreInUse):
        migrate.upgrade(other)

    other.close()
    assert migrate.revision(database) == "0001"


def test_create__empty_database__does_not_load_alembic(database_url: str) -> None:
    program = (
        "import sys\n"
        "from chainkit_indexer.storage import migrate\n"
        "from chainkit_indexer.storage.database import Database\n"
        "database = Database(sys.argv[1])\n"
        "migrate.create(database)\n"
        "print(migrate.check_revision(database))\n"
        "print('alembic' in sys.modules)"
    )

    arguments = [sys.executable, "-c", program, database_url]
    result = subprocess.run(arguments, capture_output=True, text=True, check=True)

    assert result.stdout.split() == [migrate.REVISION, "False"]

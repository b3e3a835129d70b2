import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import insert, inspect, text

from chainkit.errors import StoreError, StoreInUse
from chainkit_indexer.storage import migrate, schema
from chainkit_indexer.storage.database import Database
from chainkit_node.storage import schema as node_tables
from support.chains.model_databases import Killed, killed_at
from support.indexer.databases import PAGE_PAYLOADS, write_page

pytest_plugins = ["support.indexer.revisions"]

SCHEMAS = [schema.metadata, node_tables.metadata]


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url)
    yield opened
    opened.close()


def described(database: Database) -> dict[str, Any]:
    """Everything that the database itself says about its tables."""
    with database.reading() as connection:
        found = inspect(connection)
        views = {name: found.get_view_definition(name) for name in found.get_view_names()}
        return views | {
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


def set_revision(database: Database, revision: str) -> None:
    with database.writing() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))


def config() -> Config:
    made = Config()
    made.set_main_option("script_location", "chainkit_indexer:storage/migrations")
    return made


@pytest.fixture
def other(database: Database, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    """Another empty database of the same kind."""
    location = str(tmp_path / "other.db")
    if database.file is None:
        location = request.getfixturevalue("postgres").new_database()
    opened = Database(location)
    yield opened
    opened.close()


def test_revision__of_the_program__is_the_newest_migration() -> None:
    revisions = [each.revision for each in ScriptDirectory.from_config(config()).walk_revisions()]

    assert revisions == sorted(revisions, reverse=True)
    assert revisions[0] == migrate.REVISION


def test_create__empty_database__makes_what_alembic_makes(
    database: Database, other: Database
) -> None:
    assert migrate.check_revision(database) is None
    migrate.create(database)
    other.prepare()
    by_alembic = config()
    with other.writing() as connection:
        by_alembic.attributes["connection"] = connection
        command.upgrade(by_alembic, migrate.REVISION)

    assert described(database) == described(other)
    for each in (database, other):
        assert migrate.check_revision(each) == migrate.REVISION


def test_create__empty_database__makes_the_tables_of_the_schemas(
    database: Database, other: Database
) -> None:
    migrate.create(database)
    with other.writing() as connection:
        for each in SCHEMAS:
            each.create_all(connection)

    made = described(database)
    for name in ("alembic_version", "served_envelopes"):
        del made[name]
    assert made == described(other)
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        assert compare_metadata(context, SCHEMAS) == []


def test_served_envelopes__some_final__say_how_final_each_is(database: Database) -> None:
    migrate.create(database)
    for _ in range(3):
        write_page(database)
    runs = [(0, 0, "receipts"), (1, 2, "one endpoint")]
    with database.writing() as connection:
        connection.execute(text("UPDATE cursor SET final_block_number = 1"))
        columns = tuple(schema.provenance.c.keys())
        database.insert_many(connection, schema.provenance, columns, runs)

    with database.reading() as connection:
        query = text("SELECT * FROM served_envelopes ORDER BY sequence_id")
        rows = [dict(row) for row in connection.execute(query).mappings()]

    stored = content(database)
    added = ("confirmations", "finality", "established")
    assert [{name: row[name] for name in row if name not in added} for row in rows] == [
        log | {name: envelope[name] for name in envelope if name != "expires_at"}
        for log, envelope in zip(stored["envelope_logs"], stored["envelopes"], strict=True)
    ]
    assert [tuple(row[name] for name in added) for row in rows] == [
        told
        for told in (
            (3, "final", "receipts"),
            (2, "final", "one endpoint"),
            (1, "soft", "one endpoint"),
        )
        for _ in range(PAGE_PAYLOADS)
    ]


@pytest.fixture
def older(database: Database) -> Database:
    """A database of the first revision, with a reorg: asked for before ``second_revision``."""
    migrate.create(database)
    row = {each.name: b"" if each.name.endswith("hash") else 1 for each in schema.reorgs.c}
    with database.writing() as connection:
        connection.execute(insert(schema.reorgs).values(row))
    return database


def test_upgrade__older__changes_the_tables_and_keeps_the_rows(
    older: Database, second_revision: str
) -> None:
    before = content(older)

    assert migrate.upgrade(older) == "0001"

    assert migrate.check_revision(older) == second_revision
    after = content(older)
    [reorg] = after["reorgs"]
    assert reorg == before["reorgs"][0] | {"remark": "from before"}
    same = before.keys() - {"reorgs", "alembic_version"}
    assert [after[name] for name in same] == [before[name] for name in same]
    assert migrate.upgrade(older) == second_revision
    assert content(older) == after


def test_upgrade__interrupted_at_any_statement__leaves_the_old_state(
    older: Database, second_revision: str
) -> None:
    before = content(older), described(older)
    interruptions = 0
    while True:
        try:
            with killed_at(interruptions):
                migrate.upgrade(older)
        except Killed:
            interruptions += 1
        else:
            break
        assert (content(older), described(older)) == before

    assert interruptions > 3
    assert migrate.check_revision(older) == second_revision


def test_create__second_revision__makes_the_tables_of_an_upgraded_one(
    older: Database, second_revision: str, other: Database
) -> None:
    migrate.upgrade(older)

    migrate.create(other)

    assert migrate.check_revision(other) == second_revision
    assert described(other) == described(older)


def test_check_revision__older__names_the_command(older: Database, second_revision: str) -> None:
    with pytest.raises(StoreError) as caught:
        migrate.check_revision(older)

    message = str(caught.value).replace("'", "")
    assert message.startswith(
        f"database {older.name}: expected revision {second_revision}, got 0001"
    )
    assert f"chainkit index migrate --database {older.name}" in message


@pytest.mark.parametrize("revision", ["0999", "0006"])
def test_check_revision__newer_or_before_the_first_release__names_both(
    database: Database, revision: str
) -> None:
    migrate.create(database)
    set_revision(database, revision)
    before = content(database)

    expected = f"revision {migrate.REVISION} or older, got {revision} .a newer chainkit made it"
    for refusal in (migrate.check_revision, migrate.upgrade):
        with pytest.raises(StoreError, match=expected):
            refusal(database)

    assert content(database) == before


def test_check_revision__without_a_revision__is_refused(database: Database) -> None:
    migrate.create(database)
    with database.writing() as connection:
        connection.execute(text("DROP TABLE alembic_version"))

    expected = "one with a revision, got none .a chainkit from before revision 0001 made it"
    for refusal in (migrate.check_revision, migrate.upgrade):
        with pytest.raises(StoreError, match=expected):
            refusal(database)


def test_revision__tables_of_another_program__are_refused(database: Database) -> None:
    with database.writing() as connection:
        connection.execute(text("CREATE TABLE bookmarks (url TEXT)"))

    for refusal in (migrate.check_revision, migrate.upgrade):
        with pytest.raises(StoreError, match="expected an indexer's tables, got bookmarks"):
            refusal(database)


def test_upgrade__no_tables__is_refused(database: Database) -> None:
    with pytest.raises(StoreError, match="expected an indexer's tables, got none"):
        migrate.upgrade(database)


def test_upgrade__an_indexer_runs_on_it__is_refused(
    older: Database, database_url: str, second_revision: str
) -> None:
    other = Database(database_url)

    with pytest.raises(StoreInUse):
        migrate.upgrade(other)

    other.close()
    assert migrate.revision(older) == "0001"


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

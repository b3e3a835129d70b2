from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url, text

from chainkit.errors import StoreUnavailable
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.database import Database
from localnet.postgres import Postgres

COLUMNS = ("number", "hash", "parent_hash", "timestamp", "sequence_ids")


def set_read_only(url: str, is_read_only: bool) -> None:
    """For sessions that begin from now on; those that are there keep what they have."""
    plain = make_url(url).set(drivername="postgresql")
    address = plain.render_as_string(hide_password=False)
    with psycopg.connect(
        address, autocommit=True, options="-c default_transaction_read_only=off"
    ) as session:
        value = "on" if is_read_only else "off"
        session.execute(
            f'ALTER DATABASE "{plain.database}" SET default_transaction_read_only = {value}'
        )


def copy(database: Database, connection: Any) -> None:
    rows = [(0, b"\x01" * 32, b"\x00" * 32, 12, "{}")]
    database.insert_many(connection, schema.blocks, COLUMNS, rows)


def delete(database: Database, connection: Any) -> None:
    connection.execute(schema.blocks.delete())


@pytest.mark.parametrize("write", [copy, delete])
def test_writing__server_has_become_a_standby__may_pass_and_connects_anew(
    postgres: Postgres, write: Any
) -> None:
    url = postgres.new_database()
    database = Database(url)
    with database.writing() as connection:
        schema.metadata.create_all(connection)
    database.close()
    set_read_only(url, True)

    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="read-only"), database.writing() as connection:
            write(database, connection)
    set_read_only(url, False)
    # The session that was there before would still refuse.
    with database.writing() as connection:
        write(database, connection)
        assert connection.scalar(text("SHOW transaction_read_only")) == "off"
    database.close()

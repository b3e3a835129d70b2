import traceback
from pathlib import Path

import psycopg
import pytest

from chainkit.errors import ConfigurationError, StoreError
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.postgresql import Postgresql

URL = "postgresql://operator:PASSWORD@db.test/name"


def error_of(location: str, cause: Exception) -> StoreError:
    database = Database(location)
    with pytest.raises(StoreError) as caught, database._errors():
        raise cause
    return caught.value


@pytest.mark.parametrize("is_read_only", [False, True])
def test_reading__session_invalidated__raises_what_happened(
    tmp_path: Path, is_read_only: bool
) -> None:
    path = tmp_path / "node.db"
    path.touch()
    database = Database(str(path), read_only=is_read_only)

    with pytest.raises(ZeroDivisionError), database.reading() as connection:
        connection.invalidate()
        raise ZeroDivisionError
    database.close()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("sslmode=SECRET", 'invalid sslmode value: "SECRET"'),
        ("keepalives=SECRET", 'invalid integer value "SECRET" for connection option "keepalives"'),
        ("connect_timeout=SECRET", "bad value for connect_timeout: 'SECRET'"),
        ("connect_timeout=SEC'RET", 'bad value for connect_timeout: "SEC\'RET"'),
        ("sslmode=SEC%0ARET", 'invalid sslmode value: "SEC\nRET"'),
        ("sslmode=require&sslmode=SECRET", "invalid sslmode value: \"('require', 'SECRET')\""),
        ("require_auth=md5,SECRET", 'invalid require_auth value: "SECRET"'),
        ("options=-c%20SECRET%3D1", 'unrecognized configuration parameter "SECRET"'),
        ("password=SECRET", 'connection to server failed: "SECRET"'),
        ("", 'connection to server failed: "PASSWORD"'),
    ],
)
def test_error__value_of_the_url_repeated__is_not_shown(query: str, said: str) -> None:
    error = error_of(f"{URL}?{query}", psycopg.OperationalError(said))

    assert "SEC" not in str(error)
    assert "PASSWORD" not in str(error)
    assert "…" in str(error.got)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("host=replica.test", 'could not translate host name "replica.test" to address'),
        ("connect_timeout=10", 'connection to server at "10.0.0.5", port 5432 failed'),
        ("sslmode=require", 'role "operator" is required'),
    ],
)
def test_error__place_of_the_database__is_shown(query: str, said: str) -> None:
    assert error_of(f"{URL}?{query}", psycopg.OperationalError(said)).got == said


@pytest.mark.parametrize("query", ["port=SECRET", "plugin=SECRET"])
def test_open__query_that_the_driver_does_not_take__shows_nothing_of_it(query: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Database(f"{URL}?{query}")

    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "said",
    [
        'connection is bad: invalid sslmode value: "…"',
        'connection is bad: invalid require_auth value: "…"',
        'invalid integer value "…" for connection option "keepalives"',
        'connection is bad: definition of service "…" not found',
    ],
)
def test_may_pass__option_of_the_url_that_is_wrong__is_false(said: str) -> None:
    assert not Postgresql.may_pass(psycopg.OperationalError(said))

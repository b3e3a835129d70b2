"""The client's database: its password, its seal, its file and its transactions."""

from __future__ import annotations

import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from chainkit.errors import StoreError, StoreUnavailable
from chainkit_client.storage import database, schema
from chainkit_client.storage.sealing import DamagedValue, Seal, WrongPassword
from chainkit_client.storage.store import Store

COST = 2
GROUP = {
    "id": b"g" * 16,
    "created_at_ns": 1,
    "membership_state": schema.MembershipState.ALLOWED,
    "is_published": False,
    "is_member": True,
}


def opened(path: Path, password: str = "password") -> Store:
    return Store.open(path, password, COST)


def epoch(number: int, previous: int | None) -> dict[str, object]:
    return {
        "group_id": GROUP["id"],
        "epoch": number,
        "previous_epoch": previous,
        "authenticator": bytes([number]) * 32,
    }


def test_open__the_same_password__opens_what_was_sealed(tmp_path: Path) -> None:
    store = opened(tmp_path / "client.db")
    sealed = store.seal.sealed(b"secret", "group_states.state", b"row")
    store.close()

    again = opened(tmp_path / "client.db")

    assert again.seal.opened(sealed, "group_states.state", b"row") == b"secret"
    again.close()


def test_open__another_password__is_told(tmp_path: Path) -> None:
    opened(tmp_path / "client.db").close()

    with pytest.raises(WrongPassword, match="password: expected the one of this database"):
        opened(tmp_path / "client.db", "Password")


@pytest.mark.parametrize("place", [0, 10, 23, 24, 39, 40, 45])
def test_opened__a_changed_byte__is_told(place: int) -> None:
    seal = Seal(b"k" * 32)
    sealed = bytearray(seal.sealed(b"secret", "a.b", b"row"))
    sealed[place] ^= 1

    with pytest.raises(DamagedValue, match=r"a\.b of row 0x726f77"):
        seal.opened(bytes(sealed), "a.b", b"row")


@pytest.mark.parametrize(("column", "row"), [("a.c", b"row"), ("a.b", b"other"), ("a.b", b"")])
def test_opened__in_another_place__is_told(column: str, row: bytes) -> None:
    sealed = Seal(b"k" * 32).sealed(b"secret", "a.b", b"row")

    with pytest.raises(DamagedValue):
        Seal(b"k" * 32).opened(sealed, column, row)


@pytest.mark.parametrize("length", [0, 1, 23, 24, 39])
def test_opened__a_part_of_it__is_told(length: int) -> None:
    sealed = Seal(b"k" * 32).sealed(b"secret", "a.b", b"row")

    with pytest.raises(DamagedValue):
        Seal(b"k" * 32).opened(sealed[:length], "a.b", b"row")


def test_sealed__the_same_twice__differs() -> None:
    seal = Seal(b"k" * 32)

    assert seal.sealed(b"secret", "a.b", b"row") != seal.sealed(b"secret", "a.b", b"row")


def test_tag__of_a_value_and_a_column__is_the_same_each_time_and_no_other_keys() -> None:
    tag = Seal(b"k" * 32).tag(b"value", "a.b")

    assert Seal(b"k" * 32).tag(b"value", "a.b") == tag
    others = [
        Seal(b"K" * 32).tag(b"value", "a.b"),
        Seal(b"k" * 32).tag(b"values", "a.b"),
        Seal(b"k" * 32).tag(b"value", "a.c"),
    ]
    assert len({tag, *others}) == 4


def test_repr__a_seal__shows_no_key() -> None:
    assert "k" * 8 not in repr(Seal(b"k" * 32))


def test_open__a_new_file__is_private_and_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "client.db"
    store = opened(path)
    with store.writing() as connection:
        connection.execute(insert(schema.groups).values(GROUP))

    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}

    assert modes["client.db"] == 0o600
    assert set(modes.values()) == {0o600}
    store.close()


def test_open__a_file_that_others_may_read__is_private_again(tmp_path: Path) -> None:
    opened(tmp_path / "client.db").close()
    (tmp_path / "client.db").chmod(0o644)

    opened(tmp_path / "client.db").close()

    assert stat.S_IMODE((tmp_path / "client.db").stat().st_mode) == 0o600


@pytest.mark.parametrize(("change", "age"), [(1, "a newer"), (-1, "an older")])
def test_open__another_version__is_told(tmp_path: Path, change: int, age: str) -> None:
    opened(tmp_path / "client.db").close()
    with closing(sqlite3.connect(tmp_path / "client.db")) as connection:
        connection.execute(f"PRAGMA user_version = {schema.VERSION + change}")

    with pytest.raises(StoreError, match=f"which {age} chainkit made"):
        opened(tmp_path / "client.db")


def test_open__another_programs_database__is_told(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "client.db")) as connection:
        connection.execute("CREATE TABLE other (id)")

    with pytest.raises(StoreError, match="a client's database, got another"):
        opened(tmp_path / "client.db")


def test_open__no_database_at_all__is_told(tmp_path: Path) -> None:
    (tmp_path / "client.db").write_bytes(b"letters of somebody else" * 100)

    with pytest.raises(StoreError, match="a database that can be read"):
        opened(tmp_path / "client.db")


def test_open__no_folder__is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="a folder that exists"):
        opened(tmp_path / "none" / "client.db")


def test_open__many_at_once__make_one_database(tmp_path: Path) -> None:
    stores: list[Store] = []

    def make() -> None:
        stores.append(opened(tmp_path / "client.db"))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    sealed = stores[0].seal.sealed(b"secret", "a.b", b"row")
    assert [each.seal.opened(sealed, "a.b", b"row") for each in stores] == [b"secret"] * 8
    for store in stores:
        store.close()
    assert [each.name for each in tmp_path.iterdir()] == ["client.db"]


def test_writing__an_exception__undoes_all_of_it(tmp_path: Path) -> None:
    store = opened(tmp_path / "client.db")

    with pytest.raises(ZeroDivisionError), store.writing() as connection:
        connection.execute(insert(schema.groups).values(GROUP))
        raise ZeroDivisionError

    with store.reading() as connection:
        assert connection.execute(select(schema.groups)).all() == []
    store.close()


def test_writing__another_writes__raises_that_waiting_may_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0)
    first, second = opened(tmp_path / "client.db"), opened(tmp_path / "client.db")

    with first.writing(), pytest.raises(StoreUnavailable), second.writing():
        pass

    with second.writing() as connection:
        connection.execute(insert(schema.groups).values(GROUP))
    first.close()
    second.close()


@pytest.mark.parametrize(("number", "previous"), [(2, 0), (3, 1), (0, 0), (5, 9)])
def test_group_epochs__an_epoch_that_is_not_the_next__is_refused(
    tmp_path: Path, number: int, previous: int
) -> None:
    store = opened(tmp_path / "client.db")
    with store.writing() as connection:
        connection.execute(insert(schema.groups).values(GROUP))
        connection.execute(insert(schema.group_epochs).values(epoch(0, None)))
        connection.execute(insert(schema.group_epochs).values(epoch(1, 0)))

    with pytest.raises(StoreError), store.writing() as connection:
        connection.execute(insert(schema.group_epochs).values(epoch(number, previous)))
    store.close()


def test_group_intents__two_commits_out__are_refused(tmp_path: Path) -> None:
    store = opened(tmp_path / "client.db")
    published = {
        "is_commit": True,
        "group_id": GROUP["id"],
        "data": b"",
        "publish_data": b"",
        "state": schema.IntentState.PUBLISHED,
    }
    with store.writing() as connection:
        connection.execute(insert(schema.groups).values(GROUP))
        connection.execute(insert(schema.group_intents).values(published))
        message = published | {"is_commit": False}
        connection.execute(insert(schema.group_intents).values(message))
        second = insert(schema.group_intents).values(published | {"state": 1})
        identity = connection.execute(second).inserted_primary_key

    with pytest.raises(StoreError) as caught, store.writing() as connection:
        is_second = schema.group_intents.c.id == identity[0]
        connection.execute(update(schema.group_intents).where(is_second).values(state=2))

    assert isinstance(caught.value.__cause__, IntegrityError)
    store.close()

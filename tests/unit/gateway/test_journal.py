from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from chainkit.errors import ConfigurationError, StoreUnavailable
from chainkit.types import BlockReference
from chainkit_client.storage.store import Store
from chainkit_gateway.journal import AtNode, Begun, Journal
from chainkit_gateway.routing import route
from chainkit_gateway.types import Sent, Settlement
from chainkit_indexer.storage import migrate
from chainkit_indexer.storage.database import Database
from support import publishes

COMMIT = route(publishes.commit(), "ann")
UPDATE = route(publishes.identity_update(), "ben")
DIGEST = COMMIT.digest
FIRST = Sent(b"f" * 32, DIGEST, 7, b"raw", 1, 21_000, 1, 2**62)
SECOND = Sent(b"s" * 32, UPDATE.digest, 5, b"raw", 2, 21_000, 1, 3)
BLOCK = BlockReference(9, b"b" * 32)
PAID = Settlement(BLOCK, True, 2**40, 2**62)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal.open(tmp_path / "gateway.db")
    yield opened
    opened.close()


def test_find__nothing_begun__is_none(journal: Journal) -> None:
    assert journal.find(DIGEST) is None
    assert journal.next_nonce() == 0


def test_begin_at_node__opened_again__is_still_there(tmp_path: Path) -> None:
    first = Journal.open(tmp_path / "gateway.db")
    first.begin_at_nodes([AtNode(COMMIT, 1, 100, 42)])
    first.close()

    again = Journal.open(tmp_path / "gateway.db")

    assert again.find(DIGEST) == Begun(DIGEST, "ann", 100, 42, None)
    again.close()


def test_begin_at_node__a_second_node__replaces_the_first(journal: Journal) -> None:
    journal.begin_at_nodes([AtNode(COMMIT, 1, 100, 42)])
    journal.begin_at_nodes([AtNode(replace(COMMIT, client="cleo"), 2, 200, 7)])

    assert journal.find(DIGEST) == Begun(DIGEST, "ann", 200, 7, None)


def test_complete__answer__is_given_again(journal: Journal) -> None:
    journal.begin_at_nodes([AtNode(COMMIT, 1, 100, 42)])

    journal.complete_all([(DIGEST, b"envelope")])

    found = journal.find(DIGEST)
    assert found is not None
    assert found.envelope == b"envelope"


def test_next_nonce__transactions__is_above_all_of_them(journal: Journal) -> None:
    journal.add_transaction(COMMIT, FIRST)
    journal.add_transaction(UPDATE, SECOND)

    assert journal.next_nonce() == 8
    assert journal.transactions_from(5) == [SECOND, FIRST]
    assert journal.transactions_from(6) == [FIRST]


def test_remove_transaction__the_only_one__frees_its_nonce(journal: Journal) -> None:
    journal.add_transaction(COMMIT, FIRST)

    journal.remove_transaction(FIRST)

    assert journal.find(DIGEST) is None
    assert journal.next_nonce() == 0


def test_remove_transaction__replacement__leaves_the_first(journal: Journal) -> None:
    later = replace(FIRST, hash=b"l" * 32, sent_ns=2)
    journal.add_transaction(COMMIT, FIRST)
    journal.add_replacement(later)
    assert journal.transactions_of(DIGEST) == [FIRST, later]

    journal.remove_transaction(later)

    assert journal.transactions_of(DIGEST) == [FIRST]
    assert journal.find(DIGEST) is not None


def test_settle__receipt__stands_until_its_block_is_replaced(journal: Journal) -> None:
    journal.add_transaction(COMMIT, FIRST)
    journal.add_transaction(UPDATE, SECOND)
    journal.settle(FIRST, PAID)

    assert journal.transactions_from(7) == [replace(FIRST, settlement=PAID)]
    assert journal.unsettled_below(8, 10) == [SECOND]
    assert journal.unsettled_below(5, 10) == []
    assert (journal.blocks_from(9), journal.blocks_from(10)) == ([BLOCK], [])
    # More wei than an integer of SQLite holds.
    assert PAID.cost == 2**102

    journal.unsettle(BLOCK)

    assert journal.unsettled_below(8, 10) == [SECOND, FIRST]
    assert journal.unsettled_below(8, 1) == [SECOND]


def test_fallen_from__mined_again_below_its_id__is_told_until_another_transaction_has_risen(
    journal: Journal,
) -> None:
    journal.add_transaction(COMMIT, FIRST)
    journal.settle(FIRST, replace(PAID, sequence_id=62))
    journal.unsettle(BLOCK)
    assert journal.fallen_from(0) == {}

    journal.settle(FIRST, replace(PAID, sequence_id=56))

    assert journal.fallen_from(BLOCK.number) == {DIGEST: 62}
    assert journal.fallen_from(BLOCK.number + 1) == {}
    again = replace(FIRST, hash=b"a" * 32, nonce=8)
    journal.add_transaction(COMMIT, again)
    assert journal.fallen_from(0) == {}
    journal.settle(again, replace(PAID, sequence_id=63))
    assert journal.fallen_from(0) == {}


def test_settle__another_of_its_nonce__takes_the_first_ones_place(journal: Journal) -> None:
    later = replace(FIRST, hash=b"l" * 32, sent_ns=2)
    journal.add_transaction(COMMIT, FIRST)
    journal.add_replacement(later)
    journal.settle(FIRST, PAID)

    journal.settle(later, PAID)

    assert journal.transactions_of(DIGEST) == [FIRST, replace(later, settlement=PAID)]


def test_read__journal__can_be_read_while_it_is_written(journal: Journal, tmp_path: Path) -> None:
    reader = Journal.read(tmp_path / "gateway.db")
    journal.add_transaction(COMMIT, FIRST)

    assert reader.transactions_from(0) == [FIRST]
    reader.close()


@pytest.mark.parametrize("content", [None, b"", b"not a database at all"])
def test_read__no_journal__says_so_and_writes_nothing(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "other.db"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ConfigurationError, match="expected a gateway's journal"):
        Journal.read(path)

    assert (path.read_bytes() if path.exists() else None) == content


@pytest.mark.parametrize("opens", [Journal.open, Journal.read])
def test_open__folder__says_that_it_is_one(
    tmp_path: Path, opens: Callable[[Path], Journal]
) -> None:
    with pytest.raises(ConfigurationError, match="expected a gateway's journal, got a folder"):
        opens(tmp_path)


def of_a_client(path: Path) -> None:
    Store.open(path, "password", 2).close()


def of_an_indexer(path: Path) -> None:
    database = Database(str(path))
    migrate.create(database)
    database.close()


def executed(*statements: str) -> Callable[[Path], None]:
    def execute(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                connection.execute(statement)

    return execute


@pytest.mark.parametrize("opens", [Journal.open, Journal.read])
@pytest.mark.parametrize(
    "make",
    [
        of_a_client,
        of_an_indexer,
        executed("CREATE TABLE publications (digest)", "CREATE TABLE transactions (hash)"),
        executed("PRAGMA application_id = 1"),
    ],
)
def test_open__another_programs_database__is_refused_and_stays_as_it_was(
    tmp_path: Path, make: Callable[[Path], None], opens: Callable[[Path], Journal]
) -> None:
    path = tmp_path / "other.db"
    make(path)
    before = path.read_bytes()

    with pytest.raises(ConfigurationError) as caught:
        opens(path)

    expected = f"journal {path}: expected a gateway's journal, got another database"
    assert str(caught.value) == expected
    assert path.read_bytes() == before


@pytest.mark.parametrize("opens", [Journal.open, Journal.read])
def test_open__newer_version__is_refused_and_stays_as_it_was(
    tmp_path: Path, opens: Callable[[Path], Journal]
) -> None:
    path = tmp_path / "gateway.db"
    Journal.open(path).close()
    executed("PRAGMA user_version = 4")(path)
    before = path.read_bytes()

    with pytest.raises(ConfigurationError) as caught:
        opens(path)

    got = "version 4, which a newer chainkit made"
    assert str(caught.value) == f"journal {path}: expected version 3, got {got}"
    assert path.read_bytes() == before


def test_open__killed_before_its_first_transaction__makes_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    path.touch()

    journal = Journal.open(path)

    journal.add_transaction(COMMIT, FIRST)
    assert journal.transactions_from(0) == [FIRST]
    journal.close()


def test_begin_at_node__file_cannot_be_written__is_a_typed_error(
    journal: Journal, tmp_path: Path
) -> None:
    journal.complete_all([(DIGEST, b"envelope")])
    reader = Journal.read(tmp_path / "gateway.db")

    with pytest.raises(
        StoreUnavailable, match="expected an answer, got attempt to write a readonly"
    ):
        reader.begin_at_nodes([AtNode(COMMIT, 1, 100, 42)])
    reader.close()


def test_open__no_folder__says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected a file that can be written"):
        Journal.open(tmp_path / "none" / "gateway.db")

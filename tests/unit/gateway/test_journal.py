from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit.errors import ConfigurationError
from chainkit_gateway.journal import Begun, Journal

DIGEST, OTHER = b"d" * 32, b"o" * 32


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
    first.begin_at_node(DIGEST, 1, 100, 42)
    first.close()

    again = Journal.open(tmp_path / "gateway.db")

    assert again.find(DIGEST) == Begun(DIGEST, 100, 42, None, None, None)
    again.close()


def test_begin_at_node__a_second_node__replaces_the_first(journal: Journal) -> None:
    journal.begin_at_node(DIGEST, 1, 100, 42)
    journal.begin_at_node(DIGEST, 2, 200, 7)

    assert journal.find(DIGEST) == Begun(DIGEST, 200, 7, None, None, None)


def test_complete__answer__is_given_again(journal: Journal) -> None:
    journal.begin_at_node(DIGEST, 1, 100, 42)

    journal.complete(DIGEST, b"envelope")

    found = journal.find(DIGEST)
    assert found is not None
    assert found.envelope == b"envelope"


def test_next_nonce__transactions__is_above_all_of_them(journal: Journal) -> None:
    journal.begin_at_chain(DIGEST, 1, 7, b"h" * 32, b"raw")
    journal.begin_at_chain(OTHER, 1, 5, b"i" * 32, b"raw")

    assert journal.next_nonce() == 8
    assert [each.digest for each in journal.transactions_from(5)] == [OTHER, DIGEST]
    assert [each.digest for each in journal.transactions_from(6)] == [DIGEST]


def test_forget__refused_transaction__frees_its_nonce(journal: Journal) -> None:
    journal.begin_at_chain(DIGEST, 1, 7, b"h" * 32, b"raw")

    journal.forget(DIGEST)

    assert journal.find(DIGEST) is None
    assert journal.next_nonce() == 0


def test_open__no_folder__says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected a file that can be written"):
        Journal.open(tmp_path / "none" / "gateway.db")

"""Exact costs by client and day, and the most that a client may spend."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from chainkit.service.refusals import Overloaded
from chainkit.types import BlockReference
from chainkit_gateway.cli.costs import costs_command
from chainkit_gateway.daily_sums import Spending, sum_spending
from chainkit_gateway.journal import Journal
from chainkit_gateway.routing import route
from chainkit_gateway.spending import SpendingLimit
from chainkit_gateway.types import Sent, Settlement
from support import publishes

COMMIT = route(publishes.commit(), "ann")
UPDATE = route(publishes.identity_update(), "ben")
DAY_NS = 86_400 * 10**9
NOON = 20_000 * DAY_NS + DAY_NS // 2
DAY = date(2024, 10, 4)
FIRST = Sent(b"f" * 32, COMMIT.digest, 0, b"raw", NOON, 30_000, 1, 10**10)
DEARER = replace(FIRST, hash=b"d" * 32, sent_ns=NOON + DAY_NS, maximum_fee=2 * 10**10)
SECOND = replace(FIRST, hash=b"s" * 32, digest=UPDATE.digest, nonce=1)
PAID = Settlement(BlockReference(9, b"b" * 32), True, 21_001, 10**9 + 7)
COST = 21_001 * (10**9 + 7)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal.open(tmp_path / "gateway.db")
    opened.add_transaction(COMMIT, FIRST)
    opened.add_replacement(DEARER)
    opened.add_transaction(UPDATE, SECOND)
    yield opened
    opened.close()


def test_sum_spending__replaced_and_waiting__counts_once_and_the_dearest() -> None:
    rows = [("ann", FIRST), ("ann", DEARER)]

    assert sum_spending(rows) == [
        Spending(DAY, "ann", waiting=1, reserved=30_000 * 2 * 10**10),
    ]


def test_sum_spending__receipts__are_summed_exactly_by_day_and_client() -> None:
    reverted = replace(SECOND, nonce=3, settlement=replace(PAID, succeeded=False))
    rows = [
        ("ann", replace(FIRST, settlement=PAID)),
        ("ann", DEARER),
        ("ben", replace(SECOND, settlement=PAID)),
        ("ann", replace(SECOND, nonce=2, settlement=PAID)),
        ("ann", reverted),
        ("ann", replace(SECOND, nonce=4, sent_ns=NOON - DAY_NS, settlement=PAID)),
    ]

    assert sum_spending(rows) == [
        Spending(date(2024, 10, 3), "ann", published=1, paid=COST),
        Spending(DAY, "ann", published=2, reverted=1, paid=3 * COST),
        Spending(DAY, "ben", published=1, paid=COST),
    ]


@pytest.mark.conforms("N1")
def test_limit__spent_and_reserved__is_reached_to_the_wei(journal: Journal) -> None:
    reserved = 30_000 * 2 * 10**10
    limit = SpendingLimit(journal, reserved + 5, lambda: NOON)

    limit(COMMIT, 5)
    with pytest.raises(Overloaded, match=r"spending of ann today: .*again after midnight of UTC"):
        limit(COMMIT, 6)
    journal.settle(DEARER, PAID)
    limit(COMMIT, reserved + 5 - COST)
    with pytest.raises(Overloaded):
        limit(COMMIT, reserved + 6 - COST)


def test_limit__another_day_or_client__is_not_reached(journal: Journal) -> None:
    limit = SpendingLimit(journal, 10, lambda: NOON + DAY_NS)

    # The replacement is of today, its nonce of yesterday.
    limit(COMMIT, 10)
    limit(replace(COMMIT, client="cleo"), 10)


def test_costs__journal__are_told_in_words_and_as_json(journal: Journal, tmp_path: Path) -> None:
    journal.settle(FIRST, PAID)
    path = str(tmp_path / "gateway.db")

    words = CliRunner().invoke(costs_command, ["--journal", path])
    answer = CliRunner().invoke(costs_command, ["--journal", path, "--json"])

    assert words.output.splitlines() == [
        "2024-10-04  ann: 1 transaction, 0.000021001000147007 ether (21,001,000,147,007 wei)",
        "2024-10-04  ben: 0 transactions, 0 ether (0 wei) and 1 waiting, at most 0.0003 ether "
        "(300,000,000,000,000 wei)",
        "total: 0.000021001000147007 ether (21,001,000,147,007 wei)",
    ]
    content = json.loads(answer.output)
    assert (content["paid_wei"], content["reserved_wei"]) == (COST, 3 * 10**14)
    assert content["days"][0] == {
        "day": "2024-10-04",
        "client": "ann",
        "published": 1,
        "reverted": 0,
        "waiting": 0,
        "paid_wei": COST,
        "reserved_wei": 0,
    }


def test_costs__nothing_published__is_zero(tmp_path: Path) -> None:
    Journal.open(tmp_path / "empty.db").close()

    result = CliRunner().invoke(costs_command, ["--journal", str(tmp_path / "empty.db")])

    assert result.output == "total: 0 ether (0 wei)\n"

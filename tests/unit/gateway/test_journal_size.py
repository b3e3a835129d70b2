"""A journal's payloads go once nothing needs them, and its totals run along."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from chainkit.types import BlockReference
from chainkit_gateway.daily_sums import Spending, sum_spending
from chainkit_gateway.journal import Journal
from chainkit_gateway.payer_account import PAYLOAD_SECONDS
from chainkit_gateway.spending import spent_today
from chainkit_gateway.types import Publication, Sent, Settlement
from support.gateway import payer_world, publishing_world
from support.gateway.payer_world import COMMIT, UPDATE
from support.seeds import IS_SOAK

DAY_NS = 86_400 * 10**9
NOON = 20_000 * DAY_NS + DAY_NS // 2
LATER_NS = round(PAYLOAD_SECONDS * 10**9) + 1
DEEP = 65
"""Blocks, one more than a reorg is looked for."""
ALL = 2**62
WEI = 2**62


def sent(number: int, **values: object) -> Sent:
    hash_ = number.to_bytes(32, "big")
    first = Sent(hash_, hash_, number, b"raw", NOON, 21_000, 1, 10**10)
    return replace(first, **values)  # type: ignore[arg-type]


def publication(number: int, client: str = "ann") -> Publication:
    return replace(COMMIT, digest=number.to_bytes(32, "big"), client=client)


def paid(block: int, price: int = 7) -> Settlement:
    return Settlement(BlockReference(block, block.to_bytes(32, "big")), True, 21_000, price)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal.open(tmp_path / "journal.db")
    yield opened
    opened.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[payer_world.World]:
    made = payer_world.World(tmp_path / "gateway.db")
    yield made
    made.journal.close()


@pytest.mark.parametrize(
    ("blocks", "waited_ns", "is_kept"),
    [(DEEP, LATER_NS, False), (DEEP - 2, LATER_NS, True), (DEEP, LATER_NS - 2, True)],
)
def test_process_pending__payload_mined_long_ago_and_deep__is_dropped(
    world: payer_world.World, blocks: int, waited_ns: int, is_kept: bool
) -> None:
    world.publisher.publish(COMMIT)
    for _ in range(blocks):
        world.chain.mine()
    world.now_ns += waited_ns

    world.account.process_pending()

    [kept] = world.journal.transactions_of(COMMIT.digest)
    assert bool(kept.raw) == is_kept


def test_publish__again_after_its_payload_was_dropped__gives_the_same_place_and_pays_nothing(
    world: payer_world.World,
) -> None:
    first = world.publisher.publish(COMMIT)
    for _ in range(DEEP):
        world.chain.mine()
    world.now_ns += LATER_NS
    world.account.process_pending()
    before = world.journal.spending()

    again = world.publisher.publish(COMMIT)

    assert again.place == first.place
    assert world.journal.spending() == before
    assert world.publisher.publish(UPDATE).sequence_id > first.sequence_id


def test_publish__again_after_a_nodes_answer_was_dropped__is_found_at_the_node(
    tmp_path: Path,
) -> None:
    world = publishing_world.World(tmp_path / "gateway.db")
    first = world.publish()
    assert world.journal.drop_payloads(ALL, 0, 10) == 1
    world.restart()

    again = world.publish()

    assert again == first
    assert len(world.first.stored) + len(world.second.stored) == 1
    assert world.journal.drop_payloads(ALL, 0, 10) == 1
    world.journal.close()


def test_drop_payloads__many_publications__journal_stays_small(journal: Journal) -> None:
    count, size = 25, 40_000

    sizes = []
    for number in range(count):
        each = sent(number, raw=bytes([number]) * size)
        journal.add_transaction(publication(number), each)
        journal.settle(each, paid(number))
        journal.drop_payloads(ALL, number, 100)
        sizes.append(pages(journal))

    assert max(sizes) < 10 * size < count * size // 2


def pages(journal: Journal) -> int:
    """Bytes of the file's pages; those in the log of writes come on top."""
    with journal._engine.connect() as connection:
        names = ("page_count", "page_size")
        count, size = (connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names)
        return int(count * size)


def steps_of_a_scrape(folder: Path, count: int) -> int:
    """Steps of SQLite's machine while a day of so many transactions is told."""
    path = folder / f"{count}.db"
    journal = Journal.open(path)
    journal.add_transaction(publication(0), sent(0))
    with closing(sqlite3.connect(path)) as connection, connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(transactions)")]
        [row] = connection.execute("SELECT * FROM transactions").fetchall()
        first = dict(zip(names, row, strict=True))
        rows = [
            first | {"hash": number.to_bytes(32, "big"), "nonce": number}
            for number in range(1, count)
        ]
        marks = ", ".join(f":{name}" for name in names)
        connection.executemany(f"INSERT INTO transactions VALUES ({marks})", rows)
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    @event.listens_for(journal._engine, "checkout")
    def watch(driver: sqlite3.Connection, *_: object) -> None:
        driver.set_progress_handler(step, 1)

    assert spent_today(journal, NOON) == 21_000 * 10**10
    assert 0 < steps < 1000
    steps = 0
    spent_today(journal, NOON)
    journal.close()
    return steps


def test_spent_today__ten_and_ten_thousand_transactions__read_as_much(
    tmp_path: Path,
) -> None:
    few, many = (steps_of_a_scrape(tmp_path, count) for count in (10, 10_000))

    assert 0 < few == many


NUMBERS = st.integers(0, 4)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), NUMBERS, st.integers(0, 2)),
        st.tuples(st.just("replace"), NUMBERS, st.integers(1, 9)),
        st.tuples(st.just("remove"), NUMBERS, st.just(0)),
        st.tuples(st.just("settle"), NUMBERS, st.integers(1, 3)),
        st.tuples(st.just("unsettle"), st.integers(1, 3), st.just(0)),
        st.tuples(st.just("drop"), st.integers(0, 4), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=300 if IS_SOAK else 12, deadline=None)
@given(OPERATIONS)
def test_spending__any_changes__is_what_all_transactions_add_up_to(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, int, int]]
) -> None:
    journal = Journal.open(tmp_path_factory.mktemp("journal") / "gateway.db")
    nonces: dict[int, list[Sent]] = {}
    for name, number, other in operations:
        known = nonces.get(number, [])
        if name == "add" and not known:
            # Some are of another day, and each is dear: a day's sum exceeds 64 bits.
            made = sent(number, sent_ns=NOON + other * DAY_NS, maximum_fee=WEI)
            journal.add_transaction(publication(number, f"client {number % 2}"), made)
            nonces[number] = [made]
        elif name == "replace" and known:
            hash_ = bytes([number + 1, len(known)]) * 16
            made = replace(known[0], hash=hash_, maximum_fee=WEI + other)
            journal.add_replacement(made)
            known.append(made)
        elif name == "remove" and known:
            journal.remove_transaction(known.pop())
            nonces = {each: group for each, group in nonces.items() if group}
        elif name == "settle" and known:
            journal.settle(known[-1], paid(other, WEI))
        elif name == "unsettle":
            journal.unsettle(paid(number).block)
        elif name == "drop":
            journal.drop_payloads(ALL, number, 2)

    assert journal.spending() == added_up(journal)
    journal.close()


def added_up(journal: Journal) -> list[Spending]:
    rows = []
    for each in journal.transactions_from(0):
        begun = journal.find(each.digest)
        assert begun is not None
        rows.append((begun.client, each))
    return sum_spending(rows)


def test_open__journal_without_totals__gets_them_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    journal = Journal.open(path)
    for number in range(4):
        journal.add_transaction(publication(number, f"client {number % 2}"), sent(number))
    journal.settle(sent(2), paid(9, WEI))
    before, transactions = journal.spending(), journal.transactions_from(0)
    journal.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        for each in ("TABLE daily_sums", "INDEX payloads_sent", "INDEX payloads_answered"):
            connection.execute(f"DROP {each}")
        connection.execute("PRAGMA user_version = 2")

    journal = Journal.open(path)

    assert journal.spending() == before
    assert journal.transactions_from(0) == transactions
    assert journal.drop_payloads(ALL, 10, 10) == 1
    journal.close()
    Journal.read(path).close()

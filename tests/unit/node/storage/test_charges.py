"""Payers' debts, stored with each envelope, and their sums over any range."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete

from chainkit.protocol.charges import NO_CHARGE, Charge
from chainkit_indexer.storage.store import Store
from chainkit_node.storage import charges, schema
from chainkit_node.storage.charges import compute_report, insert_charges, next_report

PAYERS = [bytes([each]) * 20 for each in (0, 1, 2, 255)]

Log = dict[int, Charge]


@pytest.fixture
def connection(store: Store) -> Iterator[Connection]:
    with store.writing() as opened:
        yield opened


def charged() -> st.SearchStrategy[Charge]:
    sizes = st.integers(1, 2**22 + 1024)
    some = st.builds(Charge, st.sampled_from(PAYERS), st.integers(0, 3), sizes, st.integers(1, 365))
    return st.one_of(some, st.just(NO_CHARGE))


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.dictionaries(st.integers(1, 60), charged(), max_size=40),
    st.lists(st.integers(1, 20), min_size=1, max_size=8),
)
def test_reports__of_ranges_that_follow__bill_each_envelope_once(
    store: Store, log: Log, lengths: list[int]
) -> None:
    with store.writing() as connection:
        connection.execute(delete(schema.charges))
        insert_charges(store, connection, 100, log.items())
        insert_charges(store, connection, 200, [(1, Charge(PAYERS[1], 0, 7, 7))])
        first, billed, messages = 1, Counter[tuple[bytes, str]](), 0
        missing: list[int] = []
        for length in lengths:
            report = compute_report(connection, 100, first, first + length - 1)
            report.check()
            for total in report.totals:
                billed[total.payer, "bytes"] += total.bytes
                billed[total.payer, "byte_days"] += total.byte_days
                messages += total.messages
            messages += report.billed_to_nobody
            missing += [each for run in report.missing for each in run]
            first += length

    covered = {each: charge for each, charge in log.items() if each < first}
    expected = Counter[tuple[bytes, str]]()
    for payer, _, size, days in covered.values():
        if payer:
            expected[payer, "bytes"] += size
            expected[payer, "byte_days"] += size * days
    assert billed == expected
    assert messages == len(covered)
    assert missing == sorted(set(range(1, first)) - covered.keys())


def test_next_report__more_payers_than_one_report_has__ends_earlier(
    store: Store, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charges, "MOST_PAYERS", 2)
    connection.execute(delete(schema.charges))
    log = {each: Charge(PAYERS[each % 4], 0, 10, 1) for each in range(1, 9)}
    insert_charges(store, connection, 100, log.items())

    report = next_report(connection, 100, 1, 8)

    assert (report.first_id, report.last_id) == (1, 2)
    assert len(report.totals) == 2


def test_next_report__more_ids_than_one_report_has__ends_earlier(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charges, "MOST_IDS", 3)
    connection.execute(delete(schema.charges))

    report = next_report(connection, 100, 5, 2**62)

    assert (report.first_id, report.last_id, report.missing) == (5, 7, [range(5, 8)])

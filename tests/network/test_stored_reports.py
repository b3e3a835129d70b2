"""Stored reports on both databases: their order, pages, counts and what is deleted first."""

from __future__ import annotations

import pytest

from chainkit.errors import StoreError
from chainkit_indexer.storage.database import Database
from chainkit_node.storage.reports import (
    FROM_CLIENT,
    FROM_NODE,
    ReportCount,
    ReportKind,
    StoredReport,
    count_reports,
    delete_reports,
    holds_report,
    insert_report,
    next_report_time,
    oldest_reports,
    read_reports_after,
)

LARGEST = 2**63 - 1


def report(
    time: int,
    node_id: int = 200,
    number: int = 5,
    origin: str = FROM_CLIENT,
    weight: str = "proved",
    content: bytes = b"report",
) -> StoredReport:
    digest = time.to_bytes(32, "big")
    return StoredReport(time, node_id, number, origin, weight, digest, content, b"s" * 65)


def store(database: Database, *reports: StoredReport) -> None:
    with database.writing() as connection:
        for each in reports:
            insert_report(connection, each)


def after(database: Database, after_ns: int, limit: int = 100, most_bytes: int = 1000) -> list[int]:
    with database.reading() as connection:
        rows = read_reports_after(connection, after_ns, limit, most_bytes)
    return [row.server_time_ns for row in rows]


@pytest.mark.conforms("N52")
def test_read__after_a_time__gives_later_ones_in_order_as_they_were_stored(
    indexed: Database,
) -> None:
    rows = [report(10), report(LARGEST - 1, node_id=2**32 - 1), report(30)]
    store(indexed, *rows)

    with indexed.reading() as connection:
        found = read_reports_after(connection, 0, 100, 1000)
        about_one = read_reports_after(connection, 0, 100, 1000, node_id=200)

    assert found == [rows[0], rows[2], rows[1]]
    assert about_one == [rows[0], rows[2]]
    assert after(indexed, 10) == [30, LARGEST - 1]
    assert after(indexed, LARGEST) == after(indexed, 2**64 - 1) == []


@pytest.mark.parametrize(
    ("limit", "most_bytes", "expected"),
    [(2, 1000, [1, 2]), (9, 12, [1, 2]), (9, 17, [1, 2]), (9, 1, [1]), (9, 1000, [1, 2, 3])],
)
def test_read__more_than_a_page__ends_within_rows_and_bytes(
    indexed: Database, limit: int, most_bytes: int, expected: list[int]
) -> None:
    store(indexed, *(report(time) for time in (1, 2, 3)))

    assert after(indexed, 0, limit, most_bytes) == expected


def test_next_time__clock_before_or_behind_the_last_report__always_rises(indexed: Database) -> None:
    def next_time(now_ns: int) -> int:
        with indexed.reading() as connection:
            return next_report_time(connection, now_ns)

    assert next_time(7) == 7
    store(indexed, report(7))
    assert (next_time(3), next_time(7), next_time(9)) == (8, 8, 9)


def test_insert__digest_that_is_stored__is_refused_and_known(indexed: Database) -> None:
    store(indexed, report(7))
    with indexed.reading() as connection:
        assert holds_report(connection, report(7).digest)
        assert not holds_report(connection, report(8).digest)

    with pytest.raises(StoreError):
        store(indexed, report(8)._replace(digest=report(7).digest))


def test_count_and_delete__of_a_kind__are_told_apart_and_the_oldest_goes_first(
    indexed: Database,
) -> None:
    kind = ReportKind(200, 5, FROM_CLIENT, "claimed")
    rows = [
        report(3, weight="claimed", content=b"1234"),
        report(2, weight="claimed", content=b"12"),
        report(1),
        report(4, origin=FROM_NODE, weight="claimed"),
        report(5, node_id=300, weight="claimed"),
        report(6, number=4, weight="claimed"),
    ]
    store(indexed, *rows)

    with indexed.writing() as connection:
        counts = count_reports(connection)
        assert len(counts) == 5
        assert counts[kind] == ReportCount(2, 6)
        oldest = list(oldest_reports(connection, kind))
        assert oldest == [(2, 2), (3, 4)]
        delete_reports(connection, [time for time, _ in oldest])
        assert counts.keys() - count_reports(connection).keys() == {kind}

    assert after(indexed, 0) == [1, 4, 5, 6]


def test_oldest__more_than_one_statement_finds__are_all_found_and_deleted(
    indexed: Database,
) -> None:
    store(indexed, *(report(time, content=b"1") for time in range(1, 252)))

    with indexed.writing() as connection:
        times = [time for time, _ in oldest_reports(connection, report(1).kind)]
        delete_reports(connection, times[:-1])

    assert times == list(range(1, 252))
    assert after(indexed, 0) == [251]

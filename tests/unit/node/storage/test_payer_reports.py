"""Payer reports of an originator: consecutive ranges, and what of them is attested."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from chainkit.errors import StoreError
from chainkit_indexer.storage.store import Store
from chainkit_node.storage.payer_reports import (
    MOST_REFUSED,
    RefusedReport,
    StoredPayerReport,
    attested_through,
    insert_attestation,
    insert_refused,
    insert_report,
    mark_attested,
    read_attestations,
    read_refused_reports,
    read_report_at,
    read_reports_behind,
    reported_through,
)


class Undone(Exception):
    pass


@pytest.fixture
def connection(store: Store) -> Iterator[Connection]:
    try:
        with store.writing() as opened:
            yield opened
            raise Undone
    except Undone:
        pass


def report(first: int, last: int, originator_id: int = 100) -> StoredPayerReport:
    return StoredPayerReport(originator_id, first, last, b"report", b"signature", b"", 7, None)


def test_insert__ranges_that_follow__are_all_that_is_taken(connection: Connection) -> None:
    insert_report(connection, report(1, 10))
    insert_report(connection, report(11, 11))

    for first, last in ((1, 10), (11, 20), (13, 20), (12, 11), (0, 3)):
        with pytest.raises(StoreError, match="a range that begins with id 12"):
            insert_report(connection, report(first, last))
    insert_report(connection, report(1, 4, 200))

    assert reported_through(connection, 100) == 11
    assert reported_through(connection, 200) == 4
    assert reported_through(connection, 300) == 0


def test_attested_through__attested_out_of_order__ends_before_the_first_that_waits(
    connection: Connection,
) -> None:
    for first, last in ((1, 10), (11, 20), (21, 30)):
        insert_report(connection, report(first, last))
    insert_report(connection, report(1, 4, 200))
    found = [attested_through(connection, 100)]

    for first in (11, 1, 21):
        mark_attested(connection, 100, first, 9)
        found.append(attested_through(connection, 100))

    assert found == [0, 0, 20, 30]
    assert attested_through(connection, 200) == 0
    assert attested_through(connection, 300) == 0


def test_mark_attested__again__keeps_the_first_moment(connection: Connection) -> None:
    insert_report(connection, report(1, 10))
    for now_ns in (8, 9):
        mark_attested(connection, 100, 1, now_ns)

    found = read_report_at(connection, 100, 10)

    assert found is not None
    assert found == report(1, 10)._replace(attested_ns=8)
    assert read_report_at(connection, 100, 11) is None


def test_attestation__of_one_node_twice__is_stored_once(connection: Connection) -> None:
    insert_report(connection, report(1, 10))
    for node_id, signature in ((300, b"c"), (200, b"b"), (200, b"other")):
        insert_attestation(connection, 100, 1, node_id, signature)

    assert read_attestations(connection, 100, 1) == {200: b"b", 300: b"c"}
    assert read_attestations(connection, 100, 11) == {}


def test_reports_behind__an_id_within_a_range__begin_with_that_range(
    connection: Connection,
) -> None:
    ranges = [(1, 10), (11, 20), (21, 30)]
    for first, last in ranges:
        insert_report(connection, report(first, last))

    found = [read_reports_behind(connection, 100, after, 2) for after in (0, 15, 20, 30)]

    firsts = [[each.first_id for each in page] for page in found]
    assert firsts == [[1, 11], [11, 21], [21], []]


def test_refused__more_than_are_kept__are_left_out(connection: Connection) -> None:
    def refused(number: int, originator_id: int = 100) -> RefusedReport:
        digest = number.to_bytes(32, "big")
        return RefusedReport(originator_id, digest, 1, 10, "reason", b"report", 7)

    kept = [insert_refused(connection, refused(each)) for each in range(MOST_REFUSED + 1)]
    again = insert_refused(connection, refused(0))
    other = insert_refused(connection, refused(0, 200))

    assert kept == [True] * MOST_REFUSED + [False]
    assert (again, other) == (False, True)
    assert len(read_refused_reports(connection)) == MOST_REFUSED + 1

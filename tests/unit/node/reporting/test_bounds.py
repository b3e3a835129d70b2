"""A flood of reports: it is bounded, and takes the place of nobody else's reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.proto import message_api_pb2
from chainkit_node.reporting.bounds import ROW_BYTES, ReportBounds, Share
from chainkit_node.reporting.refusals import Reason, TooManyReports
from support.reporting import (
    ACCUSED,
    OTHER,
    OWN,
    Host,
    claim,
    double,
    gap,
    proof,
    slow,
    small_bounds,
)

WIDE: Final = 1 << 30
QUERY = message_api_pb2.QueryEnvelopesRequest(limit=7)


@pytest.fixture
def hosting(tmp_path: Path) -> Iterator[Callable[[ReportBounds], Host]]:
    hosts: list[Host] = []

    def start(bounds: ReportBounds) -> Host:
        hosts.append(Host(tmp_path / "node.db", bounds))
        return hosts[-1]

    yield start
    for host in hosts:
        host.close()


def reasons(host: Host, *reports: bytes) -> list[Reason | None]:
    errors = host.submit(*reports)
    assert {type(error) for error in errors} <= {TooManyReports, type(None)}
    return [error.reason if isinstance(error, TooManyReports) else None for error in errors]


@pytest.mark.conforms("N54")
def test_flood__claims_of_one_type_about_one_node__lose_their_own_oldest(
    hosting: Callable[[ReportBounds], Host],
) -> None:
    host = hosting(small_bounds(client_claimed=Share(3, WIDE, WIDE)))
    host.submit(slow(0, OTHER), claim(1))

    assert reasons(host, *(slow(number) for number in range(9))) == [None] * 9

    assert [row.report for row in host.rows()] == [
        *(slow(0, OTHER), claim(1)),
        *(slow(number) for number in (6, 7, 8)),
    ]
    assert host.number("stored", type="SLOW_NODE", origin="client") == 4


@pytest.mark.conforms("N54")
def test_flood__of_clients__displaces_no_report_of_the_node_and_no_proof(
    hosting: Callable[[ReportBounds], Host],
) -> None:
    few = Share(2, WIDE, 10 * (ROW_BYTES + 1000))
    host = hosting(small_bounds(client_claimed=few, client_proved=few))
    host.writer.submit_own_liveness(ACCUSED, Misbehavior.SLOW_NODE, QUERY, 1)
    host.writer.submit_own_safety(ACCUSED, Misbehavior.OUT_OF_ORDER, gap(5))
    host.writer.submit_own_safety(ACCUSED, Misbehavior.DUPLICATE_SEQUENCE_ID, double(5))
    host.submit(proof(6))
    first = [row.report for row in host.rows()]

    for start in range(1, 41, 10):
        host.submit(*(slow(number) for number in range(start, start + 10)))
        host.submit(*(claim(number, padding=300) for number in range(start, start + 10)))

    assert [row.report for row in host.rows()][: len(first)] == first
    assert len(host.rows()) <= len(first) + 2 * 2
    assert [row.origin for row in host.rows()[:4]] == ["node"] * 3 + ["client"]


@pytest.mark.conforms("N54")
def test_flood__of_proofs__keeps_the_first_and_refuses_more(
    hosting: Callable[[ReportBounds], Host],
) -> None:
    host = hosting(small_bounds(client_proved=Share(2, WIDE, WIDE)))

    found = reasons(host, *(proof(number) for number in range(1, 5)), proof(1), proof(1, OTHER))

    assert found == [None, None, Reason.FULL, Reason.FULL, None, None]
    assert [row.report for row in host.rows()] == [proof(1), proof(2), proof(1, OTHER)]
    assert host.number("refused_total", reason="full") == 2
    # The node's own proofs have a share of their own.
    host.writer.submit_own_safety(ACCUSED, Misbehavior.DUPLICATE_SEQUENCE_ID, double(9))
    host.restart()
    assert host.rows()[-1].origin == "node"


def test_flood__bytes_about_one_node__take_the_place_of_its_largest_kind(
    hosting: Callable[[ReportBounds], Host],
) -> None:
    host = hosting(small_bounds(client_claimed=Share(100, 12_000, WIDE)))
    host.submit(slow(0), slow(1), *(slow(number, OTHER, 2000) for number in range(4)))

    assert reasons(host, *(claim(number, padding=2000) for number in range(1, 10))) == [None] * 9

    about = [row for row in host.rows() if row.node_id == ACCUSED]
    assert [row.report for row in about[:2]] == [slow(0), slow(1)]
    assert sum(len(row.report) + ROW_BYTES for row in about) <= 12_000
    assert about[-1].report == claim(9, padding=2000)
    assert len([row for row in host.rows() if row.node_id == OTHER]) == 4


def test_flood__bytes_in_all__take_the_place_of_the_node_with_most(
    hosting: Callable[[ReportBounds], Host],
) -> None:
    host = hosting(small_bounds(client_claimed=Share(100, WIDE, 12_000)))
    host.submit(slow(0, OTHER), slow(0, OWN, padding=500))

    assert reasons(host, *(slow(number, padding=2000) for number in range(9))) == [None] * 9

    assert [row.report for row in host.rows()[:2]] == [slow(0, OTHER), slow(0, OWN, padding=500)]
    assert sum(len(row.report) + ROW_BYTES for row in host.rows()) <= 12_000
    assert host.rows()[-1].report == slow(8, padding=2000)


def test_flood__report_that_alone_is_the_largest__is_refused_and_nothing_is_deleted(
    hosting: Callable[[ReportBounds], Host],
) -> None:
    host = hosting(small_bounds(client_claimed=Share(100, 5000, WIDE)))
    host.submit(*(slow(number) for number in range(5)))
    before = host.rows()

    assert reasons(host, claim(1, padding=4000)) == [Reason.FULL]

    assert host.rows() == before
    assert reasons(host, slow(9)) == [None]


def test_bounds__after_a_restart__go_on_from_what_is_stored(
    tmp_path: Path, hosting: Callable[[ReportBounds], Host]
) -> None:
    bounds = small_bounds(client_claimed=Share(2, WIDE, WIDE), client_proved=Share(1, WIDE, WIDE))
    with closing(Host(tmp_path / "node.db", bounds)) as first:
        first.submit(slow(1), slow(2), proof(1))

    host = hosting(bounds)

    assert host.number("stored", type="SLOW_NODE", origin="client") == 2
    assert reasons(host, slow(3), proof(2), proof(1)) == [None, Reason.FULL, None]
    assert [row.report for row in host.rows()] == [slow(2), proof(1), slow(3)]


def test_bounds__by_default__hold_what_the_guide_says() -> None:
    bounds = ReportBounds()

    assert sum(share.bytes for share in bounds.shares.values()) == 3 << 29
    for share in bounds.shares.values():
        # Several of the largest reports fit beside each other.
        assert share.accused_bytes >= 3 * (bounds.report_bytes + ROW_BYTES)
        assert share.bytes >= 8 * share.accused_bytes

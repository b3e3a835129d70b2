"""Three nodes report twice a day for a year, and one of them signs wrong reports each time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chainkit.protocol.charges import Charge
from chainkit.protocol.payer_reports import PayerReport, read_report
from chainkit.protocol.proto import node_api_pb2
from chainkit_node.accounting.books import Outcome
from chainkit_node.storage.charges import compute_report
from chainkit_node.storage.payer_reports import MOST_REFUSED, reported_through
from support.accounting import WAIT_NS, Bookkeeper, bookkeepers, listed
from support.seeds import only_in_soak

A, B, BAD = 100, 200, 300
PAYERS = [bytes([each]) * 20 for each in range(1, 9)]

Lie = Callable[[PayerReport], PayerReport]


def bills_what_it_did_not_store(report: PayerReport) -> PayerReport:
    first, *others = report.totals
    more = first._replace(bytes=first.bytes + 500, byte_days=first.byte_days + 15_000)
    return replace(report, totals=[more, *others])


def forgets_a_payer(report: PayerReport) -> PayerReport:
    first, *others = report.totals
    return replace(report, totals=others, billed_to_nobody=first.messages)


def repeats_the_range_before(report: PayerReport) -> PayerReport:
    length = report.last_id - report.first_id + 1
    return replace(report, first_id=report.first_id - length, last_id=report.last_id - length)


LIES: list[Lie] = [bills_what_it_did_not_store, forgets_a_payer, repeats_the_range_before]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Bookkeeper]]:
    made = bookkeepers(tmp_path, listed(A, B, BAD))
    yield made
    for each in made:
        each.store.close()


def publish(
    nodes: list[Bookkeeper], logs: dict[int, dict[int, Charge]], chance: random.Random
) -> None:
    """Have each node originate for half a day, and all others replicate it."""
    for log_id, log in logs.items():
        new = {
            len(log) + each: Charge(
                chance.choice(PAYERS),
                chance.choice((0, 1, 3)),
                chance.randrange(1, 5_000),
                chance.choice((1, 30, 90, 365)),
            )
            for each in range(1, 7)
        }
        log |= new
        for node in nodes:
            node.holds(log_id, new)


def next_right(bad: Bookkeeper, last_id: int) -> PayerReport:
    with bad.store.reading() as connection:
        first_id = reported_through(connection, BAD) + 1
        return compute_report(connection, BAD, first_id, last_id)


@pytest.mark.conforms("T6")
@pytest.mark.parametrize("days", [4, pytest.param(365, marks=only_in_soak)])
def test_year__a_node_lies_in_each_report__is_named_and_all_books_are_equal(
    nodes: list[Bookkeeper], days: int
) -> None:
    first, second, bad = nodes
    chance = random.Random(days)
    logs: dict[int, dict[int, Charge]] = {each.node_id: {} for each in nodes}
    lies = 0
    for half in range(2 * days):
        publish(nodes, logs, chance)
        right = next_right(bad, len(logs[BAD]))
        lie = LIES[half % 3] if half else LIES[0]
        for node in (first, second):
            assert node.takes(lie(right)) is Outcome.REFUSED
        lies += 1
        for node in nodes:
            node.now_ns += WAIT_NS
            node.makes()
        for _ in range(2):
            for node in nodes:
                for other in nodes:
                    node.catches_up(other)

    for node in (first, second):
        refused = node.refused()
        assert {each.originator_id for each in refused} == {BAD}
        assert len(refused) == min(lies, MOST_REFUSED)
        for each in refused:
            # Anybody can check the evidence: the bad node has signed it.
            message = node_api_pb2.SignedPayerReport.FromString(each.report)
            signed = read_report(message, {BAD: node.listing.nodes[BAD].signing_key})
            assert signed.report.originator_id == BAD
    assert not bad.refused()
    for log_id, log in logs.items():
        books = [each.bytes_of(log_id) for each in nodes]
        assert books[0] == books[1] == books[2]
        assert [each.attested(log_id) for each in nodes] == [len(log)] * 3
        check_bills(first, log_id, log)


def check_bills(node: Bookkeeper, log_id: int, log: dict[int, Charge]) -> None:
    """Each envelope is billed once."""
    billed, owed = Counter[bytes](), Counter[bytes]()
    for report in node.totals(log_id):
        for total in report.totals:
            billed[total.payer] += total.byte_days
    for charge in log.values():
        owed[charge.payer] += charge.bytes * charge.days
    assert billed == owed

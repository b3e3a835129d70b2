"""Books of several nodes: equal to the byte, attested by a majority; what differs is refused."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import insert

from chainkit.errors import MalformedData
from chainkit.protocol.charges import NO_CHARGE, Charge
from chainkit.protocol.payer_reports import PayerReport, PayerTotal, sign_report, written_report
from chainkit_node.accounting.books import Outcome
from chainkit_node.storage import schema
from chainkit_node.storage.charges import compute_report
from chainkit_node.storage.gaps import GapRow, GapState, insert_gap
from support.accounting import MADE_NS, SECOND_NS, WAIT_NS, Bookkeeper, bookkeepers, key_of, listed
from support.seeds import seeds

PAYERS = [bytes([each]) * 20 for each in (1, 2, 3)]
LOG = {each: Charge(PAYERS[each % 3], 0, each * 10, 30) for each in range(1, 11)}
A, B, C = 100, 200, 300

Nodes = tuple[Bookkeeper, Bookkeeper, Bookkeeper]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Bookkeeper]:
    return bookkeepers(tmp_path_factory.mktemp("books"), listed(A, B, C))


@pytest.fixture
def nodes(made: list[Bookkeeper]) -> Nodes:
    for each in made:
        each.forgets()
        each.now_ns = MADE_NS + WAIT_NS
        each.listing = replace(each.listing, nodes=listed(A, B, C).nodes)
    first, second, third = made
    return first, second, third


def right_report(node: Bookkeeper, first: int = 1, last: int = 10) -> PayerReport:
    with node.store.reading() as connection:
        return compute_report(connection, A, first, last)


@pytest.mark.conforms("T6")
def test_report__of_one_node__is_attested_by_the_next_that_asks(nodes: Nodes) -> None:
    a, b, c = nodes
    for each in nodes:
        each.holds(A, LOG)
    assert a.makes() == 1
    assert a.attested(A) == 0

    assert b.asks(a) == [Outcome.STORED]
    assert b.attested(A) == 10
    assert a.asks(b) == [Outcome.KNOWN]
    assert a.attested(A) == 10
    assert c.asks(b) == [Outcome.STORED]

    assert a.bytes_of(A) == b.bytes_of(A) == c.bytes_of(A)
    assert c.attested(A) == 10
    assert not a.refused() + b.refused() + c.refused()


def test_report__of_a_network_of_one__is_attested_by_itself(nodes: Nodes) -> None:
    a = nodes[0]
    a.listing = replace(a.listing, nodes=listed(A).nodes)
    a.holds(A, LOG)

    a.makes()

    assert a.attested(A) == 10


def test_make__before_the_first_envelope_waited_long_enough__makes_none(nodes: Nodes) -> None:
    a = nodes[0]
    assert a.makes() == 0
    a.holds(A, LOG)
    a.now_ns -= SECOND_NS

    assert a.makes() == 0

    a.now_ns += SECOND_NS
    assert (a.makes(), a.makes()) == (1, 0)


def test_make__while_others_are_asked_for_an_id__ends_before_it(nodes: Nodes) -> None:
    a = nodes[0]
    a.holds(A, {each: charge for each, charge in LOG.items() if each not in (4, 8)})
    with a.store.writing() as connection:
        insert_gap(connection, GapRow(A, 4, 4, GapState.OMITTED, 1))
        insert_gap(connection, GapRow(A, 8, 8, GapState.ASKED, 2))

    assert (a.makes(), a.makes()) == (1, 0)

    [report] = a.totals(A)
    assert (report.first_id, report.last_id, list(report.missing)) == (1, 7, [range(4, 5)])


@pytest.mark.parametrize("lacking", [[10], [1], [3, 4], range(1, 11)])
def test_take__node_that_lacks_some__waits_and_accuses_nobody(
    nodes: Nodes, lacking: list[int]
) -> None:
    a, b, c = nodes
    a.holds(A, LOG)
    b.holds(A, {each: charge for each, charge in LOG.items() if each not in lacking})
    c.holds(A, LOG)
    a.makes()

    assert b.asks(a) == [Outcome.WAITS]
    assert b.bytes_of(A) == []

    # Others have computed it: this node, which may never get the envelopes, has their word.
    c.asks(a)
    assert b.asks(c) == [Outcome.STORED]
    assert b.attested(A) == 10
    assert [each.node_id for each in b.reports(A)[0].attestations] == [C]
    assert not b.refused()


def test_take__envelopes_that_the_originator_gave_up__are_no_lie(nodes: Nodes) -> None:
    a, b, c = nodes
    a.holds(A, {each: charge for each, charge in LOG.items() if each != 5})
    b.holds(A, LOG)
    c.holds(A, {each: charge for each, charge in LOG.items() if each != 5})
    a.makes()

    assert b.asks(a) == [Outcome.WAITS]
    assert c.asks(a) == [Outcome.STORED]
    assert not b.refused()


def test_take__two_envelopes_are_known_under_an_id__waits(nodes: Nodes) -> None:
    a, b, _ = nodes
    a.holds(A, LOG)
    b.holds(A, LOG | {5: LOG[5]._replace(payer=PAYERS[0], bytes=999)})
    a.makes()
    with b.store.writing() as connection:
        row = {"originator_id": A, "sequence_id": 5, "envelope": b""}
        connection.execute(insert(schema.disputed_envelopes).values(row))

    assert b.asks(a) == [Outcome.WAITS]
    assert not b.refused()


def billed_more(report: PayerReport) -> PayerReport:
    totals = list(report.totals)
    totals[0] = totals[0]._replace(bytes=totals[0].bytes + 1)
    return replace(report, totals=totals)


def one_not_stored(report: PayerReport) -> PayerReport:
    totals = list(report.totals)
    totals[0] = totals[0]._replace(messages=totals[0].messages + 1)
    return replace(report, totals=totals)


def payer_forgotten(report: PayerReport) -> PayerReport:
    rest = report.totals[1:]
    return replace(report, totals=rest, billed_to_nobody=report.totals[0].messages)


def payer_made_up(report: PayerReport) -> PayerReport:
    moved = report.totals[-1]._replace(payer=b"\xff" * 20)
    return replace(report, totals=[*report.totals[:-1], moved])


@pytest.mark.conforms("T6")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (billed_more, "expected 3 messages, 180 bytes, 5400 byte-days, got 3 messages, 181 bytes"),
        (one_not_stored, "expected 10 ids from 1 to 10, got 11 billed, and 0 missing"),
        (payer_forgotten, "expected 3 messages, 180 bytes, 5400 byte-days, got nothing"),
        (payer_made_up, "payer 0x0303"),
    ],
)
def test_take__report_that_the_envelopes_contradict__is_refused_and_named(
    nodes: Nodes, change: Callable[[PayerReport], PayerReport], reason: str
) -> None:
    _, b, _ = nodes
    b.holds(A, LOG)
    bad = change(right_report(b))

    assert b.takes(bad) is Outcome.REFUSED
    assert b.takes(bad) is Outcome.REFUSED

    [found] = b.refused()
    assert (found.originator_id, found.first_id, found.last_id) == (A, 1, 10)
    assert reason in found.reason
    assert found.report == written_report(sign_report(bad, key_of(A))).SerializeToString()
    assert b.bytes_of(A) == []
    # The honest report is still taken.
    assert b.takes(right_report(b)) is Outcome.STORED


@pytest.mark.parametrize(("first", "last"), [(1, 5), (5, 12), (10, 12), (1, 12)])
def test_take__range_that_overlaps_a_stored_one__is_refused_and_named(
    nodes: Nodes, first: int, last: int
) -> None:
    _, b, _ = nodes
    b.holds(A, LOG | {each: NO_CHARGE for each in (11, 12)})
    assert b.takes(right_report(b)) is Outcome.STORED

    assert b.takes(right_report(b, first, last)) is Outcome.REFUSED

    [found] = b.refused()
    assert found.reason == "it signed another report of ids 1 to 10, too"
    assert len(b.bytes_of(A)) == 1


def test_take__range_that_leaves_ids_out__waits(nodes: Nodes) -> None:
    _, b, _ = nodes
    b.holds(A, LOG)

    assert b.takes(right_report(b, 3, 10)) is Outcome.WAITS
    assert b.takes(right_report(b, 1, 2)) is Outcome.STORED
    assert b.takes(right_report(b, 3, 10)) is Outcome.STORED


def test_take__refused_here_and_signed_by_enough__is_stored_with_its_refusal(nodes: Nodes) -> None:
    a, b, c = nodes
    for each in nodes[:2]:
        each.holds(A, LOG)
    c.holds(A, LOG | {5: LOG[5]._replace(days=31)})
    a.makes()
    b.asks(a)

    assert c.asks(b) == [Outcome.STORED]

    assert c.attested(A) == 10
    assert len(c.refused()) == 1


def test_take__attestations_of_strangers_and_disabled_nodes__count_nothing(nodes: Nodes) -> None:
    a, b, c = nodes
    for each in (a, b):
        each.holds(A, LOG)
    a.makes()
    b.asks(a)
    [message] = b.reports(A)
    message.attestations.add(node_id=999, signature=message.attestations[0].signature)
    message.attestations.add(node_id=C, signature=message.attestations[0].signature)
    c.listing = replace(c.listing, nodes=listed(A, B, C, disabled=B).nodes)

    assert c.books.take(message, c.listing) is Outcome.WAITS
    assert c.attested(A) == 0


def test_take__report_of_an_unknown_node__is_nobodys(nodes: Nodes) -> None:
    _, b, _ = nodes

    with pytest.raises(MalformedData, match="one of a known node"):
        b.takes(PayerReport(999, 1, 1, [], 0, [PayerTotal(PAYERS[0], 1, 1, 1)]))


def test_take__own_report_from_before_a_restore__is_taken_back(nodes: Nodes) -> None:
    a, b, _ = nodes
    for each in (a, b):
        each.holds(A, LOG)
    a.makes()
    b.asks(a)
    a.forgets()

    assert a.asks(b) == [Outcome.STORED]

    assert a.bytes_of(A) == b.bytes_of(A)
    a.holds(A, LOG)
    assert a.makes() == 0


@pytest.mark.conforms("T6")
@pytest.mark.parametrize("seed", seeds(3, 2, 200))
def test_books__random_traffic_gaps_and_questions__agree_and_bill_each_envelope_once(
    nodes: Nodes, seed: int
) -> None:
    chance = random.Random(seed)
    logs: dict[int, dict[int, Charge]] = {each.node_id: {} for each in nodes}
    waiting: dict[tuple[int, int], list[int]] = {}
    for _ in range(chance.randrange(5, 40)):
        node = chance.choice(nodes)
        log = logs[node.node_id]
        act = chance.random()
        if act < 0.5:
            new = {len(log) + each: charge_by(chance) for each in range(1, chance.randrange(2, 6))}
            log |= new
            node.holds(node.node_id, new)
            for other in nodes:
                if other is not node:
                    waiting.setdefault((other.node_id, node.node_id), []).extend(new)
        elif act < 0.7:
            node.makes()
        elif act < 0.85:
            arrive(node, logs, waiting, chance)
        else:
            node.asks(chance.choice(nodes))
    settle(nodes, logs, waiting, chance)

    assert not [each.refused() for each in nodes if each.refused()]
    for originator_id, log in logs.items():
        books = [each.bytes_of(originator_id) for each in nodes]
        assert books[0] == books[1] == books[2]
        assert [each.attested(originator_id) for each in nodes] == [len(log)] * 3
        billed = Counter[bytes]()
        for report in nodes[0].totals(originator_id):
            for total in report.totals:
                billed[total.payer] += total.byte_days
        owed = Counter[bytes]()
        for charge in log.values():
            if charge.payer:
                owed[charge.payer] += charge.bytes * charge.days
        assert billed == owed


def charge_by(chance: random.Random) -> Charge:
    if chance.random() < 0.1:
        return NO_CHARGE
    size, days = chance.randrange(1, 10**6), chance.randrange(1, 366)
    return Charge(chance.choice(PAYERS), chance.randrange(4), size, days)


def arrive(
    node: Bookkeeper,
    logs: dict[int, dict[int, Charge]],
    waiting: dict[tuple[int, int], list[int]],
    chance: random.Random,
) -> None:
    """Have some envelopes of others come, in any order."""
    for (receiver, originator_id), ids in waiting.items():
        if receiver == node.node_id:
            some = [each for each in ids if chance.random() < 0.7]
            node.holds(originator_id, {each: logs[originator_id][each] for each in some})
            ids[:] = [each for each in ids if each not in some]


def settle(
    nodes: Nodes,
    logs: dict[int, dict[int, Charge]],
    waiting: dict[tuple[int, int], list[int]],
    chance: random.Random,
) -> None:
    """Have everything come, all reports made, and everybody ask everybody."""
    for _ in range(20):
        for node in nodes:
            arrive(node, logs, waiting, chance)
    for node in nodes:
        node.makes()
    for _ in range(2):
        for node in nodes:
            for other in nodes:
                node.asks(other)

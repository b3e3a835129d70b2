"""Reports that a node takes from itself and from clients: judged, signed, stored once."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from chainkit.errors import StoreUnavailable
from chainkit.misbehavior.report import liveness_report, safety_report
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.reports import misbehavior_digest
from chainkit.service.refusals import NotReady
from chainkit.signatures import recover_public_key
from chainkit_indexer.storage.store import Store
from chainkit_node.reporting.refusals import (
    InvalidReport,
    LargeReport,
    RefutedReport,
    TooManyWaiting,
)
from chainkit_node.reporting.writer import LEAST_CHARGE, MOST_WAITING_BYTES
from support.reporting import (
    ACCUSED,
    KEYS,
    LISTING,
    NOW_NS,
    OTHER,
    OWN,
    Host,
    claim,
    double,
    envelope,
    gap,
    proof,
    slow,
)

QUERY = message_api_pb2.QueryEnvelopesRequest(limit=7)
DUPLICATE = Misbehavior.DUPLICATE_SEQUENCE_ID


@pytest.mark.conforms("N51")
def test_submit__own_and_clients__are_stored_and_tell_who_saw_it(host: Host) -> None:
    host.writer.submit_own_safety(ACCUSED, DUPLICATE, double(5))
    host.writer.submit_own_liveness(OTHER, Misbehavior.SLOW_NODE, QUERY, 123)
    assert host.submit(claim(8), slow(1)) == [None, None]

    found = [
        (row.origin, row.weight, report.is_from_node, report.node_id, report.misbehavior)
        for row, report in zip(host.rows(), host.reports(), strict=True)
    ]

    assert found == [
        ("node", "proved", True, ACCUSED, DUPLICATE),
        ("node", "claimed", True, OTHER, Misbehavior.SLOW_NODE),
        ("client", "claimed", False, ACCUSED, Misbehavior.OUT_OF_ORDER),
        ("client", "claimed", False, ACCUSED, Misbehavior.SLOW_NODE),
    ]
    assert host.reports()[1].response_time_ns == 123
    assert host.reports()[0].reporter_time_ns == NOW_NS
    assert host.number("stored", type="SLOW_NODE", origin="node") == 1


@pytest.mark.conforms("N51")
def test_submit__client_that_claims_to_be_a_node__is_refused(host: Host) -> None:
    reports = [
        safety_report(ACCUSED, DUPLICATE, double(5), NOW_NS, is_from_node=True),
        liveness_report(ACCUSED, Misbehavior.SLOW_NODE, QUERY, 5, NOW_NS, is_from_node=True),
    ]

    errors = host.submit(*reports)

    assert [type(error) for error in errors] == [InvalidReport] * 2
    assert "submitted_by_node false" in str(errors[0])
    assert host.rows() == []
    assert host.number("refused_total", reason="invalid") == 2


@pytest.mark.conforms("N52")
def test_submit__any_report__is_signed_by_the_node_that_hosts_it(host: Host) -> None:
    host.submit(proof(5))
    host.writer.submit_own_safety(ACCUSED, Misbehavior.OUT_OF_ORDER, gap(8))
    host.restart()

    for row in host.rows():
        digest = misbehavior_digest(row.report)
        assert recover_public_key(row.signature, digest) == KEYS[OWN].public_key
    assert host.rows()[0].report == proof(5)


@pytest.mark.conforms("N52")
def test_submit__clock_that_goes_back__times_rise_all_the_same(host: Host) -> None:
    host.submit(proof(5), proof(6))
    host.now_ns -= 10**9
    host.restart()
    host.submit(proof(7))
    host.now_ns += 2 * 10**9
    host.submit(proof(8))

    times = [row.server_time_ns for row in host.rows()]
    assert times == [NOW_NS, NOW_NS + 1, NOW_NS + 2, NOW_NS + 10**9]


@pytest.mark.conforms("N54")
@pytest.mark.parametrize(
    ("misbehavior", "evidence"),
    [
        (DUPLICATE, [envelope(5), envelope(6)]),
        (DUPLICATE, [envelope(5), envelope(5)]),
        (DUPLICATE, double(5, OTHER)),
        (Misbehavior.OUT_OF_ORDER, [envelope(6), envelope(5)]),
        (Misbehavior.INVALID_PAYLOAD, [envelope(5)]),
        (Misbehavior.CAUSAL_ORDERING, [envelope(5)]),
        (Misbehavior.BLOCKCHAIN_INCONSISTENCY, [envelope(5)]),
        (DUPLICATE, [b"\x0a\x01x"]),
    ],
    ids=[
        "two ids",
        "one twice",
        "of another",
        "in order",
        "valid",
        "no cycle",
        "not the chain",
        "odd",
    ],
)
def test_submit__evidence_that_does_not_show_it__is_never_stored(
    host: Host, misbehavior: Misbehavior, evidence: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    host.writer.submit_own_safety(ACCUSED, misbehavior, evidence)
    report = safety_report(ACCUSED, misbehavior, evidence, NOW_NS, is_from_node=False)
    [error] = host.submit(report)

    assert type(error) is RefutedReport
    assert host.rows() == []
    assert host.number("refused_total", reason="refuted") == 2
    assert "a report of this node is not stored: misbehavior report: expected evidence" in (
        caplog.text
    )


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (b"\xff", "expected an UnsignedMisbehaviorReport"),
        (b"", "expected a type from 1 to 8"),
        (proof(5).replace(b"\x10\xc8\x01", b"\x10\x64", 1), "node 100 signed none"),
        (safety_report(400, DUPLICATE, double(5), NOW_NS, False), "expected a node of the reg"),
    ],
    ids=["other bytes", "empty", "innocent", "unknown"],
)
def test_submit__report_about_nobody_or_of_other_bytes__is_refused(
    host: Host, report: bytes, words: str
) -> None:
    [error] = host.submit(report)

    assert isinstance(error, InvalidReport) and words in str(error)
    assert host.rows() == []


def test_submit__client_whose_clock_is_ahead__is_refused_by_how_much(host: Host) -> None:
    time_ns = NOW_NS + 301 * 10**9
    errors = host.submit(proof(1, time=time_ns)) + host.submit(claim(2, time=time_ns))

    expected = "reporter's clock: expected one at most 300 s ahead of this node's, got one 301 s"
    assert [type(each) for each in errors] == [InvalidReport] * 2
    assert all(str(each).startswith(expected) for each in errors)
    assert host.rows() == []
    assert host.submit(proof(1, time=NOW_NS + 300 * 10**9), proof(2, time=0)) == [None, None]


def test_submit__about_the_node_itself__is_hosted_and_counted(host: Host) -> None:
    assert host.submit(proof(5, OWN), claim(8, OWN), slow(1, OWN)) == [None] * 3

    assert [row.node_id for row in host.rows()] == [OWN] * 3
    assert host.number("about_self_total") == 1


@pytest.mark.conforms("N54")
def test_submit__what_is_stored_already__is_answered_and_not_stored_again(host: Host) -> None:
    host.writer.submit_own_safety(ACCUSED, DUPLICATE, double(5))
    # Another time, the other order, and an envelope more: the same failure.
    evidence = [*reversed(double(5)), envelope(9)]
    again = safety_report(ACCUSED, DUPLICATE, evidence, NOW_NS + 9, is_from_node=False)
    assert host.submit(again, again, slow(1), slow(1), slow(2)) == [None] * 5
    host.restart()
    assert host.submit(again, slow(2)) == [None, None]

    assert [(row.origin, row.type) for row in host.rows()] == [
        ("node", DUPLICATE),
        ("client", Misbehavior.SLOW_NODE),
        ("client", Misbehavior.SLOW_NODE),
    ]


def test_submit__client_claims_what_the_node_sees_later__the_nodes_own_is_stored_too(
    host: Host,
) -> None:
    host.submit(claim(5))
    host.writer.submit_own_safety(ACCUSED, Misbehavior.OUT_OF_ORDER, gap(5))
    host.writer.submit_own_safety(ACCUSED, Misbehavior.OUT_OF_ORDER, gap(5))
    host.submit(claim(5, time=NOW_NS + 1))

    assert [row.origin for row in host.rows()] == ["client", "node"]


def test_submit__report_beyond_its_bytes__is_refused_with_the_reason(host: Host) -> None:
    host.bounds = replace(host.bounds, report_bytes=3000, liveness_bytes=300)
    host.restart()

    errors = host.submit(proof(5, padding=1500), slow(1, padding=300), slow(1, padding=100))

    assert [type(error) for error in errors] == [LargeReport, LargeReport, type(None)]
    assert "expected at most 3000 bytes; two envelopes are enough" in str(errors[0])
    assert host.number("refused_total", reason="too_large") == 2


def test_submit__registry_not_followed_yet__is_not_ready(host: Host) -> None:
    host.directory.now = replace(LISTING, nodes={}, block=None)
    host.writer.submit_own_safety(ACCUSED, DUPLICATE, double(5))

    [error] = host.submit(proof(5))

    assert isinstance(error, NotReady)
    assert host.number("refused_total", reason="unavailable") == 2
    host.directory.now = LISTING
    assert host.submit(proof(5)) == [None]


def test_submit__database_that_fails_at_the_commit__counts_nothing_that_was_undone(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.submit(proof(5))

    def fails(*arguments: Any) -> int:
        raise StoreUnavailable("database", "an answer", "none")

    with monkeypatch.context() as patch:
        patch.setattr("chainkit_node.reporting.writer.insert_report", fails)
        [error] = host.submit(proof(6))

    assert isinstance(error, StoreUnavailable)
    assert host.submit(proof(7)) == [None]
    assert host.number("stored", type="DUPLICATE_SEQUENCE_ID", origin="client") == 2


@pytest.mark.conforms("N54")
def test_submit__clients_that_fill_the_queue__keep_out_no_report_of_the_node(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, begin = Event(), Event()
    writing = Store.writing

    def waits(store: Store) -> Any:
        entered.set()
        assert begin.wait(60)
        return writing(store)

    monkeypatch.setattr(Store, "writing", waits)
    answers = [host.writer.submit_for_client(slow(0))]
    assert entered.wait(60)
    room = MOST_WAITING_BYTES // LEAST_CHARGE - 1
    answers += [host.writer.submit_for_client(slow(number)) for number in range(1, room + 1)]
    with pytest.raises(TooManyWaiting):
        host.writer.submit_for_client(slow(room + 1))
    host.writer.submit_own_safety(ACCUSED, DUPLICATE, double(5))
    answers[3].cancel()
    begin.set()
    host.restart()

    assert host.number("refused_total", reason="waiting") == 1
    assert [row.type for row in host.rows() if row.origin == "node"] == [DUPLICATE]
    assert [answer.exception(60) for answer in answers if not answer.cancelled()] == ([None] * room)
    assert host.submit(slow(room + 2)) == [None]


def test_submit__fault_of_our_own__is_counted_and_logged_and_the_next_is_stored(
    host: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*arguments: Any) -> None:
        raise RuntimeError("a fault")

    with monkeypatch.context() as patch:
        patch.setattr("chainkit_node.reporting.judgement.judge_safety", fails)
        host.writer.submit_own_safety(ACCUSED, DUPLICATE, double(5))
        errors = host.submit(proof(5), slow(1))

    assert [type(error) for error in errors] == [RuntimeError, type(None)]
    assert host.number("refused_total", reason="fault") == 2
    assert "a report of this node is not stored: a fault" in caplog.text
    assert host.submit(proof(5)) == [None]


def test_submit__evidence_of_the_nodes_own_that_does_not_parse__is_counted_and_not_raised(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.writer.submit_own_safety(ACCUSED, DUPLICATE, [b"\xff"])

    assert "expected a serialized OriginatorEnvelope" in caplog.text
    assert host.number("refused_total", reason="invalid") == 1

"""Signed reports of every type taken apart."""

from __future__ import annotations

import pytest

from chainkit.errors import MalformedData
from chainkit.misbehavior.signed import parse_signed
from chainkit.misbehavior.types import Misbehavior, Severity
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.reports import sign_report
from support.audit.identities import key_of
from support.council.triage import AUDITOR, liveness_report, safety_report

LIVENESS = [each for each in Misbehavior if each.is_liveness]
SAFETY = [each for each in Misbehavior if not each.is_liveness]
ENVELOPE = b"\x0a\x01\x00"


@pytest.mark.conforms("3.2.7-5")
def test_types__are_the_protocols() -> None:
    names = {number: name for name, number in message_api_pb2.Misbehavior.items() if number}

    assert {each.value: f"MISBEHAVIOR_{each.name}" for each in Misbehavior} == names
    assert [each.name for each in LIVENESS] == ["UNRESPONSIVE_NODE", "SLOW_NODE", "FAILED_REQUEST"]
    assert Misbehavior.BLOCKCHAIN_INCONSISTENCY.severity is Severity.CRITICAL
    assert [each.rank for each in Severity] == [0, 1, 2]


@pytest.mark.parametrize("misbehavior", LIVENESS)
@pytest.mark.parametrize("is_from_node", [True, False])
def test_parse__liveness_report__says_who_accuses_whom(
    misbehavior: Misbehavior, is_from_node: bool
) -> None:
    report = parse_signed(liveness_report(300, key_of(100), misbehavior, 1, is_from_node))

    assert (report.report.node_id, report.report.misbehavior) == (300, misbehavior)
    assert report.reporter == key_of(100).public_key
    assert report.report.is_from_node is is_from_node


@pytest.mark.parametrize("misbehavior", SAFETY)
def test_parse__safety_report__says_who_accuses_whom(misbehavior: Misbehavior) -> None:
    report = parse_signed(safety_report(300, AUDITOR, misbehavior, ENVELOPE))

    assert (report.report.misbehavior, report.reporter) == (misbehavior, AUDITOR.public_key)
    assert report.report.envelopes == (ENVELOPE,)


def test_parse__stored_at_another_time__is_the_same_report() -> None:
    data = liveness_report(300, key_of(100))
    stored = message_api_pb2.MisbehaviorReport.FromString(data)
    stored.server_time_ns = 5

    assert parse_signed(stored.SerializeToString()) == parse_signed(data)
    assert parse_signed(liveness_report(300, key_of(100), time_ns=2)) != parse_signed(data)


@pytest.mark.conforms("3.2.8-1")
def test_parse__altered_after_signing__is_not_the_signers() -> None:
    signed = message_api_pb2.MisbehaviorReport.FromString(liveness_report(300, key_of(100)))
    other = message_api_pb2.MisbehaviorReport.FromString(liveness_report(200, key_of(100)))
    signed.unsigned_misbehavior_report = other.unsigned_misbehavior_report

    assert parse_signed(signed.SerializeToString()).reporter != key_of(100).public_key


def test_parse__unsigned_report__is_refused() -> None:
    signed = message_api_pb2.MisbehaviorReport.FromString(liveness_report(300, key_of(100)))
    unsigned = signed.unsigned_misbehavior_report
    signed.ClearField("signature")

    for data in (signed.SerializeToString(), unsigned, b""):
        with pytest.raises(MalformedData, match="got nobody's signature"):
            parse_signed(data)


def test_parse__report_that_lacks_what_its_type_asks_for__is_refused() -> None:
    report = message_api_pb2.UnsignedMisbehaviorReport(
        misbehaving_node_id=300, type="MISBEHAVIOR_SLOW_NODE"
    )

    with pytest.raises(MalformedData, match="what the liveness failure was, got nothing"):
        parse_signed(sign_report(report.SerializeToString(), AUDITOR))


@pytest.mark.parametrize("data", [b"\xff\x1b[2J", b"\x12\x02\xff\xff\x1a\x02\x0a\x00"])
def test_parse__other_bytes__is_refused(data: bytes) -> None:
    with pytest.raises(MalformedData) as caught:
        parse_signed(data)

    assert str(caught.value).isprintable()

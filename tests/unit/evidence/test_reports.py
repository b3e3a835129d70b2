"""A report apart from its signature, and who signed exactly this one."""

from __future__ import annotations

import pytest

from chainkit.errors import InvalidSignature, MalformedData
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.reports import (
    reporter_of,
    sign_inconsistency_report,
    sign_report,
    unsigned_inconsistency_report,
)
from support.audit.audit_exports import base_posts, key_of
from support.audit.bundles import ACCUSED, REPORTED_AT, REPORTER

ENVELOPE = base_posts()[0].envelope(key_of(ACCUSED))
UNSIGNED = unsigned_inconsistency_report(ACCUSED, [ENVELOPE], REPORTED_AT)
SIGNED = sign_report(UNSIGNED, REPORTER)


def test_unsigned_report__signed_afterwards__is_the_report_signed_at_once() -> None:
    assert sign_inconsistency_report(ACCUSED, [ENVELOPE], REPORTED_AT, REPORTER) == SIGNED
    report = message_api_pb2.UnsignedMisbehaviorReport.FromString(UNSIGNED)
    assert report.type == message_api_pb2.MISBEHAVIOR_BLOCKCHAIN_INCONSISTENCY
    assert not report.submitted_by_node


def test_reporter_of__this_report__is_who_signed_it() -> None:
    assert reporter_of(SIGNED, UNSIGNED) == REPORTER.public_key


@pytest.mark.parametrize(
    "unsigned",
    [
        UNSIGNED + b"\x30\x01",
        unsigned_inconsistency_report(ACCUSED, [ENVELOPE], REPORTED_AT + 1),
        unsigned_inconsistency_report(ACCUSED + 1, [ENVELOPE], REPORTED_AT),
        b"",
    ],
)
def test_reporter_of__another_report__is_malformed(unsigned: bytes) -> None:
    with pytest.raises(MalformedData, match="the unsigned report beside it"):
        reporter_of(SIGNED, unsigned)


def test_reporter_of__no_report_or_no_signature__is_told_apart() -> None:
    with pytest.raises(MalformedData, match="a MisbehaviorReport"):
        reporter_of(b"\xff\xff", UNSIGNED)
    unsigned_only = message_api_pb2.MisbehaviorReport(unsigned_misbehavior_report=UNSIGNED)
    with pytest.raises(InvalidSignature):
        reporter_of(unsigned_only.SerializeToString(), UNSIGNED)


def test_unsigned_report__evidence_that_is_none__is_malformed() -> None:
    with pytest.raises(MalformedData, match="a serialized OriginatorEnvelope"):
        unsigned_inconsistency_report(ACCUSED, [b"\xff\xff"], REPORTED_AT)

"""Unsigned reports of every type: written, read, and refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedData
from chainkit.misbehavior.report import (
    LONGEST_RESPONSE_NS,
    LivenessRequest,
    Report,
    liveness_report,
    parse_unsigned,
    safety_report,
)
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.proto import message_api_pb2
from support.damage import damaged
from support.originated import ACCUSED, NOW_NS, signed

LIVENESS = [each for each in Misbehavior if each.is_liveness]
SAFETY = [each for each in Misbehavior if not each.is_liveness]
REQUESTS: list[tuple[str, LivenessRequest]] = [
    ("subscribe", message_api_pb2.SubscribeEnvelopesRequest()),
    ("query", message_api_pb2.QueryEnvelopesRequest(limit=7)),
    ("publish", message_api_pb2.PublishPayerEnvelopesRequest()),
]
WHOLE = safety_report(ACCUSED, Misbehavior.OUT_OF_ORDER, [signed(ACCUSED, 1)], NOW_NS, True)


@pytest.mark.parametrize("misbehavior", SAFETY)
@pytest.mark.parametrize("is_from_node", [True, False])
def test_parse__safety_report__is_what_was_written(
    misbehavior: Misbehavior, is_from_node: bool
) -> None:
    envelopes = (signed(ACCUSED, 2), signed(ACCUSED, 1))

    written = safety_report(ACCUSED, misbehavior, envelopes, NOW_NS, is_from_node)

    expected = Report(ACCUSED, misbehavior, NOW_NS, is_from_node, envelopes, None)
    assert parse_unsigned(written) == expected


@pytest.mark.parametrize("misbehavior", LIVENESS)
@pytest.mark.parametrize(("name", "request_"), REQUESTS)
def test_parse__liveness_report__is_what_was_written(
    misbehavior: Misbehavior, name: str, request_: LivenessRequest
) -> None:
    written = liveness_report(ACCUSED, misbehavior, request_, 1_500, NOW_NS, True)

    assert parse_unsigned(written) == Report(ACCUSED, misbehavior, NOW_NS, True, (), 1_500)
    raw = message_api_pb2.UnsignedMisbehaviorReport.FromString(written)
    assert raw.liveness.WhichOneof("request") == name
    assert getattr(raw.liveness, name) == request_


@given(st.integers(0, 2**64))
def test_liveness__time_longer_than_the_field__is_the_longest(response_time_ns: int) -> None:
    written = liveness_report(
        *(ACCUSED, Misbehavior.UNRESPONSIVE_NODE, REQUESTS[1][1], response_time_ns, NOW_NS, True)
    )

    assert parse_unsigned(written).response_time_ns == min(response_time_ns, LONGEST_RESPONSE_NS)


def test_safety__evidence_that_is_no_envelope__is_refused() -> None:
    with pytest.raises(MalformedData, match="a serialized OriginatorEnvelope"):
        safety_report(ACCUSED, Misbehavior.OUT_OF_ORDER, [b"\xff"], NOW_NS, True)


@pytest.mark.conforms("3.2.7-6")
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"type": 0}, "a type from 1 to 8"),
        ({"type": 9}, "a type from 1 to 8"),
        ({"type": 1}, "what the liveness failure was, got nothing"),
        ({"type": 1, "safety": {"envelopes": [{}]}}, "what the liveness failure was, got safety"),
        ({"type": 8, "liveness": {}}, "what the safety failure was, got liveness"),
        *(({"type": each.value, "safety": {}}, "envelopes, got none") for each in SAFETY),
    ],
)
def test_parse__type_without_its_failure__is_refused(fields: dict[str, object], words: str) -> None:
    report = message_api_pb2.UnsignedMisbehaviorReport(misbehaving_node_id=300, **fields)  # type: ignore[arg-type]

    with pytest.raises(MalformedData, match=words):
        parse_unsigned(report.SerializeToString())


@given(st.one_of(st.binary(max_size=60), damaged(WHOLE)))
def test_parse__any_bytes__is_a_report_or_malformed(data: bytes) -> None:
    try:
        report = parse_unsigned(data)
    except MalformedData as error:
        assert str(error).isprintable()
        return
    assert report.misbehavior in Misbehavior
    assert bool(report.envelopes) is not report.misbehavior.is_liveness
    assert (report.response_time_ns is None) is not report.misbehavior.is_liveness

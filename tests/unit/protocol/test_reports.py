from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import InvalidSignature, MalformedData
from chainkit.protocol.envelope import blockchain_proof_digest
from chainkit.protocol.proto import envelopes_pb2, message_api_pb2
from chainkit.protocol.reports import (
    BlockchainInconsistencyReport,
    misbehavior_digest,
    parse_inconsistency_report,
    sign_inconsistency_report,
)
from chainkit.signatures import SigningKey
from support.vectors import case_name, from_hex, load

REPORTS = load("misbehavior_reports")["cases"]
ENVELOPES = {
    case["name"]: from_hex(case["originator_envelope"]) for case in load("envelopes")["cases"]
}
ENVELOPE = ENVELOPES["first group message"]
KEY = SigningKey(b"\1" * 32)


def evidence_of(case: dict[str, Any]) -> tuple[bytes, ...]:
    return tuple(ENVELOPES[name] for name in case["envelopes"])


def signed(report: message_api_pb2.UnsignedMisbehaviorReport) -> bytes:
    unsigned = report.SerializeToString()
    message = message_api_pb2.MisbehaviorReport(unsigned_misbehavior_report=unsigned)
    message.signature.bytes = KEY.sign(misbehavior_digest(unsigned))
    return message.SerializeToString()


@pytest.mark.conforms("3.2.8-1")
@pytest.mark.parametrize("case", REPORTS, ids=case_name)
def test_digest__report_of_a_vector__gives_the_same_bytes(case: dict[str, Any]) -> None:
    unsigned = from_hex(case["unsigned_misbehavior_report"])

    assert misbehavior_digest(unsigned) == from_hex(case["digest"])


def test_digest__bytes_that_a_blockchain_proof_signs__differs() -> None:
    assert misbehavior_digest(b"bytes") != blockchain_proof_digest(b"bytes", b"")


@pytest.mark.conforms("3.2.8-1")
@pytest.mark.parametrize(
    "case", [case for case in REPORTS if not case["submitted_by_node"]], ids=case_name
)
def test_sign__report_of_a_vector__gives_the_same_bytes_without_a_servers_time(
    case: dict[str, Any],
) -> None:
    report = sign_inconsistency_report(
        case["misbehaving_node_id"],
        evidence_of(case),
        int(case["reporter_time_ns"]),
        SigningKey(from_hex(case["private_key"])),
    )

    stored = message_api_pb2.MisbehaviorReport.FromString(report)
    assert stored.server_time_ns == 0
    assert stored.unsigned_misbehavior_report == from_hex(case["unsigned_misbehavior_report"])
    assert stored.signature.bytes == from_hex(case["signature"])
    stored.server_time_ns = int(case["server_time_ns"])
    assert stored.SerializeToString() == from_hex(case["misbehavior_report"])


@pytest.mark.parametrize("case", REPORTS, ids=case_name)
def test_parse__report_of_a_vector__gives_signer_and_evidence(case: dict[str, Any]) -> None:
    report = parse_inconsistency_report(from_hex(case["misbehavior_report"]))

    assert report == BlockchainInconsistencyReport(
        reporter_public_key=from_hex(case["public_key"]),
        reporter_time_ns=int(case["reporter_time_ns"]),
        misbehaving_node_id=case["misbehaving_node_id"],
        envelopes=evidence_of(case),
    )


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.sampled_from(list(ENVELOPES.values())), min_size=1, max_size=4),
    st.integers(0, 2**63 - 1),
)
def test_parse__what_was_signed__gives_it_back(
    node_id: int, envelopes: list[bytes], reporter_time_ns: int
) -> None:
    data = sign_inconsistency_report(node_id, envelopes, reporter_time_ns, KEY)

    assert parse_inconsistency_report(data) == BlockchainInconsistencyReport(
        KEY.public_key, reporter_time_ns, node_id, tuple(envelopes)
    )


def test_sign__evidence_in_unusual_bytes__keeps_what_the_node_signed() -> None:
    envelope = envelopes_pb2.OriginatorEnvelope.FromString(ENVELOPE)
    proof = envelopes_pb2.OriginatorEnvelope(blockchain_proof=envelope.blockchain_proof)
    unsigned = b"\x1a\x01x" + envelope.unsigned_originator_envelope
    unusual = (
        proof.SerializeToString()
        + envelopes_pb2.OriginatorEnvelope(
            unsigned_originator_envelope=unsigned
        ).SerializeToString()
    )

    (evidence,) = parse_inconsistency_report(
        sign_inconsistency_report(100, [unusual], 1, KEY)
    ).envelopes

    kept = envelopes_pb2.OriginatorEnvelope.FromString(evidence)
    assert kept.unsigned_originator_envelope == unsigned
    assert kept.blockchain_proof == envelope.blockchain_proof


def test_sign__evidence_that_is_no_envelope__is_refused() -> None:
    with pytest.raises(MalformedData):
        sign_inconsistency_report(100, [ENVELOPE, b"\x0a"], 1, KEY)


@pytest.mark.parametrize("case", REPORTS, ids=case_name)
@given(bit=st.integers(0, 8 * 200))
def test_parse__flipped_bit_of_the_signed_report__recovers_to_somebody_else_or_fails(
    case: dict[str, Any], bit: int
) -> None:
    message = message_api_pb2.MisbehaviorReport.FromString(from_hex(case["misbehavior_report"]))
    unsigned = bytearray(message.unsigned_misbehavior_report)
    unsigned[bit // 8] ^= 1 << bit % 8
    message.unsigned_misbehavior_report = bytes(unsigned)

    try:
        report = parse_inconsistency_report(message.SerializeToString())
    except MalformedData:
        return
    assert report.reporter_public_key != from_hex(case["public_key"])


@given(st.binary(max_size=300))
def test_parse__arbitrary_bytes__is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedData):
        parse_inconsistency_report(data)


@pytest.mark.parametrize("type_", [0, 1, 7, 9])
def test_parse__report_of_another_type__says_the_type(type_: int) -> None:
    report = message_api_pb2.UnsignedMisbehaviorReport(type=type_)
    report.safety.envelopes.add().ParseFromString(ENVELOPE)

    with pytest.raises(MalformedData) as caught:
        parse_inconsistency_report(signed(report))

    assert str(caught.value) == (
        f"misbehavior report: expected type BLOCKCHAIN_INCONSISTENCY (8), got {type_}"
    )


@pytest.mark.parametrize("failure", ["none", "safety", "liveness"])
def test_parse__report_without_evidence__says_so(failure: str) -> None:
    report = message_api_pb2.UnsignedMisbehaviorReport(
        type=message_api_pb2.MISBEHAVIOR_BLOCKCHAIN_INCONSISTENCY
    )
    if failure != "none":
        getattr(report, failure).SetInParent()

    with pytest.raises(MalformedData) as caught:
        parse_inconsistency_report(signed(report))

    assert str(caught.value) == "misbehavior report: expected the served envelopes, got none"


def test_parse__report_without_a_signature__is_refused() -> None:
    message = message_api_pb2.MisbehaviorReport.FromString(
        sign_inconsistency_report(100, [ENVELOPE], 1, KEY)
    )
    message.ClearField("signature")

    with pytest.raises(InvalidSignature, match="expected 65 bytes, got 0 bytes"):
        parse_inconsistency_report(message.SerializeToString())

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import InvalidSignature, MalformedEnvelope
from chainkit.protocol.envelope import blockchain_proof_digest
from chainkit.protocol.originated_envelope import (
    MAXIMUM_ORIGINATOR_ENVELOPE_LENGTH,
    OriginatedEnvelope,
    originator_digest,
    parse_originated,
    recover_originator,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.payer_envelope import MAXIMUM_PAYER_ENVELOPE_LENGTH
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SigningKey, keccak256
from support.damage import damaged, with_flipped_bit
from support.vectors import case_name, from_hex, load

CASES = load("originated_envelopes")["originated_envelopes"]
KEY = SigningKey(b"\1" * 32)
ENVELOPE = OriginatedEnvelope(100, 42, 1_735_689_600_000_000_001, b"payer", 1_738_281_600)


def envelope_of(case: dict[str, Any]) -> OriginatedEnvelope:
    expiry = case["expiry_unixtime"]
    return OriginatedEnvelope(
        originator_id=case["originator_id"],
        sequence_id=int(case["sequence_id"]),
        originator_ns=int(case["originator_ns"]),
        payer_envelope=from_hex(case["payer_envelope"]),
        expiry_unixtime=None if expiry is None else int(expiry),
    )


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_write__envelope_of_a_vector__gives_the_same_bytes(case: dict[str, Any]) -> None:
    unsigned = unsigned_originated(envelope_of(case))

    assert unsigned == from_hex(case["unsigned_originator_envelope"])
    assert originator_digest(unsigned) == from_hex(case["digest"])
    assert sign_originated(unsigned, SigningKey(from_hex(case["private_key"]))) == from_hex(
        case["originator_envelope"]
    )


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_parse__envelope_of_a_vector__gives_every_field_and_its_node(case: dict[str, Any]) -> None:
    parsed = parse_originated(from_hex(case["originator_envelope"]))

    assert parsed.envelope == envelope_of(case)
    assert parsed.unsigned_originator_envelope == from_hex(case["unsigned_originator_envelope"])
    assert parsed.signature == from_hex(case["signature"])
    assert recover_originator(parsed) == from_hex(case["public_key"])


@given(
    st.integers(1, 2**32 - 1),
    st.integers(1, 2**64 - 1),
    st.integers(0, 2**63 - 1),
    st.binary(min_size=1, max_size=300),
    st.none() | st.integers(1, 2**64 - 1),
)
def test_write__whatever_is_originated__gives_the_bytes_that_protobuf_gives(
    originator_id: int, sequence_id: int, time: int, payer_envelope: bytes, expiry: int | None
) -> None:
    expected = envelopes_pb2.UnsignedOriginatorEnvelope(
        originator_node_id=originator_id,
        originator_sequence_id=sequence_id,
        originator_ns=time,
        payer_envelope=payer_envelope,
        expiry_unixtime=expiry or 0,
    )
    envelope = OriginatedEnvelope(originator_id, sequence_id, time, payer_envelope, expiry)

    unsigned = unsigned_originated(envelope)

    assert unsigned == expected.SerializeToString()
    assert parse_originated(sign_originated(unsigned, KEY)).envelope == envelope


@pytest.mark.parametrize(
    ("changes", "subject"),
    [
        ({"originator_id": 0}, "originator id"),
        ({"originator_id": 2**32}, "originator id"),
        ({"sequence_id": 0}, "sequence id"),
        ({"sequence_id": 2**64}, "sequence id"),
        ({"originator_ns": -1}, "originator_ns"),
        ({"originator_ns": 2**63}, "originator_ns"),
        ({"expiry_unixtime": 0}, "expiry"),
        ({"expiry_unixtime": 2**64}, "expiry"),
        ({"payer_envelope": b""}, "payer envelope"),
        ({"payer_envelope": bytes(MAXIMUM_PAYER_ENVELOPE_LENGTH + 1)}, "payer envelope"),
    ],
)
def test_write__value_outside_of_its_field__is_refused(
    changes: dict[str, Any], subject: str
) -> None:
    with pytest.raises(MalformedEnvelope, match=f"^{subject}: expected "):
        unsigned_originated(replace(ENVELOPE, **changes))


def test_write_and_parse__largest_payer_envelope__is_taken_and_none_larger() -> None:
    largest = replace(ENVELOPE, payer_envelope=bytes(MAXIMUM_PAYER_ENVELOPE_LENGTH))

    assert parse_originated(sign_originated(unsigned_originated(largest), KEY)).envelope == largest
    with pytest.raises(MalformedEnvelope, match=r"^envelope: expected at most "):
        parse_originated(bytes(MAXIMUM_ORIGINATOR_ENVELOPE_LENGTH + 1))


@given(st.data())
def test_recover__any_flipped_bit_of_what_is_signed__gives_another_key_or_fails(
    data: st.DataObject,
) -> None:
    parsed = parse_originated(sign_originated(unsigned_originated(ENVELOPE), KEY))
    field = data.draw(st.sampled_from(["unsigned_originator_envelope", "signature"]))
    bytes_of = getattr(parsed, field)
    bit = data.draw(st.integers(0, 8 * len(bytes_of) - 1))

    try:
        found = recover_originator(replace(parsed, **{field: with_flipped_bit(bytes_of, bit)}))
    except InvalidSignature:
        return
    assert found != KEY.public_key


def test_digest__same_bytes_under_the_chain_s_label__differs() -> None:
    unsigned = unsigned_originated(ENVELOPE)

    assert originator_digest(unsigned) == keccak256(b"originator|" + unsigned)
    assert originator_digest(unsigned) != blockchain_proof_digest(unsigned, b"")


@pytest.mark.parametrize(("proof", "shown"), [(True, "blockchain_proof"), (False, "no proof")])
def test_parse__another_proof_or_none__says_so(proof: bool, shown: str) -> None:
    unsigned = unsigned_originated(ENVELOPE)
    data = envelopes_pb2.OriginatorEnvelope(unsigned_originator_envelope=unsigned)
    if proof:
        data.blockchain_proof.transaction_hash = bytes(32)

    with pytest.raises(MalformedEnvelope) as caught:
        parse_originated(data.SerializeToString())

    assert str(caught.value) == (
        f"envelope 42 of originator 100: expected an originator's signature, got {shown}"
    )


@pytest.mark.parametrize("data", [b"\x0a", sign_originated(b"\x22", KEY)], ids=["outer", "inner"])
def test_parse__no_protobuf_at_either_depth__is_refused(data: bytes) -> None:
    with pytest.raises(
        MalformedEnvelope, match=r"OriginatorEnvelope: .* bytes that are no message"
    ):
        parse_originated(data)


@given(st.binary(max_size=400) | damaged(from_hex(CASES[2]["originator_envelope"])))
def test_parse__arbitrary_bytes__gives_an_envelope_or_malformed_envelope(data: bytes) -> None:
    try:
        parsed = parse_originated(data)
    except MalformedEnvelope:
        return
    assert parsed.unsigned_originator_envelope in data
    assert parsed.envelope.payer_envelope in parsed.unsigned_originator_envelope

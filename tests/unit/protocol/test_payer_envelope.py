from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import InvalidSignature, MalformedEnvelope
from chainkit.protocol.payer_envelope import (
    MAXIMUM_CLIENT_ENVELOPE_LENGTH,
    MAXIMUM_PAYER_ENVELOPE_LENGTH,
    ParsedPayerEnvelope,
    is_retention_forged,
    parse_payer_envelope,
    payer_digest,
    recover_payer,
    sign_payer_envelope,
)
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SigningKey
from support.damage import damaged, with_flipped_bit
from support.vectors import case_name, from_hex, load

VECTORS = load("originated_envelopes")
CASES = VECTORS["payer_envelopes"]
TODAYS = [case for case in CASES if case["target_originator"] is not None]
KEY = SigningKey(from_hex(VECTORS["payer"]["private_key"]))
PUBLIC_KEY = from_hex(VECTORS["payer"]["public_key"])

targets = st.integers(1, 2**32 - 1)


def parsed(case: dict[str, Any]) -> ParsedPayerEnvelope:
    return parse_payer_envelope(from_hex(case["payer_envelope"]))


@pytest.mark.parametrize("case", TODAYS, ids=case_name)
def test_sign__envelope_of_a_vector__gives_the_same_bytes(case: dict[str, Any]) -> None:
    client_envelope = from_hex(case["client_envelope"])

    signed = sign_payer_envelope(
        client_envelope, case["target_originator"], KEY, case["retention_days"]
    )

    assert signed == from_hex(case["payer_envelope"])


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_digest__envelope_of_a_vector__gives_the_same_bytes(case: dict[str, Any]) -> None:
    digest = payer_digest(from_hex(case["client_envelope"]), case["target_originator"])

    assert digest == from_hex(case["digest"])


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_parse__envelope_of_a_vector__gives_every_field(case: dict[str, Any]) -> None:
    assert parsed(case) == ParsedPayerEnvelope(
        client_envelope=from_hex(case["client_envelope"]),
        target_originator=case["target_originator"],
        retention_days=case["retention_days"],
        signature=from_hex(case["signature"]),
        retention_signature=from_hex(case["retention_signature"] or "0x"),
    )


@pytest.mark.conforms("N5")
@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_recover__envelope_of_a_vector_in_either_form__gives_its_payer(
    case: dict[str, Any],
) -> None:
    assert recover_payer(parsed(case)) == PUBLIC_KEY


@pytest.mark.conforms("T2")
@given(st.binary(max_size=300), targets, st.integers(0, 365), st.integers(0, 365))
def test_retention__signed_by_the_payer__is_forged_with_other_days_target_or_payload(
    client_envelope: bytes, target: int, days: int, other: int
) -> None:
    mine = parse_payer_envelope(sign_payer_envelope(client_envelope, target, KEY, days or None))
    assert not is_retention_forged(mine, mine.digest(), PUBLIC_KEY)

    if other != days:
        changed = replace(mine, retention_days=other or None)
        assert is_retention_forged(changed, mine.digest(), PUBLIC_KEY)
    assert is_retention_forged(mine, payer_digest(client_envelope + b"x", target), PUBLIC_KEY)
    cut = replace(mine, retention_signature=mine.retention_signature[:-1])
    assert is_retention_forged(cut, mine.digest(), PUBLIC_KEY)


@pytest.mark.conforms("N5")
@given(st.binary(max_size=300), targets, targets)
def test_recover__envelope_taken_to_another_target__gives_another_key(
    client_envelope: bytes, target: int, other: int
) -> None:
    mine = parse_payer_envelope(sign_payer_envelope(client_envelope, target, KEY))

    assert recover_payer(mine) == KEY.public_key
    for changed in {other, None} - {target}:
        assert payer_digest(client_envelope, changed) != payer_digest(client_envelope, target)
        try:
            found = recover_payer(replace(mine, target_originator=changed))
        except InvalidSignature:
            continue
        assert found != KEY.public_key


@pytest.mark.conforms("N5")
def test_recover__bytes_that_are_the_same_message_otherwise_encoded__count_as_they_came() -> None:
    aad = envelopes_pb2.ClientEnvelope(aad=envelopes_pb2.AuthenticatedData(target_topic=b"t"))
    unusual = b"\xc8\x3e\x2a" + aad.SerializeToString()
    usual = envelopes_pb2.ClientEnvelope.FromString(unusual).SerializeToString()

    payer = parse_payer_envelope(sign_payer_envelope(unusual, 100, KEY))

    assert usual != unusual
    assert payer.client_envelope == unusual
    assert recover_payer(payer) == KEY.public_key
    assert recover_payer(replace(payer, client_envelope=usual)) != KEY.public_key


@given(st.data())
def test_recover__any_flipped_bit_of_what_is_signed__gives_another_key_or_fails(
    data: st.DataObject,
) -> None:
    payer = parsed(data.draw(st.sampled_from(CASES)))
    field = data.draw(st.sampled_from(["client_envelope", "signature"]))
    bytes_of = getattr(payer, field)
    bit = data.draw(st.integers(0, 8 * len(bytes_of) - 1))

    try:
        found = recover_payer(replace(payer, **{field: with_flipped_bit(bytes_of, bit)}))
    except InvalidSignature:
        return
    assert found != PUBLIC_KEY


@pytest.mark.parametrize("signature", [b"", bytes(64), bytes(66)])
def test_recover__signature_of_another_length__is_refused(signature: bytes) -> None:
    with pytest.raises(InvalidSignature, match=f"65 bytes, got {len(signature)} bytes"):
        recover_payer(ParsedPayerEnvelope(b"", 100, None, signature))


@pytest.mark.parametrize(
    ("target", "retention", "subject"),
    [
        (0, None, "target originator"),
        (-1, None, "target originator"),
        (2**32, None, "target originator"),
        (100, 0, "retention"),
        (100, 2**32, "retention"),
    ],
)
def test_sign__number_outside_of_its_field__is_refused(
    target: int, retention: int | None, subject: str
) -> None:
    with pytest.raises(MalformedEnvelope, match=f"^{subject}: expected an integer from 1 to "):
        sign_payer_envelope(b"client", target, KEY, retention)


def test_sign_and_parse__largest_client_envelope__is_taken_and_none_larger() -> None:
    largest = bytes(MAXIMUM_CLIENT_ENVELOPE_LENGTH)
    signed = sign_payer_envelope(largest, 2**32 - 1, KEY, 2**32 - 1)

    assert parse_payer_envelope(signed).client_envelope == largest
    with pytest.raises(
        MalformedEnvelope, match=r"^client envelope: expected at most 4194304 bytes"
    ):
        sign_payer_envelope(largest + b"x", 100, KEY)
    too_large = envelopes_pb2.PayerEnvelope(unsigned_client_envelope=largest + b"x")
    with pytest.raises(
        MalformedEnvelope, match=r"^client envelope: expected at most 4194304 bytes"
    ):
        parse_payer_envelope(too_large.SerializeToString())
    with pytest.raises(MalformedEnvelope, match=r"^payer envelope: expected at most 4195328 bytes"):
        parse_payer_envelope(bytes(MAXIMUM_PAYER_ENVELOPE_LENGTH + 1))


@given(st.binary(max_size=400) | damaged(from_hex(CASES[2]["payer_envelope"])))
def test_parse__arbitrary_bytes__gives_an_envelope_or_malformed_envelope(data: bytes) -> None:
    try:
        payer = parse_payer_envelope(data)
    except MalformedEnvelope:
        return
    assert payer.client_envelope in data
    assert payer.target_originator is None or payer.target_originator > 0

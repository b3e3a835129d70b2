from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import InvalidSignature, MalformedEnvelope
from chainkit.protocol.chain_time import MAXIMUM_BLOCK_TIMESTAMP
from chainkit.protocol.envelope import (
    QuarantineReason,
    ServedEnvelope,
    blockchain_proof_digest,
    originator_envelope,
    parse_originator_envelope,
    quarantine_reason,
    recover_node_key,
    sign_originator_envelope,
    unsigned_originator_envelope,
)
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import PayloadEvent, identity_update_created, message_sent
from support import payloads
from support.chain_times import chain_ns
from support.damage import damaged, with_flipped_bit
from support.vectors import case_name, from_hex, load

ENVELOPES = load("envelopes")["cases"]
PAYLOADS = load("client_envelopes")["cases"]
MAKERS = {"MessageSent": message_sent, "IdentityUpdateCreated": identity_update_created}

KEY = SigningKey(b"\1" * 32)
GROUP_ID = b"g" * 32
INBOX_ID = b"i" * 32
TRANSACTION_HASH = b"t" * 32
EVENTS = [
    message_sent(GROUP_ID, payloads.commit(GROUP_ID), 42),
    identity_update_created(INBOX_ID, payloads.identity_update(INBOX_ID), 43),
]


def event_of(case: dict[str, Any]) -> PayloadEvent:
    make = MAKERS[case["contract_event"]]
    client_envelope = from_hex(case["client_envelope"])
    return make(from_hex(case["identifier"]), client_envelope, int(case["sequence_id"]))


def served(event: PayloadEvent = EVENTS[0]) -> ServedEnvelope:
    unsigned = unsigned_originator_envelope(event, 1_735_689_600)
    return parse_originator_envelope(sign_originator_envelope(unsigned, TRANSACTION_HASH, KEY))


# ------------------------------------------------------------------ building


@pytest.mark.conforms("3.2.1-1", "3.2.1-2")
@pytest.mark.parametrize("case", ENVELOPES, ids=case_name)
def test_build_unsigned__event_of_a_vector__gives_the_same_bytes(case: dict[str, Any]) -> None:
    unsigned = unsigned_originator_envelope(event_of(case), int(case["block_timestamp"]))

    assert unsigned == from_hex(case["unsigned_originator_envelope"])


@pytest.mark.conforms("3.2.1-3")
@pytest.mark.parametrize("case", ENVELOPES, ids=case_name)
def test_digest__envelope_of_a_vector__gives_the_same_bytes(case: dict[str, Any]) -> None:
    unsigned = from_hex(case["unsigned_originator_envelope"])

    digest = blockchain_proof_digest(unsigned, from_hex(case["transaction_hash"]))

    assert digest == from_hex(case["digest"])


@pytest.mark.parametrize("case", ENVELOPES, ids=case_name)
def test_sign__envelope_of_a_vector__gives_the_same_bytes(case: dict[str, Any]) -> None:
    envelope = sign_originator_envelope(
        from_hex(case["unsigned_originator_envelope"]),
        from_hex(case["transaction_hash"]),
        SigningKey(from_hex(case["private_key"])),
    )

    assert envelope == from_hex(case["originator_envelope"])


numbers = st.sampled_from([0, 1, 127, 128, 2**32 - 1]) | st.integers(0, 2**32 - 1)
sequences = st.sampled_from([0, 2**14, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)
contents = st.binary(max_size=300) | st.sampled_from([b"x" * 16_383, b"y" * 2**21])


@given(numbers, sequences, st.integers(0, MAXIMUM_BLOCK_TIMESTAMP), contents)
def test_build_unsigned__whatever_was_posted__gives_the_bytes_that_protobuf_gives(
    originator_id: int, sequence_id: int, time: int, payload: bytes
) -> None:
    event = message_sent(GROUP_ID, payload, sequence_id, originator_id)
    payer = envelopes_pb2.PayerEnvelope(unsigned_client_envelope=payload)
    expected = envelopes_pb2.UnsignedOriginatorEnvelope(
        originator_node_id=originator_id,
        originator_sequence_id=sequence_id,
        originator_ns=chain_ns(time, sequence_id),
        payer_envelope=payer.SerializeToString(),
    )

    assert unsigned_originator_envelope(event, time) == expected.SerializeToString()


@given(contents, st.binary(min_size=32, max_size=32), st.binary(min_size=65, max_size=65))
def test_build_signed__whatever_was_signed__gives_the_bytes_that_protobuf_gives(
    unsigned: bytes, transaction_hash: bytes, signature: bytes
) -> None:
    expected = envelopes_pb2.OriginatorEnvelope(unsigned_originator_envelope=unsigned)
    expected.blockchain_proof.transaction_hash = transaction_hash
    expected.blockchain_proof.node_signature.bytes = signature

    found = originator_envelope(unsigned, transaction_hash, signature)

    assert found == expected.SerializeToString()


@pytest.mark.parametrize("number", [-1, 2**64])
def test_build_unsigned__number_that_is_no_uint64__is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"from 0 to {2**64 - 1}, got {number}"):
        unsigned_originator_envelope(message_sent(GROUP_ID, b"", number), 1)


@pytest.mark.parametrize(("of_hash", "of_signature"), [(31, 65), (33, 65), (32, 0), (32, 64)])
def test_build_signed__proof_of_other_lengths__is_refused(of_hash: int, of_signature: int) -> None:
    with pytest.raises(MalformedEnvelope) as caught:
        originator_envelope(b"unsigned", bytes(of_hash), bytes(of_signature))

    assert str(caught.value) == (
        "proof: expected a hash of 32 and a signature of 65 bytes, "
        f"got {of_hash} and {of_signature} bytes"
    )


def test_digest__same_bytes_under_another_label__differs() -> None:
    digest = blockchain_proof_digest(b"bytes", TRANSACTION_HASH)

    assert digest == keccak256(b"blockchain|bytes" + TRANSACTION_HASH)
    assert digest != keccak256(b"bytes" + TRANSACTION_HASH)


# ------------------------------------------------------------------ taking apart


@pytest.mark.parametrize("case", ENVELOPES, ids=case_name)
def test_parse__envelope_of_a_vector__gives_every_field(case: dict[str, Any]) -> None:
    assert parse_originator_envelope(from_hex(case["originator_envelope"])) == ServedEnvelope(
        originator_id=0,
        sequence_id=int(case["sequence_id"]),
        originator_ns=chain_ns(int(case["block_timestamp"]), int(case["sequence_id"])),
        client_envelope=from_hex(case["client_envelope"]),
        unsigned_originator_envelope=from_hex(case["unsigned_originator_envelope"]),
        transaction_hash=from_hex(case["transaction_hash"]),
        node_signature=from_hex(case["signature"]),
    )


@pytest.mark.parametrize("case", ENVELOPES, ids=case_name)
def test_recover__envelope_of_a_vector__gives_its_public_key(case: dict[str, Any]) -> None:
    envelope = parse_originator_envelope(from_hex(case["originator_envelope"]))

    assert recover_node_key(envelope) == from_hex(case["public_key"])


def test_parse__unsigned_bytes_in_another_field_order__are_kept_as_signed() -> None:
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope(originator_ns=7).SerializeToString()
    unsigned += envelopes_pb2.UnsignedOriginatorEnvelope(
        originator_sequence_id=42
    ).SerializeToString()

    envelope = parse_originator_envelope(sign_originator_envelope(unsigned, TRANSACTION_HASH, KEY))

    assert envelope.unsigned_originator_envelope == unsigned
    assert (envelope.sequence_id, envelope.originator_ns) == (42, 7)
    assert recover_node_key(envelope) == KEY.public_key


@given(st.data())
def test_recover__any_flipped_bit_of_what_is_signed__gives_another_key_or_fails(
    data: st.DataObject,
) -> None:
    envelope = served()
    field = data.draw(st.sampled_from(["unsigned_originator_envelope", "transaction_hash"]))
    signed = getattr(envelope, field)
    bit = data.draw(st.integers(0, 8 * len(signed) - 1))

    try:
        key = recover_node_key(replace(envelope, **{field: with_flipped_bit(signed, bit)}))
    except InvalidSignature:
        return
    assert key != KEY.public_key


@given(st.integers(0, 8 * 65 - 1))
def test_recover__any_flipped_bit_of_the_signature__gives_another_key_or_fails(bit: int) -> None:
    envelope = served()
    signature = with_flipped_bit(envelope.node_signature, bit)

    with suppress(InvalidSignature):
        assert recover_node_key(replace(envelope, node_signature=signature)) != KEY.public_key


@given(st.binary(max_size=400) | damaged(from_hex(ENVELOPES[0]["originator_envelope"])))
def test_parse__arbitrary_bytes__gives_an_envelope_or_malformed_envelope(data: bytes) -> None:
    try:
        envelope = parse_originator_envelope(data)
    except MalformedEnvelope:
        return
    assert len(envelope.transaction_hash) == 32
    assert envelope.unsigned_originator_envelope in data


@pytest.mark.parametrize("field", ["envelope", "unsigned envelope", "payer envelope"])
def test_parse__no_protobuf_at_any_depth__is_refused(field: str) -> None:
    garbage = b"\x0a"
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope(payer_envelope=garbage).SerializeToString()
    data = {
        "envelope": garbage,
        "unsigned envelope": sign_originator_envelope(garbage, TRANSACTION_HASH, KEY),
        "payer envelope": sign_originator_envelope(unsigned, TRANSACTION_HASH, KEY),
    }[field]

    with pytest.raises(MalformedEnvelope, match=r"^envelope: expected an OriginatorEnvelope, got "):
        parse_originator_envelope(data)


def test_parse__no_proof__says_so() -> None:
    unsigned = unsigned_originator_envelope(EVENTS[0], 1)
    data = envelopes_pb2.OriginatorEnvelope(unsigned_originator_envelope=unsigned)

    with pytest.raises(MalformedEnvelope) as caught:
        parse_originator_envelope(data.SerializeToString())

    assert str(caught.value) == "envelope 42: expected a BlockchainProof, got no proof"


def test_parse__signature_of_another_originator__says_so() -> None:
    data = envelopes_pb2.OriginatorEnvelope(
        unsigned_originator_envelope=unsigned_originator_envelope(EVENTS[0], 1)
    )
    data.originator_signature.bytes = bytes(65)

    with pytest.raises(MalformedEnvelope) as caught:
        parse_originator_envelope(data.SerializeToString())

    assert str(caught.value) == "envelope 42: expected a BlockchainProof, got originator_signature"


@pytest.mark.parametrize("length", [0, 31, 33])
def test_parse__transaction_hash_of_another_length__says_the_length(length: int) -> None:
    data = envelopes_pb2.OriginatorEnvelope(
        unsigned_originator_envelope=unsigned_originator_envelope(EVENTS[0], 1)
    )
    data.blockchain_proof.transaction_hash = bytes(length)

    with pytest.raises(MalformedEnvelope) as caught:
        parse_originator_envelope(data.SerializeToString())

    assert str(caught.value) == (
        f"envelope 42: expected a transaction hash of 32 bytes, got {length} bytes"
    )


# ------------------------------------------------------------------ quarantine


@pytest.mark.conforms("N4")
@pytest.mark.parametrize("case", PAYLOADS, ids=case_name)
def test_quarantine__payload_of_a_vector__gives_its_reason(case: dict[str, Any]) -> None:
    event = MAKERS[case["event"]](from_hex(case["identifier"]), from_hex(case["payload"]), 1)

    assert quarantine_reason(event) == case["reason"]


def test_list_quarantine_reasons__all__are_met_by_a_vector() -> None:
    met = {case["reason"] and case["reason"].split(":")[0] for case in PAYLOADS}

    # The vectors are XIP-49's, where the blockchain is originator 0.
    assert met == {None, *QuarantineReason} - {QuarantineReason.ANOTHER_ORIGINATOR}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind.name)
def test_quarantine__payload_for_another_originator__says_so(event: PayloadEvent) -> None:
    envelope = envelopes_pb2.ClientEnvelope.FromString(event.payload)
    envelope.aad.target_originator = 2
    others = event._replace(originator_id=1, payload=envelope.SerializeToString())

    assert quarantine_reason(others) == "target originator is not the contract's"
    # Today's clients name none, whatever the contract's originator is.
    assert quarantine_reason(event._replace(originator_id=1)) is None


@given(st.sampled_from(EVENTS), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_quarantine__originator_of_the_payload__must_be_none_or_the_contract_s(
    event: PayloadEvent, targeted: int, posting: int
) -> None:
    envelope = envelopes_pb2.ClientEnvelope.FromString(event.payload)
    envelope.aad.target_originator = targeted
    payload = envelope.SerializeToString()

    reason = quarantine_reason(event._replace(payload=payload, originator_id=posting))

    assert (reason is None) == (targeted in (0, posting))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind.name)
@pytest.mark.parametrize("originator_id", [1, 2**32 - 1])
def test_build_unsigned__event_of_another_originator__names_it(
    event: PayloadEvent, originator_id: int
) -> None:
    envelope = served(event._replace(originator_id=originator_id))

    assert envelope == replace(
        served(event),
        originator_id=originator_id,
        unsigned_originator_envelope=envelope.unsigned_originator_envelope,
        node_signature=envelope.node_signature,
    )
    assert envelope.unsigned_originator_envelope != served(event).unsigned_originator_envelope
    assert recover_node_key(envelope) == KEY.public_key


def test_quarantine__topic_of_a_short_group_id__is_17_bytes() -> None:
    event = message_sent(GROUP_ID[:16], payloads.commit(GROUP_ID[:16]), 1)

    assert quarantine_reason(event) is None
    assert quarantine_reason(event._replace(identifier=GROUP_ID)) is QuarantineReason.WRONG_TOPIC
    assert len(event.kind.topic(event.identifier)) == 17


@pytest.mark.parametrize("case", ENVELOPES, ids=case_name)
def test_quarantine__payload_of_a_served_envelope__is_not_wanted(case: dict[str, Any]) -> None:
    assert quarantine_reason(event_of(case)) is None


@given(st.sampled_from(EVENTS), st.data())
def test_quarantine__arbitrary_bytes__never_raises(
    event: PayloadEvent, data: st.DataObject
) -> None:
    payload = data.draw(st.binary() | damaged(event.payload))

    reason = quarantine_reason(event._replace(payload=payload))

    assert reason is None or reason.split(":")[0] in [*QuarantineReason]


@given(st.binary(min_size=32, max_size=32).filter(lambda group_id: group_id != GROUP_ID))
def test_quarantine__payload_replayed_to_another_group__does_not_match(group_id: bytes) -> None:
    event = EVENTS[0]._replace(identifier=group_id)

    assert quarantine_reason(event) == QuarantineReason.WRONG_TOPIC

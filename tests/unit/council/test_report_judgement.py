"""Verdicts on honest, tampered, moved, invented and forged evidence, over a chain in memory."""

from typing import Any

import pytest

from chainkit.council.evidence import Verdict, verify_report
from chainkit.errors import InconsistentAnswer, InvalidSignature, MalformedData
from chainkit.protocol.envelope import sign_originator_envelope, unsigned_originator_envelope
from chainkit.protocol.proto import envelopes_pb2, message_api_pb2
from chainkit.protocol.reports import sign_inconsistency_report
from chainkit.signatures import keccak256
from chainkit.types import PayloadEvent, TopicKind, identity_update_created, message_sent
from support.chain_times import chain_ns
from support.council.fake_registry import FakeRegistry, block, node_key
from support.council.judged_reports import (
    AUDITOR,
    GROUP,
    HASH,
    HONEST,
    INBOX,
    MESSAGES,
    MINED_IN,
    NODE,
    OTHER_GROUP,
    PAYLOAD,
    RECORD,
    TIME,
    UPDATES,
    WALLET,
    Transaction,
    calldata,
    judged,
    only,
    served,
)
from support.endpoints.fake_endpoint import FakeProvider
from support.payloads import commit, identity_update


@pytest.mark.conforms("2.1-3")
def test_verify__envelope_equals_chain__is_refuted() -> None:
    verdict, reason = only(judged(served(HONEST)))

    assert verdict == Verdict.REFUTED
    assert reason == "what the node signed is byte for byte what the chain demands"


@pytest.mark.conforms("N50")
def test_verify__another_payload__is_proved() -> None:
    verdict, reason = only(judged(served(message_sent(GROUP, commit(GROUP, seed=1), 5))))

    assert verdict == Verdict.PROVED
    assert "posts another payload" in reason


def test_verify__same_payload_as_another_originators__is_proved() -> None:
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope()
    unsigned.ParseFromString(unsigned_originator_envelope(HONEST, TIME))
    unsigned.originator_node_id = 100
    data = sign_originator_envelope(unsigned.SerializeToString(), HASH, NODE)

    verdict, reason = only(judged(data))

    assert (verdict, "names originator 100" in reason) == (Verdict.PROVED, True)


@pytest.mark.parametrize(
    "event",
    [message_sent(OTHER_GROUP, PAYLOAD, 5), identity_update_created(GROUP, PAYLOAD, 5)],
    ids=["another group", "another kind"],
)
def test_verify__payload_posted_to_another_topic_than_it_names__is_proved(
    event: PayloadEvent,
) -> None:
    to = MESSAGES if event.kind is TopicKind.GROUP_MESSAGE else UPDATES
    transaction = Transaction([event], to=to)

    verdict, reason = only(judged(served(event), transaction=transaction))

    assert (verdict, "names another topic" in reason) == (Verdict.PROVED, True)


@pytest.mark.conforms("N50")
def test_verify__swapped_transaction_hash__is_proved() -> None:
    update = identity_update_created(INBOX, identity_update(INBOX), 6)
    transaction = Transaction([update], to=UPDATES)

    verdict, _ = only(judged(served(HONEST), transaction=transaction))

    assert verdict == Verdict.PROVED


@pytest.mark.conforms("3.2.2-2")
@pytest.mark.parametrize(
    ("sequence_id", "time"), [(6, TIME), (5, TIME + 12), (4, TIME - 1)], ids=["id", "time", "both"]
)
def test_verify__only_sequence_id_or_time_shifted__is_not_proved(
    sequence_id: int, time: int
) -> None:
    verdict, reason = only(judged(served(message_sent(GROUP, PAYLOAD, sequence_id), time)))

    assert verdict == Verdict.NOT_PROVED
    assert "a reorg may have moved it" in reason


def test_verify__transaction_unknown__is_not_proved() -> None:
    envelope = served(HONEST, hash_=keccak256(b"invented"))

    verdict, reason = only(judged(envelope))

    assert (verdict, "absence is not proof" in reason) == (Verdict.NOT_PROVED, True)


def test_verify__transaction_above_the_block__is_not_proved() -> None:
    tampered = served(message_sent(GROUP, commit(GROUP, seed=1), 5))

    assert judged(tampered, height=MINED_IN - 1).verdict == Verdict.NOT_PROVED
    assert judged(tampered, height=MINED_IN).verdict == Verdict.PROVED


def test_verify__another_node_signed__is_not_proved_against_the_accused() -> None:
    tampered = served(message_sent(GROUP, commit(GROUP, seed=1), 5), key=node_key(2))

    verdict, reason = only(judged(tampered))

    assert (verdict, "did not sign it" in reason) == (Verdict.NOT_PROVED, True)
    assert judged(tampered, node_id=200).verdict == Verdict.PROVED


def test_verify__envelope_altered_after_signing__is_not_proved() -> None:
    envelope = envelopes_pb2.OriginatorEnvelope()
    envelope.ParseFromString(served(HONEST))
    other = message_sent(GROUP, commit(GROUP, seed=1), 5)
    envelope.unsigned_originator_envelope = unsigned_originator_envelope(other, TIME)

    assert only(judged(envelope.SerializeToString()))[0] == Verdict.NOT_PROVED


def test_verify__signature_recovers_to_nobody__is_not_proved() -> None:
    envelope = envelopes_pb2.OriginatorEnvelope()
    envelope.ParseFromString(served(message_sent(GROUP, commit(GROUP, seed=1), 5)))
    envelope.blockchain_proof.node_signature.bytes = b"\xff" * 65

    verdict, reason = only(judged(envelope.SerializeToString()))

    assert (verdict, "nobody can be held to it" in reason) == (Verdict.NOT_PROVED, True)


def test_verify__accused_not_registered__is_not_proved() -> None:
    result = judged(served(message_sent(GROUP, commit(GROUP, seed=1), 5)), node_id=900)

    assert result.accused is None
    assert only(result)[0] == Verdict.NOT_PROVED


def test_verify__inner_bytes_are_garbage__is_not_proved_with_the_reason() -> None:
    garbage = envelopes_pb2.OriginatorEnvelope(unsigned_originator_envelope=b"\xff\xff\xff")

    verdict, reason = only(judged(garbage.SerializeToString()))

    assert (verdict, "an OriginatorEnvelope" in reason) == (Verdict.NOT_PROVED, True)


@pytest.mark.parametrize("position", [0, 1])
def test_verify__one_of_several_payloads__matches_any_of_them(position: int) -> None:
    events = [HONEST, message_sent(OTHER_GROUP, commit(OTHER_GROUP), 6)]
    transaction = Transaction(events, to=WALLET, input=b"\x01")

    assert judged(served(events[position]), transaction=transaction).verdict == Verdict.REFUTED


def test_verify__same_payload_twice__matches_the_second_too() -> None:
    events = [HONEST, message_sent(GROUP, PAYLOAD, 6)]
    transaction = Transaction(events, to=WALLET, input=b"\x01")

    assert judged(served(events[1]), transaction=transaction).verdict == Verdict.REFUTED


def test_verify__another_payload_than_a_wallet_passed_on__is_not_proved() -> None:
    transaction = Transaction(to=WALLET, input=calldata(message_sent(GROUP, PAYLOAD, 0)))

    verdict, reason = only(
        judged(served(message_sent(GROUP, commit(GROUP, seed=1), 5)), transaction=transaction)
    )

    assert (verdict, "no direct call" in reason) == (Verdict.NOT_PROVED, True)


def test_verify__administrators_call__is_not_proved() -> None:
    transaction = Transaction(to=MESSAGES, input=keccak256(b"pause()")[:4], log_address=WALLET)

    assert judged(served(HONEST), transaction=transaction).verdict == Verdict.NOT_PROVED


def test_verify__contract_emitted_other_than_its_arguments__is_not_proved() -> None:
    promised = message_sent(GROUP, commit(GROUP, seed=2), 5)
    transaction = Transaction(input=calldata(promised))

    assert (
        judged(
            served(message_sent(GROUP, commit(GROUP, seed=1), 5)), transaction=transaction
        ).verdict
        == Verdict.NOT_PROVED
    )


def test_verify__direct_call_reverted_here__is_not_proved_for_its_own_payload() -> None:
    verdict, reason = only(judged(served(HONEST), transaction=Transaction(succeeded=False)))

    assert (verdict, "reverted here" in reason) == (Verdict.NOT_PROVED, True)


def test_verify__direct_call_reverted_here__is_proved_for_another_payload() -> None:
    tampered = served(message_sent(GROUP, commit(GROUP, seed=1), 5))

    assert judged(tampered, transaction=Transaction(succeeded=False)).verdict == Verdict.PROVED


def test_verify__event_of_a_strangers_contract__does_not_count() -> None:
    transaction = Transaction(log_address=WALLET, to=WALLET, input=b"\x01")

    assert judged(served(HONEST), transaction=transaction).verdict == Verdict.NOT_PROVED


def test_verify__served_though_no_client_envelope__is_refuted_and_named() -> None:
    event = message_sent(GROUP, b"\xff", 5)

    verdict, reason = only(judged(served(event), transaction=Transaction([event])))

    assert verdict == Verdict.REFUTED
    assert "not a ClientEnvelope" in reason


def test_verify__one_proved_among_others__is_proved_overall() -> None:
    honest = served(HONEST)
    moved = served(message_sent(GROUP, PAYLOAD, 9))
    tampered = served(message_sent(GROUP, commit(GROUP, seed=1), 5))

    assert judged(honest, moved, tampered).verdict == Verdict.PROVED
    assert judged(honest, moved).verdict == Verdict.NOT_PROVED
    assert judged(honest, honest).verdict == Verdict.REFUTED


def test_verify__reporter__is_named_if_registered() -> None:
    steps = {step.name: step.found for step in judged(served(HONEST)).steps}

    assert steps["reporter"].startswith("not established: the signature gives 0x")
    assert steps["accused"].startswith("node 100, enabled, key of 0x")
    endpoint = FakeProvider(FakeRegistry().answers() | Transaction().endpoint_answers()).endpoint()
    report = sign_inconsistency_report(100, [served(HONEST)], 1, node_key(2))
    assert (
        verify_report(report, endpoint, RECORD, block())
        .steps[1]
        .found.startswith("node 200, by its key 0x")
    )


@pytest.mark.parametrize("data", [b"", b"\xff\xff", b"report", bytes(100)])
def test_verify__report_is_garbage__could_not_be_checked(data: bytes) -> None:
    with pytest.raises(MalformedData, match="misbehavior report"):
        verify_report(data, FakeRegistry().endpoint(), RECORD, block())


def test_verify__report_signature_recovers_to_nobody__could_not_be_checked() -> None:
    report = message_api_pb2.MisbehaviorReport()
    report.ParseFromString(sign_inconsistency_report(100, [served(HONEST)], 1, AUDITOR))
    report.signature.bytes = bytes(65)

    with pytest.raises(InvalidSignature):
        verify_report(report.SerializeToString(), FakeRegistry().endpoint(), RECORD, block())


def test_verify__chain_forks_meanwhile__could_not_be_checked() -> None:
    class Forking(FakeRegistry):
        def header(self, number: str, full: bool) -> dict[str, str] | None:
            header = super().header(number, full)
            if header and int(number, 16) == 20:
                header["hash"] = "0x" + bytes(32).hex()
            return header

    endpoint = FakeProvider(Forking().answers() | Transaction().endpoint_answers()).endpoint()
    report = sign_inconsistency_report(100, [served(HONEST)], 1, AUDITOR)

    with pytest.raises(InconsistentAnswer, match="block 20"):
        verify_report(report, endpoint, RECORD, block())


UNKNOWN_FIELD = b"\x28\x01"  # field 5, a varint


@pytest.mark.parametrize("hash_", [HASH, bytes(32)], ids=["known", "unknown transaction"])
@pytest.mark.parametrize(
    ("changes", "appended", "words"),
    [
        ({"originator_sequence_id": 0}, b"", "sequence id 0"),
        ({"originator_ns": chain_ns(TIME, HONEST.sequence_id) + 1}, b"", "no block gives"),
        ({"originator_ns": TIME * 10**9}, b"", "no block gives"),
        ({"originator_sequence_id": HONEST.sequence_id + 1}, b"", "no block gives"),
        ({"originator_ns": chain_ns(-2, HONEST.sequence_id)}, b"", "no block gives"),
        ({"originator_ns": 2**63 - 1}, b"", "no block gives"),
        ({}, UNKNOWN_FIELD, "hold more than"),
        ({"payer_envelope": b"\x12\x00"}, b"", "hold more than"),
    ],
)
def test_verify__signed_bytes_that_no_log_gives__is_proved(
    changes: dict[str, Any], appended: bytes, words: str, hash_: bytes
) -> None:
    honest = unsigned_originator_envelope(HONEST, TIME)
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope.FromString(honest)
    for name, value in changes.items():
        if isinstance(value, bytes):
            value = unsigned.payer_envelope + value
        setattr(unsigned, name, value)
    data = sign_originator_envelope(unsigned.SerializeToString() + appended, hash_, NODE)

    verdict, reason = only(judged(data))

    assert verdict == Verdict.PROVED
    assert words in reason

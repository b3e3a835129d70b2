from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.protocol.payer_envelope import MAXIMUM_CLIENT_ENVELOPE_LENGTH
from chainkit.protocol.proto import envelopes_pb2
from chainkit.protocol.publish_rules.client_envelope import Destination, parse_client_envelope
from chainkit.protocol.publish_rules.refusal import PublishRefused, RefusalReason
from chainkit.types import TopicKind
from support import mls, publishes
from support.damage import damaged
from support.vectors import case_name, from_hex, load

CASES = load("todays_clients")["cases"]
OTHER_KEY = b"o" * 32


def refusal_of(client_envelope: bytes) -> PublishRefused:
    with pytest.raises(PublishRefused) as caught:
        parse_client_envelope(client_envelope)
    return caught.value


@pytest.mark.conforms("N4", "N15")
@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_parse__payload_of_today_s_client__is_taken(case: dict[str, Any]) -> None:
    data = from_hex(case["client_envelope"])

    client = parse_client_envelope(data)

    assert client.client_envelope == data
    assert client.kind is TopicKind[case["kind"]]
    assert client.topic == from_hex(case["topic"])
    assert client.target_originator is None
    assert client.last_seen.sequence_ids == {
        int(originator): sequence for originator, sequence in case["last_seen"].items()
    }
    assert (client.destination is Destination.CHAIN) == case["belongs_to_chain"]
    assert (client.key_package is not None) == (case["kind"] == "KEY_PACKAGE")


@pytest.mark.parametrize(
    ("message", "destination"),
    [
        (mls.private_message(publishes.GROUP_ID, mls.APPLICATION), Destination.ORIGINATOR),
        (mls.private_message(publishes.GROUP_ID, mls.PROPOSAL), Destination.CHAIN),
        (mls.private_message(publishes.GROUP_ID, mls.COMMIT), Destination.CHAIN),
        (mls.public_message(publishes.GROUP_ID, mls.PROPOSAL), Destination.CHAIN),
        (mls.public_message(publishes.GROUP_ID, mls.COMMIT), Destination.CHAIN),
    ],
)
def test_parse__message_of_each_content__has_its_destination(
    message: bytes, destination: Destination
) -> None:
    assert parse_client_envelope(publishes.group_message(message)).destination is destination


def test_parse__target_and_cursor_of_the_client__are_given() -> None:
    client = parse_client_envelope(publishes.group_message(seen={0: 7, 200: 9}, target=200))

    assert client.target_originator == 200
    assert client.last_seen.sequence_ids == {0: 7, 200: 9}


@pytest.mark.conforms("N4", "N12")
@pytest.mark.parametrize("kind", TopicKind)
@pytest.mark.parametrize(
    "client_envelope",
    [
        publishes.group_message(identifier=b"g" * 32),
        publishes.welcome(),
        publishes.identity_update(),
        publishes.key_package(),
    ],
    ids=["group message", "welcome", "identity update", "key package"],
)
def test_parse__payload_on_a_topic_of_each_kind__is_taken_only_on_its_own(
    client_envelope: bytes, kind: TopicKind
) -> None:
    envelope = envelopes_pb2.ClientEnvelope.FromString(client_envelope)
    own = TopicKind(envelope.aad.target_topic[0])
    envelope.aad.target_topic = kind.topic(envelope.aad.target_topic[1:])
    moved = envelope.SerializeToString()

    if kind is own:
        assert parse_client_envelope(moved).kind is own
    else:
        refusal = refusal_of(moved)
        assert refusal.reason is RefusalReason.WRONG_TOPIC
        assert str(refusal).startswith(f"payload of a topic of kind {kind:d}: expected ")


@pytest.mark.conforms("N12")
@pytest.mark.parametrize("topic", [b"", b"\x04" + bytes(32), b"\xff" + bytes(32)], ids=bytes.hex)
def test_parse__topic_without_a_known_kind__is_refused(topic: bytes) -> None:
    envelope = envelopes_pb2.ClientEnvelope.FromString(publishes.group_message())
    envelope.aad.target_topic = topic

    refusal = refusal_of(envelope.SerializeToString())

    assert refusal.reason is RefusalReason.WRONG_TOPIC
    got = topic[:1].hex() or "nothing"
    assert str(refusal) == f"topic: expected a kind from 0 to 3, got {got}"


@pytest.mark.parametrize("length", [0, 33, 100_000])
def test_parse__group_id_of_a_length_the_chain_cannot_hold__is_refused(length: int) -> None:
    refusal = refusal_of(publishes.group_message(identifier=bytes(length)))

    assert refusal.reason is RefusalReason.WRONG_TOPIC
    assert str(refusal) == (
        f"identifier of a topic of kind 0: expected 1 to 32 bytes, got {length} bytes"
    )


@pytest.mark.parametrize("length", [0, 31, 33])
@pytest.mark.parametrize("make", [publishes.welcome, publishes.key_package])
def test_parse__installation_key_of_another_length__is_refused(make: Any, length: int) -> None:
    refusal = refusal_of(make(identifier=bytes(length)))

    assert refusal.reason is RefusalReason.WRONG_TOPIC
    assert f"expected 32 bytes, got {length} bytes" in str(refusal)


@pytest.mark.conforms("N15")
@pytest.mark.parametrize(
    ("client_envelope", "message"),
    [
        (
            publishes.group_message(mls.private_message(b"other group")),
            f"group id of the MLS message: expected 0x{'67' * 16} (16 bytes), "
            "got 0x6f746865722067726f7570 (11 bytes)",
        ),
        (
            publishes.group_message(mls.private_message(bytes(40))),
            f"group id of the MLS message: expected 0x{'67' * 16} (16 bytes), "
            f"got 0x{'00' * 32} (40 bytes)",
        ),
        (
            publishes.group_message(mls.private_message(publishes.GROUP_ID)[:-1]),
            "mls message: expected 200 more bytes, got 199 (byte 53)",
        ),
        (
            publishes.welcome(installation_key=OTHER_KEY),
            "installation key of the welcome: expected "
            f"0x{publishes.INSTALLATION_KEY.hex()} (32 bytes), got 0x{OTHER_KEY.hex()} (32 bytes)",
        ),
        (
            publishes.welcome_pointer(publishes.INSTALLATION_KEY, OTHER_KEY),
            "installation key of the welcome: expected "
            f"0x{publishes.INSTALLATION_KEY.hex()} (32 bytes), got 0x{OTHER_KEY.hex()} (32 bytes)",
        ),
        (
            publishes.key_package(identifier=OTHER_KEY),
            f"installation key of the key package: expected 0x{OTHER_KEY.hex()} (32 bytes), "
            f"got 0x{publishes.INSTALLATION_KEY.hex()} (32 bytes)",
        ),
        (publishes.key_package(b"\0\2"), "key package: expected version 1, got 2 (byte 2)"),
        (
            publishes.identity_update(inbox_id="49" * 32 + "…"),
            f"inbox id of the identity update: expected {'69' * 32}, got '{'49' * 32}'",
        ),
    ],
)
def test_parse__payload_that_breaks_the_rules_of_its_kind__says_which(
    client_envelope: bytes, message: str
) -> None:
    refusal = refusal_of(client_envelope)

    assert refusal.reason is RefusalReason.INVALID_PAYLOAD
    assert str(refusal) == message


def test_parse__welcome_pointer_of_the_topic_s_installation__is_taken() -> None:
    key = publishes.INSTALLATION_KEY

    client = parse_client_envelope(publishes.welcome_pointer(key, key))

    assert client.destination is Destination.ORIGINATOR


@pytest.mark.parametrize(
    ("client_envelope", "message"),
    [
        (b"\x0a", "ClientEnvelope: expected what all readers read alike, got bytes that are no"),
        (b"", "client envelope: expected an aad, got none"),
        (
            bytes(MAXIMUM_CLIENT_ENVELOPE_LENGTH + 1),
            "client envelope: expected at most 4194304 bytes, got 4194305 bytes",
        ),
    ],
    ids=["no protobuf", "no aad", "too large"],
)
def test_parse__no_client_envelope__says_so(client_envelope: bytes, message: str) -> None:
    refusal = refusal_of(client_envelope)

    assert refusal.reason is RefusalReason.NOT_A_CLIENT_ENVELOPE
    assert str(refusal).startswith(message)


@pytest.mark.parametrize("case", CASES, ids=case_name)
@given(st.data())
def test_parse__damaged_payload_of_today_s_client__is_taken_or_refused(
    case: dict[str, Any], data: st.DataObject
) -> None:
    payload = data.draw(damaged(from_hex(case["client_envelope"])))

    try:
        client = parse_client_envelope(payload)
    except PublishRefused as refusal:
        assert refusal.reason in RefusalReason
        return
    assert client.client_envelope == payload

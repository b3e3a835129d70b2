import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.protocol.envelope import QuarantineReason, are_servable, quarantine_reason
from chainkit.protocol.proto import envelopes_pb2
from chainkit.protocol.served_topic import is_named, named_topic, served_topic
from chainkit.types import PayloadEvent, TopicKind, identity_update_created, message_sent
from support import payloads
from support.vectors import from_hex, load

SHORT = b"g" * 16
PADDED = SHORT.ljust(32, b"\0")
GROUP, INBOX = TopicKind.GROUP_MESSAGE, TopicKind.IDENTITY_UPDATE

identifiers = st.builds(
    lambda start, zeros: (start + bytes(zeros))[:32].ljust(32, b"\0"),
    st.binary(max_size=32),
    st.integers(0, 32),
)


def topic_of(event: PayloadEvent) -> bytes:
    return served_topic(event.kind, event.identifier, event.payload)


@pytest.mark.parametrize(
    ("named", "is_its"),
    [
        (SHORT, True),
        (SHORT + b"\0", True),
        (PADDED[:-1], True),
        (PADDED, True),
        (SHORT[:-1], False),
        (SHORT + b"\1", False),
        (PADDED + b"\0", False),
        (b"", False),
    ],
    ids=repr,
)
def test_quarantine__group_id_that_the_padding_completes__is_the_chain_s(
    named: bytes, is_its: bool
) -> None:
    event = message_sent(PADDED, payloads.commit(named), 1)

    assert quarantine_reason(event) == (None if is_its else QuarantineReason.WRONG_TOPIC)
    assert are_servable([event.payload], [GROUP.topic(PADDED)]) == [is_its]
    assert topic_of(event) == GROUP.topic(named if is_its else PADDED)


def test_quarantine__group_id_of_zeros__needs_a_byte_of_it() -> None:
    event = message_sent(bytes(32), payloads.commit(b""), 1)

    assert quarantine_reason(event) is QuarantineReason.WRONG_TOPIC
    assert topic_of(event) == bytes(33)
    assert quarantine_reason(event._replace(payload=payloads.commit(b"\0"))) is None


def test_quarantine__inbox_id_without_its_last_zeros__is_another() -> None:
    event = identity_update_created(PADDED, payloads.identity_update(SHORT), 1)

    assert quarantine_reason(event) is QuarantineReason.WRONG_TOPIC
    assert topic_of(event) == INBOX.topic(PADDED)


def test_quarantine__contract_that_takes_16_bytes__pads_to_16() -> None:
    event = message_sent(b"g" * 8 + bytes(8), payloads.commit(b"g" * 8), 1)

    assert quarantine_reason(event) is None
    assert topic_of(event) == GROUP.topic(b"g" * 8)


@pytest.mark.parametrize(
    "case",
    [case for case in load("todays_clients")["cases"] if case["belongs_to_chain"]],
    ids=lambda case: case["name"],
)
def test_quarantine__payload_of_today_s_client__is_served_under_its_own_topic(
    case: dict[str, str],
) -> None:
    topic = from_hex(case["topic"])
    identifier = topic[1:].ljust(32, b"\0")
    event = PayloadEvent(TopicKind(topic[0]), identifier, from_hex(case["client_envelope"]), 1)

    assert quarantine_reason(event) is None
    assert topic_of(event) == topic


@given(st.sampled_from([GROUP, INBOX]), identifiers, st.integers(0, 32))
def test_find_topic__any_identifier_and_name__is_the_named_one_only_where_it_is_servable(
    kind: TopicKind, identifier: bytes, length: int
) -> None:
    make = payloads.commit if kind is GROUP else payloads.identity_update
    event = PayloadEvent(kind, identifier, make(identifier[:length]), 1)
    posted, named = kind.topic(identifier), kind.topic(identifier[:length])

    is_servable = quarantine_reason(event) is None

    assert is_servable == is_named(named, posted)
    assert topic_of(event) == (named if is_servable else posted)
    assert topic_of(event).ljust(33, b"\0") == posted


@pytest.mark.parametrize("payload", [b"\xff", b"", payloads.commit(b"other")])
def test_find_topic__payload_that_names_another_or_none__is_the_posted_one(payload: bytes) -> None:
    assert topic_of(message_sent(PADDED, payload, 1)) == GROUP.topic(PADDED)


def test_find_named_topic__two_aads__is_the_last_one() -> None:
    second = envelopes_pb2.ClientEnvelope()
    second.aad.target_topic = b"second"

    assert named_topic(payloads.commit(SHORT) + second.SerializeToString()) == b"second"

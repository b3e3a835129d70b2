"""An originator's envelope as its readers judge it: refused, kept as valid, or as evidence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import InvalidSignature, MalformedData, MalformedEnvelope
from chainkit.protocol.charges import NO_CHARGE, Charge
from chainkit.protocol.originated_envelope import (
    originator_digest,
    parse_originated,
    sign_originated,
)
from chainkit.protocol.proto import envelopes_pb2
from chainkit.protocol.received_envelope import (
    NO_TOPIC,
    ReceivedEnvelope,
    depends_on_itself,
    read_received,
)
from chainkit.protocol.strict import NotStrict
from chainkit.signatures import address_of
from chainkit.types import TopicKind
from support import mls, publishes
from support.audit.identities import key_of
from support.damage import damaged
from support.gateway.fake_nodes import of_chain
from support.originated import NOW_NS, SECOND, message, signed
from support.publishes import GROUP_ID, INSTALLATION_KEY, paid

NODE = publishes.NODE_ID
KEY = key_of(NODE)
WHOLE = signed(NODE, 1)
DAY = 24 * 60 * 60
PAYER = bytes.fromhex(address_of(publishes.PAYER.public_key)[2:])


def read(data: bytes) -> ReceivedEnvelope:
    return read_received(data, NODE, KEY.public_key)


def numbered(sequence_id: int) -> bytes:
    """An envelope that states any sequence id, as `signed` would refuse to write it."""
    unsigned = parsed_unsigned(WHOLE)
    unsigned.originator_sequence_id = sequence_id
    return sign_originated(unsigned.SerializeToString(), KEY)


def parsed_unsigned(data: bytes) -> envelopes_pb2.UnsignedOriginatorEnvelope:
    raw = parse_originated(data).unsigned_originator_envelope
    return envelopes_pb2.UnsignedOriginatorEnvelope.FromString(raw)


def of_another_topic(client: bytes, topic: bytes) -> bytes:
    envelope = envelopes_pb2.ClientEnvelope.FromString(client)
    envelope.aad.target_topic = topic
    return envelope.SerializeToString()


def without_payer_signature(payer_envelope: bytes) -> bytes:
    payer = envelopes_pb2.PayerEnvelope.FromString(payer_envelope)
    payer.payer_signature.bytes = bytes(65)
    return payer.SerializeToString()


def package(**fields: object) -> bytes:
    return publishes.key_package(mls.KeyPackageFields(**fields).written())  # type: ignore[arg-type]


# ------------------------------------------------------------------ what keeps the rules


def test_read__valid_message__is_told_whole() -> None:
    time_ns = NOW_NS + 5
    expiry = NOW_NS // SECOND + DAY
    data = signed(NODE, 7, time_ns, expiry=expiry, seen={0: 3, 200: 4})

    received = read(data)

    parsed = parse_originated(data)
    unsigned, payer_envelope = parsed.unsigned_originator_envelope, parsed.envelope.payer_envelope
    assert received == ReceivedEnvelope(
        *(NODE, 7, time_ns, expiry),
        topic=TopicKind.GROUP_MESSAGE.topic(GROUP_ID),
        depends_on={0: 3, 200: 4},
        envelope=data,
        digest=originator_digest(unsigned),
        charge=Charge(PAYER, TopicKind.GROUP_MESSAGE, len(payer_envelope), 1),
        fault=None,
    )


@pytest.mark.parametrize(
    ("client", "topic"),
    [
        (publishes.welcome(), TopicKind.WELCOME.topic(INSTALLATION_KEY)),
        (publishes.key_package(), TopicKind.KEY_PACKAGE.topic(INSTALLATION_KEY)),
    ],
)
def test_read__valid_payload_of_each_kind__keeps_its_topic(client: bytes, topic: bytes) -> None:
    received = read(signed(NODE, 1, payer_envelope=paid(client)))

    assert (received.fault, received.topic) == (None, topic)


@pytest.mark.conforms("T6")
@pytest.mark.parametrize(
    ("client", "wish", "lives", "days"),
    [
        (publishes.welcome(), None, None, 90),
        (publishes.key_package(), None, 400, 90),
        (publishes.group_message(), None, 30, 30),
        (publishes.group_message(), 365, 365, 365),
        (publishes.group_message(), 7, 7, 7),
        # An originator that keeps an envelope for longer is paid no more, and for less no more.
        (publishes.group_message(), 7, 8, 7),
        (publishes.group_message(), 7, None, 7),
        (publishes.group_message(), 7, 2, 2),
    ],
)
def test_charge__of_each_wish__is_bytes_and_days_that_the_payer_declared(
    client: bytes, wish: int | None, lives: int | None, days: int
) -> None:
    payload = paid(client, retention_days=wish)
    expiry = None if lives is None else NOW_NS // SECOND + lives * DAY

    charge = read(signed(NODE, 1, payer_envelope=payload, expiry=expiry)).charge

    assert charge == Charge(PAYER, client_kind(client), len(payload), days)


@pytest.mark.parametrize("days", [0, 30, 60, 365])
def test_charge__days_that_the_payer_did_not_sign__are_the_default_and_no_offence(
    days: int,
) -> None:
    forged = publishes.with_other_days(paid(publishes.group_message(), retention_days=7), days)
    expiry = NOW_NS // SECOND + 365 * DAY

    received = read(signed(NODE, 1, payer_envelope=forged, expiry=expiry))

    assert (received.fault, received.is_offence) == (None, False)
    assert received.charge.days == 30


def test_charge__payer_of_today__owes_the_days_that_it_declares() -> None:
    payer = envelopes_pb2.PayerEnvelope.FromString(paid(publishes.group_message()))
    payer.ClearField("retention_signature")
    payer.message_retention_days = 60

    received = read(signed(NODE, 1, payer_envelope=payer.SerializeToString()))

    assert received.charge.days == 60


def test_charge__payload_for_another_node__is_nobodys() -> None:
    received = read(signed(NODE, 1, payer_envelope=paid(publishes.welcome(), NODE + 100)))

    assert received.fault is not None
    assert received.charge == NO_CHARGE


def client_kind(client: bytes) -> int:
    return envelopes_pb2.ClientEnvelope.FromString(client).aad.target_topic[0]


@pytest.mark.parametrize("sequence_id", [1, 2**63 - 1])
def test_read__first_and_last_sequence_id__is_kept(sequence_id: int) -> None:
    assert read(numbered(sequence_id)).sequence_id == sequence_id


def test_read__expiry_beyond_a_database__never_expires() -> None:
    assert read(signed(NODE, 1, expiry=2**63)).expires_at is None
    assert read(signed(NODE, 1)).expires_at is None
    assert read(signed(NODE, 1, expiry=2**63 - 1)).expires_at == 2**63 - 1


@pytest.mark.parametrize(("own", "expected"), [(4, False), (5, True), (6, True)])
def test_depends__on_its_own_originator__only_on_earlier_ones(own: int, expected: bool) -> None:
    assert depends_on_itself(read(signed(NODE, 5, seen={NODE: own}))) is expected
    assert not depends_on_itself(read(signed(NODE, 5, seen={200: own})))


# ------------------------------------------------------------------ what breaks a rule (§3.3.4)

HOUR = 3600
EXPIRED = package(lifetime=(mls.SECONDS - HOUR, mls.SECONDS - 301))
NOT_YET = package(lifetime=(mls.SECONDS + 1, mls.SECONDS + HOUR))
FORGED = package(labels=(b"LeafNodeTBS", b"another label"))

FAULTS = {
    "no payer envelope": (b"\xff", "not a PayerEnvelope"),
    "payer signature": (without_payer_signature(message(NODE)), "payer signature recovers to"),
    "retention": (paid(publishes.welcome(), retention_days=366), "retention is out of bounds"),
    "no client envelope": (paid(b"\xff"), "not a ClientEnvelope"),
    "topic of another kind": (
        paid(of_another_topic(publishes.welcome(), TopicKind.GROUP_MESSAGE.topic(GROUP_ID))),
        "topic does not match the payload",
    ),
    "topic of another installation": (
        paid(publishes.welcome(b"k" * 32, INSTALLATION_KEY)),
        "payload breaks the rules of its kind: installation key",
    ),
    "group id of the message": (
        paid(publishes.group_message(mls.private_message(b"other"))),
        "payload breaks the rules of its kind: group id",
    ),
    "no message": (paid(publishes.group_message(b"\xff")), "payload breaks the rules"),
    "target of another": (paid(publishes.welcome(), 200), "target originator is another node"),
    "no target": (
        publishes.paid_without_target(publishes.group_message()),
        "no target originator",
    ),
    "targets differ": (paid(publishes.group_message(target=200)), "name different originators"),
    "commit": (paid(publishes.commit()), "payload belongs to the chain"),
    "commit for nobody": (
        publishes.paid_without_target(publishes.commit()),
        "payload belongs to the chain",
    ),
    "identity update": (paid(publishes.identity_update()), "payload belongs to the chain"),
    "expired key package": (paid(EXPIRED), "payload breaks the rules of its kind: key package"),
    "key package of the future": (paid(NOT_YET), "payload breaks the rules of its kind"),
    "forged key package": (paid(FORGED), "payload breaks the rules of its kind: key package"),
}


@pytest.mark.parametrize("payer_envelope, words", FAULTS.values(), ids=FAULTS)
def test_read__payload_that_breaks_a_rule__is_evidence(payer_envelope: bytes, words: str) -> None:
    data = signed(NODE, 1, payer_envelope=payer_envelope)

    received = read(data)

    assert words in (received.fault or ""), received.fault
    assert (received.topic, received.envelope) == (NO_TOPIC, data)


@pytest.mark.parametrize(
    ("lifetime", "is_valid"),
    [
        ((-HOUR, 0), True),
        ((0, HOUR), True),
        # It was judged up to 300 s before it got its time.
        ((-HOUR, -1), True),
        ((-HOUR, -300), True),
        ((-HOUR, -301), False),
        ((-20, -10), True),
        ((1, HOUR), False),
    ],
)
def test_read__key_package_near_its_lifetimes_end__was_valid_when_it_was_judged(
    lifetime: tuple[int, int], is_valid: bool
) -> None:
    first, last = (mls.SECONDS + each for each in lifetime)
    data = signed(NODE, 1, payer_envelope=paid(package(lifetime=(first, last))))

    assert (read(data).fault is None) is is_valid


@pytest.mark.parametrize(("seconds", "is_valid"), [(DAY, True), (DAY - 300, True), (0, False)])
def test_read__expiry__is_a_day_after_the_time(seconds: int, is_valid: bool) -> None:
    soon = mls.SECONDS + seconds

    assert (read(signed(NODE, 1, expiry=soon)).fault is None) is is_valid
    sooner = read(signed(NODE, 1, expiry=mls.SECONDS + DAY - 301))
    assert (sooner.fault or "").startswith("retention is out of bounds: expiry")


def test_read__dependencies_of_a_broken_payload__are_still_told() -> None:
    broken = paid(publishes.group_message(seen={200: 9}, target=200), 200)

    received = read(signed(NODE, 1, payer_envelope=broken))

    assert received.fault is not None
    assert received.depends_on == {200: 9}


# ------------------------------------------------------------------ what others made of it


def unknown_field(number: int, content: bytes = b"x") -> bytes:
    """A field of a number that no message of ours has."""
    tag = number << 3 | 2
    return bytes([tag & 0x7F | 0x80, tag >> 7, len(content)]) + content


@given(st.lists(st.integers(100, 200), max_size=3), st.lists(st.integers(100, 200), max_size=3))
def test_read__unknown_fields_around_the_signed_part__are_dropped(
    before: list[int], after: list[int]
) -> None:
    fields = [b"".join(map(unknown_field, numbers)) for numbers in (before, after)]

    assert read(fields[0] + WHOLE + fields[1]) == read(WHOLE)


def test_read__unknown_field_within_the_signed_part__is_another_envelope() -> None:
    unsigned = parse_originated(WHOLE).unsigned_originator_envelope + unknown_field(100)

    received = read(sign_originated(unsigned, KEY))

    assert received.digest != read(WHOLE).digest
    assert received.envelope != WHOLE


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (signed(NODE, 1, key=key_of(200)), InvalidSignature, "the signature of node 100, got 0x"),
        (signed(200, 1), MalformedEnvelope, "one of originator 100, got another's"),
        (numbered(0), MalformedEnvelope, "a sequence id from 1 to"),
        (numbered(2**63), MalformedEnvelope, "a sequence id from 1 to"),
        (numbered(2**64 - 1), MalformedEnvelope, "a sequence id from 1 to"),
        (of_chain(1), MalformedEnvelope, "an originator's signature, got blockchain_proof"),
        (b"", MalformedEnvelope, "an originator's signature, got no proof"),
        (b"\xff", NotStrict, "bytes that are no message"),
    ],
)
def test_read__bytes_that_the_originator_did_not_sign__are_refused(
    data: bytes, error: type[MalformedData], words: str
) -> None:
    with pytest.raises(error, match=words):
        read(data)


def test_read__signature_without_a_signer__is_refused() -> None:
    parsed = envelopes_pb2.OriginatorEnvelope.FromString(WHOLE)
    parsed.originator_signature.bytes = bytes(65)

    with pytest.raises(InvalidSignature):
        read(parsed.SerializeToString())


@given(st.one_of(st.binary(max_size=40), damaged(WHOLE)))
def test_read__any_bytes__are_the_same_envelope_or_refused(data: bytes) -> None:
    try:
        received = read(data)
    except MalformedData:
        return
    assert received.digest == read(WHOLE).digest

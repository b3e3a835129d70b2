from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.protocol.proto import envelopes_pb2
from chainkit.protocol.publish_rules.client_envelope import Destination, parse_client_envelope
from chainkit.protocol.publish_rules.judgement import (
    NodeView,
    PublishRequest,
    check_position,
    depends_on_position,
    judge_publish,
    read_publish,
)
from chainkit.protocol.publish_rules.refusal import PublishRefused, RefusalReason
from chainkit.types import Cursor
from support import mls, publishes
from support.damage import damaged, with_flipped_bit
from support.publishes import NODE_ID, PAYER, paid, paid_without_target
from support.vectors import case_name, from_hex, load

CASES = load("todays_clients")["cases"]
TODAYS = [case for case in CASES if not case["belongs_to_chain"]]
VIEW = NodeView(NODE_ID, Cursor({0: 50, NODE_ID: 9, 200: 7}), 0, mls.SECONDS * 10**9)


def judged(payer_envelope: bytes, view: NodeView = VIEW) -> PublishRequest:
    request = read_publish(payer_envelope)
    judge_publish(request, view)
    return request


def refusal_of(payer_envelope: bytes, view: NodeView = VIEW) -> PublishRefused:
    with pytest.raises(PublishRefused) as caught:
        judged(payer_envelope, view)
    return caught.value


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_depends_on_position__payload_that_does_not__is_judged_alike_whatever_the_node_holds(
    case: dict[str, Any],
) -> None:
    client = parse_client_envelope(from_hex(case["client_envelope"]))
    views = [VIEW, replace(VIEW, cursor=Cursor(), latest_chain_sequence_id=10**6)]

    found = set()
    for view in views:
        try:
            check_position(client, view)
            found.add("taken")
        except PublishRefused as error:
            found.add(str(error.reason))

    assert depends_on_position(client) or found == {"taken"}


# ------------------------------------------------------------------ what is taken


@pytest.mark.conforms("N3", "N11", "N13", "N14", "N15")
@pytest.mark.parametrize("case", TODAYS, ids=case_name)
def test_judge__payload_of_today_s_client_and_payer__is_taken(case: dict[str, Any]) -> None:
    client_envelope = from_hex(case["client_envelope"])
    payer_envelope = paid(client_envelope, retention_days=60)
    latest = case["last_seen"].get("0", 0)
    view = replace(VIEW, latest_chain_sequence_id=latest, now_ns=int(case["published_at_ns"]))

    request = judged(payer_envelope, view)

    assert request.payer_envelope == payer_envelope
    assert request.client.client_envelope == client_envelope
    assert request.client.topic == from_hex(case["topic"])
    assert request.client.destination is Destination.ORIGINATOR
    assert (request.payer_key, request.retention_days) == (PAYER.public_key, 60)


@pytest.mark.parametrize("case", CASES, ids=case_name)
@given(st.data())
def test_judge__damaged_publish_of_today_s_client__is_taken_or_refused(
    case: dict[str, Any], data: st.DataObject
) -> None:
    whole = paid(from_hex(case["client_envelope"]))
    view = replace(VIEW, now_ns=int(case["published_at_ns"]))

    try:
        request = judged(data.draw(damaged(whole)), view)
    except PublishRefused as refusal:
        assert refusal.reason in RefusalReason
        assert (refusal.cursor is view.cursor) == refusal.reason.is_conflict
        return
    assert request.target_originator in (None, NODE_ID)


# ------------------------------------------------------------------ the payer


@pytest.mark.conforms("N11")
@pytest.mark.parametrize(
    "signature", [b"", bytes(65), b"\xff" * 65, bytes(64) + b"\2"], ids=bytes.hex
)
def test_read__signature_that_recovers_to_nobody__is_refused(signature: bytes) -> None:
    payer = envelopes_pb2.PayerEnvelope.FromString(paid(publishes.group_message()))
    payer.payer_signature.bytes = signature

    refusal = refusal_of(payer.SerializeToString())

    assert refusal.reason is RefusalReason.INVALID_PAYER_SIGNATURE
    assert refusal.cursor is None


@pytest.mark.conforms("N11")
@given(st.integers(0, 8 * 65 - 1))
def test_read__any_flipped_bit_of_the_signature__is_refused_or_another_payer(bit: int) -> None:
    payer = envelopes_pb2.PayerEnvelope.FromString(paid(publishes.group_message()))
    payer.payer_signature.bytes = with_flipped_bit(payer.payer_signature.bytes, bit)

    try:
        request = read_publish(payer.SerializeToString())
    except PublishRefused as refusal:
        assert refusal.reason is RefusalReason.INVALID_PAYER_SIGNATURE
        return
    assert request.payer_key != PAYER.public_key


@pytest.mark.parametrize("data", [b"\x0a", bytes(5_000_000)], ids=["no protobuf", "too large"])
def test_read__no_payer_envelope__says_so(data: bytes) -> None:
    assert refusal_of(data).reason is RefusalReason.NOT_A_PAYER_ENVELOPE


@pytest.mark.parametrize(("days", "is_taken"), [(1, True), (365, True), (366, False)])
def test_read__retention_of_more_than_a_year__is_refused(days: int, is_taken: bool) -> None:
    payer_envelope = paid(publishes.group_message(), retention_days=days)

    if is_taken:
        assert judged(payer_envelope).retention_days == days
    else:
        refusal = refusal_of(payer_envelope)
        assert refusal.reason is RefusalReason.INVALID_RETENTION
        assert str(refusal) == "retention: expected 1 to 365 days, got 366"


@pytest.mark.parametrize(("signed", "days"), [(None, 365), (7, 365), (365, 7)])
def test_judge__retention_that_the_payer_did_not_sign__is_refused(
    signed: int | None, days: int
) -> None:
    payer_envelope = paid(publishes.group_message(), retention_days=signed)

    refusal = refusal_of(publishes.with_other_days(payer_envelope, days))

    assert refusal.reason is RefusalReason.FORGED_RETENTION


# ------------------------------------------------------------------ the target

REASONS_OF_TARGETS = {
    # The client's, the payer's.
    (0, 0): RefusalReason.NO_TARGET,
    (0, NODE_ID): None,
    (NODE_ID, 0): None,
    (NODE_ID, NODE_ID): None,
    (0, 200): RefusalReason.ANOTHER_ORIGINATOR,
    (200, 0): RefusalReason.ANOTHER_ORIGINATOR,
    (200, 200): RefusalReason.ANOTHER_ORIGINATOR,
    (NODE_ID, 200): RefusalReason.TARGETS_DIFFER,
    (200, NODE_ID): RefusalReason.TARGETS_DIFFER,
}


@pytest.mark.conforms("N3", "N12")
@pytest.mark.parametrize(("client", "payer"), REASONS_OF_TARGETS)
def test_judge__targets_of_client_and_payer__must_name_this_node(client: int, payer: int) -> None:
    client_envelope = publishes.group_message(target=client)
    data = paid(client_envelope, payer) if payer else paid_without_target(client_envelope)
    reason = REASONS_OF_TARGETS[client, payer]

    if reason is None:
        request = judged(data)
        assert request.payer_key == PAYER.public_key
        assert request.target_originator == (payer or None)
    else:
        assert refusal_of(data).reason is reason


@pytest.mark.parametrize(
    ("client", "payer", "message"),
    [
        (0, 0, "target originator: expected 100, got none"),
        (0, 200, "target originator: expected 100, got 200"),
        (NODE_ID, 200, "target of the payer: expected 100, got 200"),
    ],
)
def test_judge__wrong_target__says_what_was_expected(client: int, payer: int, message: str) -> None:
    client_envelope = publishes.group_message(target=client)
    data = paid(client_envelope, payer) if payer else paid_without_target(client_envelope)

    assert str(refusal_of(data)) == message


@pytest.mark.parametrize(
    "make", [publishes.commit, publishes.identity_update], ids=["commit", "identity update"]
)
def test_judge__payload_of_the_chain__is_for_the_chain_and_no_node_originates_it(make: Any) -> None:
    request = judged(paid_without_target(make()))

    assert request.client.destination is Destination.CHAIN
    for data in (paid(make()), paid_without_target(make(target=NODE_ID)), paid(make(), 200)):
        refusal = refusal_of(data)
        assert refusal.reason is RefusalReason.BELONGS_TO_CHAIN
        assert str(refusal).startswith("target originator: expected 0, the chain, got ")


# ------------------------------------------------------------------ the cursor


@pytest.mark.conforms("N13", "N17")
@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        ({NODE_ID: 9, 200: 7}, None),
        ({NODE_ID: 1}, None),
        ({300: 0}, None),
        ({NODE_ID: 10}, "last_seen of originator 100: expected at most 9, got 10"),
        ({NODE_ID: 9, 200: 8}, "last_seen of originator 200: expected at most 7, got 8"),
        ({300: 1}, "last_seen of originator 300: expected at most 0, got 1"),
        ({0: 51}, "last_seen of originator 0: expected at most 50, got 51"),
    ],
)
@pytest.mark.parametrize("kind", ["group message", "welcome"])
def test_judge__dependency_that_the_node_has_not_seen__is_a_conflict_with_its_cursor(
    kind: str, seen: dict[int, int], reason: str | None
) -> None:
    envelope = envelopes_pb2.ClientEnvelope.FromString(
        publishes.group_message() if kind == "group message" else publishes.welcome()
    )
    envelope.aad.last_seen.node_id_to_sequence_id.update(seen)
    data = paid(envelope.SerializeToString())

    if reason is None:
        assert judged(data).client.last_seen.sequence_ids == seen
    else:
        refusal = refusal_of(data)
        assert refusal.reason is RefusalReason.DEPENDENCY_AHEAD
        assert str(refusal) == reason
        assert refusal.reason.is_conflict
        assert refusal.cursor is VIEW.cursor


@pytest.mark.parametrize(("seen", "is_taken"), [({200: 5}, True), ({200: 6}, False)])
def test_judge__names_what_names_an_id_that_the_node_has_not_given__is_a_conflict(
    seen: dict[int, int], is_taken: bool
) -> None:
    request = read_publish(paid(publishes.group_message(seen=seen)))
    view = replace(VIEW, names_ungiven={200: 6})

    if is_taken:
        judge_publish(request, view)
    else:
        with pytest.raises(PublishRefused, match="expected less than 6, which names") as refusal:
            judge_publish(request, view)
        assert refusal.value.reason is RefusalReason.DEPENDENCY_AHEAD
        assert refusal.value.cursor is VIEW.cursor


@pytest.mark.conforms("N14")
@pytest.mark.parametrize(
    ("seen", "latest", "is_taken"),
    [
        ({}, 0, True),
        ({0: 0}, 0, True),
        ({200: 7}, 0, True),
        ({0: 42}, 42, True),
        ({}, 42, False),
        ({200: 7}, 42, False),
        ({0: 41}, 42, False),
        ({0: 43}, 42, False),
        ({0: 1}, 0, False),
    ],
)
@pytest.mark.parametrize("is_commit", [False, True])
def test_judge__group_message_on_another_commit_than_the_latest__is_a_conflict(
    is_commit: bool, seen: dict[int, int], latest: int, is_taken: bool
) -> None:
    message = paid_without_target(publishes.commit(seen)) if is_commit else None
    data = message or paid(publishes.group_message(seen=seen, target=publishes.NODE_ID))
    view = replace(VIEW, latest_chain_sequence_id=latest)

    if is_taken:
        judged(data, view)
    else:
        refusal = refusal_of(data, view)
        got = seen.get(0, 0)
        assert refusal.reason is RefusalReason.BEHIND_CHAIN
        assert str(refusal) == f"last_seen of originator 0: expected {latest}, got {got}"
        assert refusal.reason.is_conflict
        assert refusal.cursor is VIEW.cursor


@pytest.mark.parametrize(("seen", "is_taken"), [(0, False), (41, True), (42, True), (43, False)])
def test_judge__message_of_today_s_clients__may_be_commits_behind_but_not_without_any(
    seen: int, is_taken: bool
) -> None:
    data = paid(publishes.group_message(seen={0: seen} if seen else {}))
    view = replace(VIEW, cursor=Cursor({0: 100}), latest_chain_sequence_id=42)

    if is_taken:
        judged(data, view)
    else:
        assert refusal_of(data, view).reason is RefusalReason.BEHIND_CHAIN


@pytest.mark.conforms("N14")
@pytest.mark.parametrize(
    ("seen", "is_taken"), [({}, True), ({0: 42}, True), ({0: 41}, False), ({200: 7}, False)]
)
def test_judge__identity_update__must_name_the_latest_only_if_it_has_a_cursor(
    seen: dict[int, int], is_taken: bool
) -> None:
    data = paid_without_target(publishes.identity_update(seen))
    view = replace(VIEW, latest_chain_sequence_id=42)

    if is_taken:
        judged(data, view)
    else:
        assert refusal_of(data, view).reason is RefusalReason.BEHIND_CHAIN


@pytest.mark.parametrize("make", [publishes.welcome, publishes.key_package])
def test_judge__topic_that_has_no_commits__is_not_asked_for_the_latest(make: Any) -> None:
    judged(paid(make()), replace(VIEW, latest_chain_sequence_id=42))


# ------------------------------------------------------------------ the payload


@pytest.mark.conforms("N15")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": (b"LeafNodeTBS", b"LeafNodeTBS")}, "key package: expected an Ed25519 "),
        (
            {"lifetime": (0, mls.SECONDS - 1)},
            f"key package: expected a lifetime that contains {mls.SECONDS}",
        ),
    ],
    ids=["signature", "lifetime"],
)
def test_judge__key_package_that_nobody_can_use__is_refused(
    changes: dict[str, Any], message: str
) -> None:
    package = replace(mls.KeyPackageFields(), **changes)

    refusal = refusal_of(paid(publishes.key_package(package.written())))

    assert refusal.reason is RefusalReason.INVALID_PAYLOAD
    assert str(refusal).startswith(message)


def test_list_conflicts__all_reasons__are_those_of_the_cursor() -> None:
    assert [reason for reason in RefusalReason if reason.is_conflict] == [
        RefusalReason.DEPENDENCY_AHEAD,
        RefusalReason.BEHIND_CHAIN,
    ]


def test_judge__cursor_with_more_originators_than_the_network_has__is_refused() -> None:
    zeros = dict.fromkeys(range(1000, 1103), 0)

    assert judged(paid(publishes.group_message(seen=dict.fromkeys(range(1000, 1100), 0))))
    refusal = refusal_of(paid(publishes.group_message(seen=zeros | {200: 7})))

    assert refusal.reason is RefusalReason.WIDE_CURSOR
    assert str(refusal) == "last_seen: expected at most 103 originators, got 104"

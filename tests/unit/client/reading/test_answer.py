"""A node's answer about one topic: what is accepted, what is evidence, and what is neither."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.report import parse_unsigned
from chainkit.misbehavior.types import Misbehavior
from chainkit.signatures import SigningKey
from chainkit.types import TopicKind
from chainkit_client.breach import Breach
from chainkit_client.reading.answer import Reading, read_answer
from support import publishes
from support.client.served import (
    KEYS,
    NODE,
    NOW_NS,
    PEER,
    TOPIC,
    HeldTopic,
    bound_message,
    of_chain,
)
from support.network.originator import SECOND_NS, Originator

LOG = [
    NODE.signed(each, each, publishes.paid(publishes.group_message(seen={0: 1}))) for each in (3, 5)
]
COMMIT = of_chain(1)


def read(
    envelopes: Sequence[bytes], held: HeldTopic | None = None, server: Originator = NODE
) -> Reading:
    return read_answer(envelopes, TOPIC, server.node_id, KEYS, held or HeldTopic(), NOW_NS)


def weight(breach: Breach) -> Weight:
    """The worth of a breach's report to somebody who holds the registry's keys."""
    report = breach.report(NOW_NS)
    assert report is not None
    parsed = parse_unsigned(report)
    assert not parsed.is_from_node
    return judge_safety(parsed, KEYS.by_node, NOW_NS).weight


def kinds(reading: Reading) -> list[tuple[int, Misbehavior | None]]:
    return [(each.node_id, each.misbehavior) for each in reading.breaches]


def test_read__a_commit_and_messages__are_accepted_as_they_came() -> None:
    reading = read([COMMIT, *LOG])

    assert [each.place for each in reading.accepted] == [(0, 1), (100, 3), (100, 5)]
    assert [each.is_commit for each in reading.accepted] == [True, False, False]
    assert [dict(each.depends_on) for each in reading.accepted] == [{0: 0}, {0: 1}, {0: 1}]
    assert (reading.breaches, reading.refused, reading.void) == ([], [], {})


@pytest.mark.conforms("C6")
def test_read__what_is_held_and_what_comes_twice__is_counted_only() -> None:
    held = HeldTopic()
    for each in read([COMMIT, *LOG]).accepted:
        held.keep(each)

    reading = read([COMMIT, COMMIT, *LOG, LOG[-1]], held)

    assert (reading.accepted, reading.breaches, reading.refused) == ([], [], [])
    assert reading.repeated == 5


def test_read__the_same_again_behind_later_ones__is_no_disorder() -> None:
    reading = read([*LOG, *LOG])

    assert [each.place for each in reading.accepted] == [(100, 3), (100, 5)]
    assert (reading.breaches, reading.refused, reading.repeated) == ([], [], 2)


@pytest.mark.conforms("C6")
def test_read__own_ids_fall__is_claimed_and_all_is_accepted() -> None:
    reading = read(LOG[::-1])

    assert [each.place for each in reading.accepted] == [(100, 5), (100, 3)]
    [breach] = reading.breaches
    assert (breach.node_id, breach.misbehavior) == (100, Misbehavior.OUT_OF_ORDER)
    assert weight(breach) is Weight.CLAIMED


@pytest.mark.conforms("C6")
def test_read__another_s_ids_fall__is_a_fault_that_the_node_can_deny() -> None:
    reading = read(LOG[::-1], server=PEER)

    assert len(reading.accepted) == 2
    assert reading.breaches == []
    [refused] = reading.refused
    assert str(refused) == (
        "answer of node 200: expected rising ids of originator 100, got 3 came after 5"
    )


@pytest.mark.conforms("C18")
def test_read__time_falls_while_ids_rise__is_proved() -> None:
    reading = read([NODE.signed(1, 9), NODE.signed(2, 8)])

    [breach] = reading.breaches
    assert (breach.node_id, breach.misbehavior) == (100, Misbehavior.OUT_OF_ORDER)
    assert weight(breach) is Weight.PROVED


@pytest.mark.conforms("C18")
@pytest.mark.parametrize(("seconds", "is_breach"), [(360, False), (361, True)])
def test_read__time_ahead__is_a_breach_beyond_five_minutes(seconds: int, is_breach: bool) -> None:
    reading = read([NODE.signed(1, seconds)])

    assert kinds(reading) == [(100, Misbehavior.OUT_OF_ORDER)] * is_breach
    assert all(weight(each) is Weight.PROVED for each in reading.breaches)


@pytest.mark.conforms("C18")
def test_read__two_under_one_id__is_equivocation_and_the_first_one_stays() -> None:
    first, second = (NODE.signed(1, each) for each in (1, 2))
    held = HeldTopic()
    [accepted] = read([first]).accepted
    held.keep(accepted)

    for reading in (read([first, second]), read([second], held, PEER)):
        assert accepted not in reading.accepted[1:]
        assert kinds(reading) == [(100, Misbehavior.DUPLICATE_SEQUENCE_ID)]
        assert weight(reading.breaches[0]) is Weight.PROVED


@pytest.mark.conforms("C2")
@pytest.mark.parametrize(
    "envelope",
    [
        Originator(100, PEER.key).signed(1),
        Originator(300).signed(1),
        of_chain(1, server=PEER),
        of_chain(1, server=Originator(100, SigningKey(b"\x09" * 32))),
        of_chain(1)[:-1],
        b"",
        b"\xff",
    ],
    ids=["another key", "unregistered", "vouched by another", "by nobody", "cut", "empty", "bytes"],
)
def test_read__what_the_right_key_did_not_sign__is_refused_and_nobody_is_accused(
    envelope: bytes,
) -> None:
    reading = read([envelope, *LOG])

    assert [each.place for each in reading.accepted] == [(100, 3), (100, 5)]
    assert (len(reading.refused), reading.breaches) == (1, [])


@pytest.mark.conforms("C7")
def test_read__another_target__is_an_invalid_payload_of_the_originator() -> None:
    stolen = publishes.paid(publishes.group_message(), target=PEER.node_id)
    reading = read([NODE.signed(1, payload=stolen)])

    assert kinds(reading) == [(100, Misbehavior.INVALID_PAYLOAD)]
    assert weight(reading.breaches[0]) is Weight.PROVED
    assert reading.accepted == []
    assert list(reading.void) == [(100, 1)]


@pytest.mark.conforms("C7")
def test_read__another_topic_than_asked_for__is_refused() -> None:
    other = publishes.group_message(identifier=b"h" * 16)
    reading = read([NODE.signed(1, payload=publishes.paid(other)), of_chain(1, client=other)])

    assert reading.accepted == []
    assert "expected envelopes of topic 0x00" + (b"g" * 16).hex() in str(reading.refused[0])


@pytest.mark.conforms("C7")
def test_read__topic_that_is_not_the_messages_group__is_an_invalid_payload() -> None:
    message = publishes.group_message(publishes.mls.private_message(b"h" * 16))
    reading = read([NODE.signed(1, payload=publishes.paid(message))])

    assert kinds(reading) == [(100, Misbehavior.INVALID_PAYLOAD)]
    assert weight(reading.breaches[0]) is Weight.PROVED


def test_read__cursor_that_its_author_did_not_write__is_void() -> None:
    right, wrong = bound_message({0: 1}), bound_message({0: 1}, stated={0: 0})
    reading = read(
        [NODE.signed(each, each, publishes.paid(m)) for each, m in ((1, right), (2, wrong))]
    )

    assert [each.place for each in reading.accepted] == [(100, 1)]
    assert list(reading.void) == [(100, 2)]
    assert reading.breaches == []


@pytest.mark.conforms("C18")
def test_read__dependency_on_itself__is_proved() -> None:
    reading = read([NODE.signed(3, seen={100: 3})])

    assert kinds(reading) == [(100, Misbehavior.CAUSAL_ORDERING)]
    assert weight(reading.breaches[0]) is Weight.PROVED


@pytest.mark.conforms("C18")
@pytest.mark.parametrize(
    "client",
    [
        publishes.welcome(),
        publishes.commit(target=300),
        publishes.addressed(TopicKind.GROUP_MESSAGE, b"g").SerializeToString(),
        b"",
        b"\xff\xff",
    ],
    ids=["welcome", "target", "no payload", "empty", "bytes"],
)
def test_read__payload_that_no_honest_node_serves_of_the_chain__is_claimed(client: bytes) -> None:
    reading = read([of_chain(1, client=client)])

    assert kinds(reading) == [(100, Misbehavior.BLOCKCHAIN_INCONSISTENCY)]
    assert weight(reading.breaches[0]) is Weight.CLAIMED
    assert reading.accepted == []


def test_read__payload_of_the_chain_that_nobody_can_read__is_void_and_no_lie() -> None:
    reading = read([of_chain(1, client=publishes.group_message(b"no MLS")), of_chain(2, 1)])

    assert [each.place for each in reading.accepted] == [(0, 2)]
    assert list(reading.void) == [(0, 1)]
    assert (reading.breaches, reading.refused) == ([], [])


@pytest.mark.conforms("C18")
@pytest.mark.parametrize("times", [(2, 1)], ids=["time goes back"])
def test_read__block_time_goes_back__is_claimed(times: tuple[int, int]) -> None:
    reading = read([of_chain(1, times[0]), of_chain(2, times[1])])

    assert kinds(reading) == [(100, Misbehavior.BLOCKCHAIN_INCONSISTENCY)]
    assert weight(reading.breaches[0]) is Weight.CLAIMED


def test_read__block_time_goes_back_over_sparse_ids__is_no_lie() -> None:
    keys = replace(KEYS, sparse_ids=frozenset({0}))

    reading = read_answer([of_chain(1, 2), of_chain(2, 1)], TOPIC, 100, keys, HeldTopic(), NOW_NS)

    assert (len(reading.accepted), reading.breaches) == (2, [])


def test_read__ids_of_the_chain_reach_a_million_within_a_second__is_no_lie() -> None:
    reading = read([of_chain(999_999, 1), of_chain(1_000_000, 1)])

    earlier, later = reading.accepted
    assert earlier.originator_ns > later.originator_ns
    assert (reading.breaches, reading.refused) == ([], [])


def test_read__one_time_for_two_envelopes__is_no_breach() -> None:
    reading = read([NODE.signed(1, 9), NODE.signed(2, 9)])

    assert (len(reading.accepted), reading.breaches) == (2, [])


def test_read__two_payloads_under_one_id_of_the_chain__the_node_vouched_for_both() -> None:
    reading = read([of_chain(1, 1), of_chain(1, 2)])

    assert [each.originator_ns - publishes_ns() for each in reading.accepted] == [
        2 * SECOND_NS + 1_000
    ]
    assert kinds(reading) == [(100, Misbehavior.BLOCKCHAIN_INCONSISTENCY)]


def test_read__payload_of_the_chain_is_not_the_held_one__is_a_conflict() -> None:
    held = HeldTopic()
    [accepted] = read([of_chain(1, 1)]).accepted
    held.keep(accepted)

    reading = read([of_chain(1, 2, server=PEER)], held, PEER)

    assert (reading.accepted, reading.breaches) == ([], [])
    [conflict] = reading.conflicts
    assert (conflict.held.digest, conflict.served.place) == (accepted.digest, (0, 1))


def test_read__the_same_payload_of_another_transaction__is_a_conflict() -> None:
    held = HeldTopic()
    [accepted] = read([of_chain(1)]).accepted
    held.keep(accepted)

    reading = read([of_chain(1, server=PEER, transaction_hash=b"h" * 32)], held, PEER)

    assert reading.accepted == []
    assert [each.served.place for each in reading.conflicts] == [(0, 1)]


def test_read__chain_of_two_counters__both_are_the_chains() -> None:
    update = of_chain(4, client=publishes.commit(target=1), originator_id=1)
    keys = type(KEYS)(KEYS.by_node, frozenset({0, 1}))

    reading = read_answer([update], TOPIC, 100, keys, HeldTopic(), NOW_NS)

    assert [each.place for each in reading.accepted] == [(1, 4)]


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_read__any_pages_and_repeats__holds_each_once(seed: int, pages: int) -> None:
    chance, held, places = random.Random(seed), HeldTopic(), []
    envelopes = [*NODE.log(6), *PEER.log(6), *(of_chain(each, each) for each in range(1, 5))]
    for _ in range(pages):
        page = chance.choices(envelopes, k=12)
        for each in read(page, held).accepted:
            held.keep(each)
            places.append(each.place)

    assert len(places) == len(set(places))


@settings(max_examples=200)
@given(st.lists(st.binary(max_size=80), max_size=4), st.randoms())
def test_read__hostile_bytes__are_refused_and_hide_nothing(
    garbage: list[bytes], chance: random.Random
) -> None:
    page = [*garbage, LOG[0]]
    chance.shuffle(page)

    reading = read(page)

    assert [each.place for each in reading.accepted] == [(100, 3)]
    assert len(reading.refused) == len(garbage)


def publishes_ns() -> int:
    return NOW_NS - 60 * SECOND_NS

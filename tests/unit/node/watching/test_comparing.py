"""A peer's answers beside what is held: evidence, failures, and what is neither."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from chainkit.errors import InvalidSignature, MalformedData
from chainkit.protocol import wire
from chainkit.protocol.envelope import sign_originator_envelope
from chainkit.protocol.proto.envelopes_pb2 import OriginatorEnvelope
from chainkit.protocol.stored_envelopes import written_envelopes
from chainkit.signatures import SigningKey
from chainkit_node.watching.comparing import (
    PAGE,
    Findings,
    Keys,
    Question,
    Served,
    chain_question,
    compare_served,
    read_answer,
)
from support.network.originator import Originator

OWN_KEY, PEER_KEY = SigningKey(b"\5" * 32), SigningKey(b"\6" * 32)
NODE = Originator(300)
KEYS = Keys(PEER_KEY.public_key, {0, 1}, {200: PEER_KEY.public_key, 300: NODE.key.public_key})
ASKED = Question({0: 0}, 0)


def of_chain(
    sequence_id: int,
    key: SigningKey = PEER_KEY,
    time: int = 9,
    hash_: bytes = bytes(32),
    originator_id: int = 0,
) -> bytes:
    """A payload of the chain as a node serves it."""
    unsigned = b"".join(
        (
            wire.integer_field(wire.ORIGINATOR_TAG, originator_id),
            wire.integer_field(wire.SEQUENCE_TAG, sequence_id),
            wire.integer_field(wire.TIME_TAG, time),
            wire.bytes_field(wire.PAYER_TAG, wire.bytes_field(wire.CLIENT_TAG, b"payload")),
        )
    )
    return sign_originator_envelope(unsigned, hash_, key)


OWN = {(0, each): of_chain(each, OWN_KEY) for each in (1, 2, 3, 5)}
LOG = {(300, each): envelope for each, envelope in enumerate(NODE.log(5), 1)}


def compared(envelopes: Sequence[bytes], asked: Question = ASKED) -> Findings:
    served = read_answer(written_envelopes(envelopes), asked)
    return compare_served(served, OWN | LOG, (*OWN, (300, 3)), KEYS)


@pytest.mark.conforms("N50")
def test_compare__the_chain_as_it_is__nothing_is_found() -> None:
    # Number 4 is in quarantine here, and 6 is not final yet.
    assert compared([of_chain(each) for each in (1, 2, 3, 4, 5, 6)]) == Findings(4)


@pytest.mark.conforms("N50")
@pytest.mark.parametrize(
    "other", [of_chain(2, time=8), of_chain(2, hash_=b"\1" * 32)], ids=["time", "transaction"]
)
def test_compare__a_payload_that_is_not_the_chains__is_evidence(other: bytes) -> None:
    assert compared([of_chain(1), other, of_chain(3)]) == Findings(3, (other,))


def unsigned(envelope: bytes) -> bytes:
    """The same as a node of another make serves it: its proof is the transaction alone."""
    message = OriginatorEnvelope.FromString(envelope)
    message.blockchain_proof.ClearField("node_signature")
    return message.SerializeToString()


def test_compare__true_payloads_of_the_chain_without_a_signature__are_no_failure() -> None:
    # Another make may read another time from the block.
    served = [unsigned(of_chain(1)), unsigned(of_chain(2, time=8))]

    assert compared(served) == Findings(2, unsigned=2)
    assert compared([unsigned(of_chain(7))]).unsigned == 1


def test_compare__a_false_payload_of_the_chain_without_a_signature__raises() -> None:
    with pytest.raises(InvalidSignature):
        compared([unsigned(of_chain(1, hash_=b"\1" * 32))])


def test_compare__what_is_not_held_or_not_final__is_no_evidence() -> None:
    assert compared([of_chain(7, time=8), of_chain(4, time=8)]).inconsistent == ()


def test_compare__payloads_left_out_before_later_ones__are_omitted() -> None:
    assert compared([of_chain(1), of_chain(4)]).omitted == ((0, 2), (0, 3))


def test_compare__a_peer_that_lags_behind__omits_nothing() -> None:
    assert compared([of_chain(1), of_chain(2)]).omitted == ()
    assert compared([]) == Findings()


@pytest.mark.conforms("N45")
def test_compare__another_key_vouches_for_the_chain__raises() -> None:
    with pytest.raises(InvalidSignature):
        compared([of_chain(1, OWN_KEY)])


ON_TOPICS = Question({}, topics=frozenset({b"topic"}))


def test_compare__another_envelope_that_its_originator_signed__is_handed_on() -> None:
    other = NODE.signed(2, 7)

    found = compared([LOG[300, 1], other], ON_TOPICS)

    assert found == Findings(2, (), (Served((300, 2), other),))


def test_compare__bytes_that_a_peer_added_around__do_not_differ() -> None:
    assert compared([LOG[300, 1] + b"\x7a\x03abc"], ON_TOPICS) == Findings(1)


def test_compare__envelopes_of_nodes_that_are_not_listed_or_not_held__are_not_compared() -> None:
    unknown, unseen = Originator(900).signed(1), NODE.signed(9)

    assert compared([unknown, unseen], ON_TOPICS) == Findings(0, omitted=((300, 3),))


@pytest.mark.conforms("N45")
@pytest.mark.parametrize("sequence_id", [2, 9], ids=["held", "not held"])
def test_compare__what_its_originator_did_not_sign__raises(sequence_id: int) -> None:
    with pytest.raises(InvalidSignature):
        compared([Originator(300, PEER_KEY).signed(sequence_id, 7)], ON_TOPICS)


@pytest.mark.conforms("N45")
@pytest.mark.parametrize(
    ("envelopes", "asked"),
    [
        ([of_chain(3)], Question({0: 3}, 0)),
        ([of_chain(3, originator_id=1)], ASKED),
        ([of_chain(each) for each in range(1, PAGE + 2)], ASKED),
        ([b"\xff"], ASKED),
        ([LOG[300, 2]], Question({300: 2}, topics=frozenset({b"topic"}))),
    ],
    ids=["behind the cursor", "another originator", "too many", "no envelope", "on topics"],
)
def test_read_answer__what_was_not_asked_for__raises(
    envelopes: list[bytes], asked: Question
) -> None:
    with pytest.raises(MalformedData):
        read_answer(written_envelopes(envelopes), asked)


def test_read_answer__other_bytes__raises() -> None:
    with pytest.raises(MalformedData):
        read_answer(b"\xff", ASKED)


def test_chain_question__many_rounds__the_whole_chain_and_often_its_end_is_asked_for() -> None:
    chance = random.Random(1)
    questions = [chain_question({0: 1000, 1: 0}, chance) for _ in range(1000)]
    asked = [each.cursor for each in questions if each is not None]

    places = [cursor[0] for cursor in asked if 0 in cursor]
    assert len(asked) == 1000
    assert {cursor[1] for cursor in asked if 1 in cursor} == {0}
    assert places.count(1000 - PAGE) > len(places) // 3
    assert min(places) < 50
    assert max(places) < 1000
    assert len({place // 100 for place in places}) == 10


def test_chain_question__no_originator_of_the_chain__asks_nothing() -> None:
    assert chain_question({}, random.Random(1)) is None


def test_request__on_topics__is_a_clients_query() -> None:
    question = Question({300: 4, 0: 9}, topics=frozenset({b"b", b"a"}), picked=((300, 5),))

    request = question.request()

    assert list(request.query.topics) == [b"a", b"b"]
    assert dict(request.query.last_seen.node_id_to_sequence_id) == {300: 4, 0: 9}
    assert list(request.query.originator_node_ids) == []
    assert request.limit == PAGE

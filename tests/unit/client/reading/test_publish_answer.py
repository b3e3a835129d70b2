"""The answer to a publish: what was published, by whom, when."""

from __future__ import annotations

import pytest

from chainkit.errors import MalformedData
from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.report import parse_unsigned
from chainkit.misbehavior.types import Misbehavior
from chainkit_client.reading.publish_answer import PublishAnswer, Published, read_publish_answer
from support import publishes
from support.client.served import KEYS, NODE, NOW_NS, PEER, of_chain
from support.network.originator import BEGIN_NS, SECOND_NS, Originator

MESSAGE = publishes.group_message(seen={0: 1})
NOW_SECONDS = (NOW_NS - BEGIN_NS) // SECOND_NS
MINUTE = 60


def answered(
    answer: bytes, client_envelope: bytes = MESSAGE, first_sent_ns: int = NOW_NS
) -> PublishAnswer:
    published = Published(client_envelope, first_sent_ns)
    return read_publish_answer(answer, published, NODE.node_id, KEYS, NOW_NS)


def originated(seconds: float = NOW_SECONDS, client_envelope: bytes = MESSAGE) -> bytes:
    return NODE.signed(7, seconds, publishes.paid(client_envelope))


def test_answer__what_was_published__is_the_envelope() -> None:
    answer = answered(originated())

    assert answer.envelope is not None
    assert (answer.envelope.place, answer.breaches) == ((100, 7), ())


def test_answer__commit_of_the_chain__is_the_envelope() -> None:
    commit = publishes.commit({0: 3})
    answer = answered(of_chain(4, NOW_SECONDS, commit), commit)

    assert answer.envelope is not None
    assert (answer.envelope.place, answer.breaches) == ((0, 4), ())


@pytest.mark.conforms("C1")
@pytest.mark.parametrize(
    "other",
    [
        originated(client_envelope=publishes.group_message(seen={0: 2})),
        of_chain(4, NOW_SECONDS, publishes.commit()),
    ],
    ids=["originated", "chain"],
)
def test_answer__another_payload__does_not_count_and_shows_nothing_about_its_node(
    other: bytes,
) -> None:
    # A gateway may answer any envelope that an honest node has signed for somebody else.
    assert answered(other) == PublishAnswer(None, doubt="another payload than what was published")


@pytest.mark.conforms("C2")
@pytest.mark.parametrize(
    "answer",
    [
        Originator(100, PEER.key).signed(7, payload=publishes.paid(MESSAGE)),
        PEER.signed(7, payload=publishes.paid(MESSAGE, PEER.node_id)),
        Originator(300).signed(7),
        of_chain(1, server=PEER),
        b"",
        b"\xff",
    ],
    ids=["another key", "another node", "unregistered", "another vouches", "empty", "bytes"],
)
def test_answer__not_signed_by_the_node_that_was_asked__is_refused(answer: bytes) -> None:
    with pytest.raises(MalformedData):
        answered(answer)


@pytest.mark.conforms("C3")
@pytest.mark.parametrize(
    ("minutes", "is_doubted"), [(-30, False), (-30.1, True), (5, False), (5.1, True), (31, True)]
)
def test_answer__time_far_from_this_clock__does_not_count_and_one_ahead_is_a_breach(
    minutes: float, is_doubted: bool
) -> None:
    answer = answered(originated(NOW_SECONDS + minutes * MINUTE))

    # The payload is stored under that id all the same.
    assert answer.envelope is not None
    assert bool(answer.doubt) is is_doubted
    # This clock may be the wrong one: a time behind shows nothing about the node.
    assert bool(answer.breaches) is (is_doubted and minutes > 0)
    for breach in answer.breaches:
        report = breach.report(NOW_NS)
        assert report is not None
        judgement = judge_safety(parse_unsigned(report), KEYS.by_node, NOW_NS)
        assert judgement.weight is Weight.PROVED


@pytest.mark.conforms("C3")
def test_answer__same_bytes_sent_again__may_have_the_time_of_the_first() -> None:
    first_sent_ns = NOW_NS - 90 * MINUTE * SECOND_NS

    assert answered(originated(NOW_SECONDS - 100 * MINUTE), first_sent_ns=first_sent_ns) == (
        answered(originated(NOW_SECONDS - 100 * MINUTE), first_sent_ns=first_sent_ns - 1)
    )
    assert not answered(originated(NOW_SECONDS - 100 * MINUTE), first_sent_ns=first_sent_ns).doubt
    assert answered(originated(NOW_SECONDS - 121 * MINUTE), first_sent_ns=first_sent_ns).doubt


@pytest.mark.conforms("C3")
def test_answer__block_five_minutes_ahead__is_no_breach() -> None:
    commit = publishes.commit()
    answer = answered(of_chain(999_999, NOW_SECONDS + 5 * MINUTE, commit), commit)

    assert (answer.envelope is None, answer.breaches) == (False, ())


@pytest.mark.conforms("C3")
def test_answer__block_time_ahead__is_for_the_chain_to_decide() -> None:
    commit = publishes.commit()
    [breach] = answered(of_chain(1, NOW_SECONDS + 6 * MINUTE, commit), commit).breaches

    assert breach.misbehavior is Misbehavior.BLOCKCHAIN_INCONSISTENCY


@pytest.mark.parametrize(
    ("answer", "misbehavior"),
    [
        (
            NODE.signed(7, payload=publishes.paid(MESSAGE, PEER.node_id)),
            Misbehavior.INVALID_PAYLOAD,
        ),
        (
            NODE.signed(7, NOW_SECONDS, publishes.paid(publishes.group_message(seen={100: 7}))),
            Misbehavior.CAUSAL_ORDERING,
        ),
        (of_chain(1, client=b"\xff"), Misbehavior.BLOCKCHAIN_INCONSISTENCY),
    ],
    ids=["target", "itself", "chain"],
)
def test_answer__signed_against_a_rule__is_a_report(
    answer: bytes, misbehavior: Misbehavior
) -> None:
    sent = publishes.group_message(seen={100: 7})
    breaches = answered(answer, sent).breaches

    [breach] = breaches
    report = breach.report(NOW_NS)
    assert report is not None
    assert breach.misbehavior is misbehavior
    weight = judge_safety(parse_unsigned(report), KEYS.by_node, NOW_NS).weight
    assert weight is not Weight.REFUTED

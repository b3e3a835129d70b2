"""Topic heads as evidence: what they prove, and that no honest node can be framed with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedData
from chainkit.misbehavior.evidence import MOST_ENVELOPES, Judgement, Weight, judge_safety
from chainkit.misbehavior.report import Report, parse_unsigned, safety_report
from chainkit.misbehavior.topic_evidence import TopicEvidence, parse_topic_evidence
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.topic_heads import (
    MOST_ENTRIES,
    Chain,
    Entry,
    TopicHead,
    entry_of,
    sign_topic_head,
)
from support import publishes
from support.audit.identities import key_of
from support.damage import damaged
from support.originated import ACCUSED, KEYS, NOW_NS, OTHER, report, signed

ORDER = Misbehavior.OUT_OF_ORDER
TOPIC = b"\0" + publishes.GROUP_ID
LOG = {number: signed(ACCUSED, number) for number in (2, 3, 5, 8)}
"""Its envelopes on the topic; the other ids are on others."""


def head(through: int, *numbers: int, topic: bytes = TOPIC, node_id: int = ACCUSED) -> bytes:
    """A head that the accused signs, over some of its envelopes."""
    chain = Chain().extended(entry_of(LOG[each]) for each in numbers)
    return sign_topic_head(TopicHead(node_id, topic, through, chain), key_of(ACCUSED))


def entries(*numbers: int) -> tuple[Entry, ...]:
    return tuple(entry_of(LOG[each]) for each in numbers)


def accusation(heads: Sequence[bytes], between: Sequence[Entry] = (), *envelopes: bytes) -> Report:
    evidence = TopicEvidence(tuple(heads), tuple(between))
    return replace(report(ACCUSED, ORDER, *envelopes), topics=evidence)


def judged(accused: Report) -> Judgement:
    """The judgement, after the report has travelled."""
    data = safety_report(
        accused.node_id, accused.misbehavior, accused.envelopes, NOW_NS, True, accused.topics
    )
    parsed = parse_unsigned(data)
    assert parsed == accused
    return judge_safety(parsed, KEYS, NOW_NS)


PROVED = {
    "two heads up to one id": (
        accusation([head(9, 2, 3), head(9, 2, 3, 5)]),
        "two different heads up to 9",
    ),
    "another one without news": (
        accusation([head(6, 2, 5), head(9, 3, 5)]),
        "no envelope came after 6, and the head is another one",
    ),
    "fewer than before": (
        accusation([head(6, 2, 3, 5), head(9, 2, 8)]),
        "3 envelopes up to 6, and 2 later",
    ),
    "one that was not there": (
        accusation([head(6, 2, 3), head(7, 2, 3, 5)]),
        "more envelopes up to 6 than before",
    ),
    "one is left out": (
        accusation([head(9, 2, 8)], entries(2, 8), LOG[5]),
        "the head up to 9 leaves 5 out",
    ),
    "the last is left out": (
        accusation([head(9, 2)], entries(2), LOG[8]),
        "the head up to 9 leaves 8 out",
    ),
    "all are left out": (accusation([head(9)], (), LOG[2]), "the head up to 9 leaves 2 out"),
    "another one has its place": (
        accusation([head(9, 2, 5, 8)], entries(2, 5, 8), signed(ACCUSED, 5, NOW_NS - 1)),
        "the head up to 9 has another envelope 5",
    ),
    "one is left out of the news": (
        accusation([head(3, 2, 3), head(9, 2, 3, 8)], entries(8), LOG[5]),
        "the head up to 9 leaves 5 out",
    ),
}


@pytest.mark.parametrize("name", PROVED)
def test_judge_safety__heads_that_no_log_has__are_a_proof(name: str) -> None:
    accused, reason = PROVED[name]

    found = judged(accused)

    assert (found.weight, found.reason) == (Weight.PROVED, reason)


OF_OTHER = replace(
    accusation([head(9, 2, 8)], entries(2, 8), signed(OTHER, 5)), envelopes=(signed(OTHER, 5),)
)
ELSEWHERE = signed(
    ACCUSED, 5, payer_envelope=publishes.paid(publishes.welcome(b"\5" * 32), ACCUSED)
)
REFUTED = {
    "honest heads": accusation([head(6, 2, 3, 5), head(9, 2, 3, 5, 8)]),
    "the same head twice": accusation([head(6, 2, 3, 5)] * 2),
    "no news": accusation([head(6, 2, 3, 5), head(7, 2, 3, 5)]),
    "it is in the head": accusation([head(9, 2, 5, 8)], entries(2, 5, 8), LOG[5]),
    "it came later": accusation([head(3, 2, 3)], entries(2, 3), LOG[5]),
    "it is in the earlier head": accusation(
        [head(6, 2, 3, 5), head(9, 2, 3, 5, 8)], entries(8), LOG[5]
    ),
    "entries that are not those of the head": accusation([head(9, 2, 5, 8)], entries(2, 8), LOG[5]),
    "another originator's": OF_OTHER,
    "one of another topic": accusation([head(9, 2, 8)], entries(2, 8), ELSEWHERE),
    "two topics": accusation([head(9, 2), head(9, 3, topic=b"\0other")]),
    "a head about another node": accusation([head(9, 2), head(9, 3, node_id=OTHER)]),
    "the later head first": accusation([head(9, 2, 3), head(6, 2, 3, 5)]),
    "entries that fall": accusation([head(9, 2, 8)], entries(8, 2), LOG[5]),
    "too many envelopes": accusation(
        [head(9, 2, 8)], entries(2, 8), *[LOG[5]] * (MOST_ENVELOPES + 1)
    ),
}


@pytest.mark.parametrize("name", REFUTED)
def test_judge_safety__heads_that_show_nothing__are_refuted(name: str) -> None:
    assert judged(REFUTED[name]).weight is Weight.REFUTED


def test_judge_safety__heads_signed_by_somebody_else__are_refuted() -> None:
    forged = sign_topic_head(TopicHead(ACCUSED, TOPIC, 9, Chain()), key_of(OTHER))

    assert judged(accusation([forged], (), LOG[2])).weight is Weight.REFUTED


@pytest.mark.parametrize("kind", [each for each in Misbehavior if not each.is_liveness])
def test_judge_safety__heads_under_another_type__are_refuted(kind: Misbehavior) -> None:
    accused, _ = PROVED["one is left out"]

    found = judged(replace(accused, misbehavior=kind))

    assert (found.weight is Weight.PROVED) == (kind is ORDER)


def test_judge_safety__the_same_omission_twice__is_about_the_same() -> None:
    whole, _ = PROVED["one is left out"]
    part = accusation([head(3, 2), head(9, 2, 8)], entries(8), LOG[5])

    assert judged(whole).subject == judged(part).subject


@given(st.data())
def test_judge_safety__honest_heads_and_any_entries__never_accuse(data: st.DataObject) -> None:
    """A reporter may put together all that an honest node signed."""
    throughs = sorted(data.draw(st.lists(st.integers(0, 10), min_size=1, max_size=2)))
    heads = [head(each, *(one for one in LOG if one <= each)) for each in throughs]
    between = entries(*sorted(data.draw(st.sets(st.sampled_from(list(LOG))))))
    shown = [LOG[each] for each in data.draw(st.sets(st.sampled_from(list(LOG))))]

    assert judged(accusation(heads, between, *shown)).weight is Weight.REFUTED


def test_parse_topic_evidence__too_much__is_refused() -> None:
    many = TopicEvidence((head(9),), tuple(Entry(n, b"") for n in range(1, MOST_ENTRIES + 2)))

    with pytest.raises(MalformedData, match="1 or 2 heads"):
        parse_topic_evidence(many.written())
    with pytest.raises(MalformedData, match="1 or 2 heads"):
        parse_topic_evidence(TopicEvidence((head(9),) * 3).written())


@given(damaged(PROVED["one is left out"][0].topics.written()))  # type: ignore[union-attr]
def test_parse_topic_evidence__damaged__is_refused_or_bounded(data: bytes) -> None:
    try:
        evidence = parse_topic_evidence(data)
    except MalformedData:
        return
    assert len(evidence.heads) <= 2

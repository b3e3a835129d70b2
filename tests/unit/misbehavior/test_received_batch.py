"""Received envelopes beside what is held: new, late, known, and evidence that verifies."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.received_batch import MOST_IDS_AHEAD, BatchOutcome, Offence, compare_batch
from chainkit.misbehavior.report import parse_unsigned, safety_report
from chainkit.misbehavior.types import Misbehavior
from support import publishes
from support.network.originator import BEGIN_NS, SECOND_NS, MemoryLog, Originator

NODE = Originator()
LOG = NODE.log(12)
HOUR = 3600
DAY = 24 * HOUR


def taken(
    log: MemoryLog, envelopes: Sequence[bytes], now: float = 60.0, is_direct: bool = True
) -> BatchOutcome:
    """Judge a batch, and store what is to be stored."""
    now_ns = BEGIN_NS + int(now * SECOND_NS)
    judged = compare_batch([NODE.received(each) for each in envelopes], log, now_ns, is_direct)
    for each in (*judged.new, *judged.late):
        log.store(each)
    return judged


def weight(offence: Offence, now: float = 60.0) -> Weight:
    """The worth of a report of an offence to somebody who holds the registry's keys."""
    now_ns = BEGIN_NS + int(now * SECOND_NS)
    report = safety_report(offence.node_id, offence.misbehavior, offence.envelopes, now_ns, True)
    keys = {NODE.node_id: NODE.key.public_key}
    return judge_safety(parse_unsigned(report), keys, now_ns).weight


def test_judge__an_honest_log_in_order__is_new_and_nothing_else() -> None:
    log = MemoryLog()

    judged = taken(log, LOG)

    assert [each.envelope for each in judged.new] == LOG
    assert judged == BatchOutcome(new=judged.new)


@pytest.mark.conforms("N31")
def test_judge__the_same_again__is_counted_only() -> None:
    log = MemoryLog()
    taken(log, LOG)

    assert taken(log, [LOG[3], LOG[3], LOG[11]]) == BatchOutcome(repeated=3)


@pytest.mark.conforms("N31", "N47")
@pytest.mark.parametrize("is_one_batch", [True, False])
def test_judge__two_under_one_id__are_a_dispute_and_proved(is_one_batch: bool) -> None:
    log = MemoryLog()
    other = NODE.signed(2, 2.5)
    if is_one_batch:
        judged = taken(log, [*LOG[:3], other])
    else:
        taken(log, LOG[:3])
        judged = taken(log, [other])

    [dispute] = judged.disputes
    assert (dispute.held.envelope, dispute.other.envelope) == (LOG[1], other)
    [offence] = judged.offences
    assert offence.misbehavior is Misbehavior.DUPLICATE_SEQUENCE_ID
    assert weight(offence) is Weight.PROVED
    assert log.envelopes() == LOG[:3]


@pytest.mark.conforms("N46")
def test_judge__time_goes_back__is_stored_and_proved() -> None:
    log = MemoryLog()
    earlier = NODE.signed(4, 1.0)

    judged = taken(log, [*LOG[:3], earlier])

    [offence] = judged.offences
    assert offence == Offence(100, Misbehavior.OUT_OF_ORDER, (earlier, LOG[2]))
    assert weight(offence) is Weight.PROVED
    assert log.envelopes()[-1] == earlier


@pytest.mark.conforms("N46")
def test_judge__one_time_for_two_envelopes__is_no_offence() -> None:
    log = MemoryLog()
    same = NODE.signed(4, 3.0)

    judged = taken(log, [*LOG[:3], same])

    assert judged == BatchOutcome(new=judged.new)
    assert log.envelopes()[-2:] == [LOG[2], same]


@pytest.mark.conforms("N46")
def test_judge__a_time_too_far_ahead__is_stored_and_proved_until_it_comes() -> None:
    log = MemoryLog()
    ahead = NODE.signed(4, 60 + 301)

    judged = taken(log, [*LOG[:3], ahead])

    [offence] = judged.offences
    assert offence == Offence(100, Misbehavior.OUT_OF_ORDER, (ahead, LOG[2]))
    assert weight(offence) is Weight.PROVED
    assert taken(MemoryLog(), [*LOG[:3], NODE.signed(4, 60 + 300)]).offences == []


@pytest.mark.conforms("N46")
def test_judge__the_originator_leaves_one_out__is_claimed_with_both_neighbors() -> None:
    log = MemoryLog()

    judged = taken(log, [*LOG[:3], *LOG[4:]])

    [offence] = judged.offences
    assert offence == Offence(100, Misbehavior.OUT_OF_ORDER, (LOG[4], LOG[2]))
    # Anybody can take two envelopes that are not neighbors.
    assert weight(offence) is Weight.CLAIMED
    [gap] = judged.gaps
    assert (gap.first_id, gap.last_id, gap.is_omitted) == (4, 4, True)


def test_judge__another_node_leaves_one_out__is_a_gap_and_no_offence() -> None:
    judged = taken(MemoryLog(), [*LOG[:3], *LOG[4:]], is_direct=False)

    assert judged.offences == []
    assert [each.is_omitted for each in judged.gaps] == [False]


@pytest.mark.conforms("N34")
def test_judge__the_first_one_is_not_1__may_have_expired_before() -> None:
    judged = taken(MemoryLog(), LOG[5:])

    [gap] = judged.gaps
    assert (gap.first_id, gap.last_id, gap.is_omitted) == (1, 5, False)
    assert judged.offences == []


@pytest.mark.conforms("N34")
@pytest.mark.parametrize(("age", "is_omitted"), [(HOUR, True), (2 * DAY, False)])
def test_judge__a_gap__counts_while_what_is_missing_cannot_have_expired(
    age: float, is_omitted: bool
) -> None:
    judged = taken(MemoryLog(), [LOG[0], NODE.signed(5, age)], now=age)

    assert [each.is_omitted for each in judged.gaps] == [is_omitted]
    assert bool(judged.offences) == is_omitted


def test_judge__a_late_one__fills_the_gap_and_is_compared_with_both_neighbors() -> None:
    log = MemoryLog()
    taken(log, [*LOG[:3], *LOG[4:]])

    assert taken(log, [LOG[3]]) == BatchOutcome(late=[NODE.received(LOG[3])])
    assert log.envelopes() == LOG


@pytest.mark.parametrize(("seconds", "pair"), [(2.0, (3, 2)), (5.5, (4, 3))])
def test_judge__a_late_one_of_another_time__is_proved(
    seconds: float, pair: tuple[int, int]
) -> None:
    log = MemoryLog()
    taken(log, [*LOG[:3], *LOG[4:]])
    late = NODE.signed(4, seconds)

    [offence] = taken(log, [late]).offences

    of_log = {3: late, 2: LOG[2], 4: LOG[4]}
    assert offence.envelopes == (of_log[pair[0]], of_log[pair[1]])
    assert weight(offence) is Weight.PROVED


@pytest.mark.conforms("N49")
def test_judge__a_payload_that_breaks_a_rule__is_stored_without_a_topic_and_proved() -> None:
    log = MemoryLog()
    stolen = publishes.paid(publishes.group_message(), target=200)

    judged = taken(log, [*LOG[:3], NODE.signed(4, 4, stolen)])

    [offence] = judged.offences
    assert offence.misbehavior is Misbehavior.INVALID_PAYLOAD
    assert weight(offence) is Weight.PROVED
    assert judged.new[-1].topic == b""


def test_judge__a_payload_that_readers_differ_on__is_stored_and_accuses_nobody() -> None:
    log = MemoryLog()
    twice = publishes.paid(publishes.group_message() + b"\x0a\0")

    judged = taken(log, [*LOG[:3], NODE.signed(4, 4, twice)])

    assert judged.offences == []
    assert judged.new[-1].topic == b""
    assert "readers differ on these bytes: ClientEnvelope.aad" in (judged.new[-1].fault or "")


@pytest.mark.conforms("N48")
def test_judge__an_envelope_that_depends_on_itself__is_proved() -> None:
    judged = taken(MemoryLog(), [*LOG[:3], NODE.signed(4, 4, seen={100: 4})])

    [offence] = judged.offences
    assert offence.misbehavior is Misbehavior.CAUSAL_ORDERING
    assert weight(offence) is Weight.PROVED
    assert taken(MemoryLog(), [*LOG[:3], NODE.signed(4, 4, seen={100: 3})]).offences == []


@settings(max_examples=200)
@given(st.data())
def test_judge__honest_envelopes_in_any_order__accuse_nobody_and_are_stored_once(
    data: st.DataObject,
) -> None:
    log = MemoryLog()
    came: set[bytes] = set()
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    for _ in range(data.draw(st.integers(1, 5))):
        batch = data.draw(st.lists(st.sampled_from(LOG), max_size=8))
        chance.shuffle(batch)
        judged = taken(log, batch, is_direct=False)
        came.update(batch)
        assert judged.offences == []
        assert judged.disputes == []
    assert log.envelopes() == [each for each in LOG if each in came]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=4))
def test_judge__an_honest_stream_that_begins_again__accuses_nobody(cuts: list[int]) -> None:
    log = MemoryLog()
    for cut in cuts:
        # From where the node stands, and from below it after an answer that was lost.
        start = max(len(log) - cut, 0)
        judged = taken(log, LOG[start : len(log) + cut])
        assert (judged.offences, judged.gaps, judged.disputes) == ([], [], [])


@pytest.mark.parametrize(
    ("ahead", "is_stored"), [(MOST_IDS_AHEAD, True), (MOST_IDS_AHEAD + 1, False)]
)
def test_judge__an_id_far_beyond_the_last__is_evidence_and_not_stored(
    ahead: int, is_stored: bool
) -> None:
    log = MemoryLog()
    taken(log, LOG)
    far = [NODE.signed(12 + ahead + each, 20.0 + each) for each in range(3)]

    judged = taken(log, far)

    assert [len(judged.new), judged.far] == ([3, 0] if is_stored else [0, 3])
    [offence] = judged.offences
    assert offence == Offence(NODE.node_id, Misbehavior.OUT_OF_ORDER, (far[0], LOG[11]))
    assert weight(offence) is Weight.CLAIMED


def test_judge__a_far_id_from_another_node__accuses_nobody_and_is_not_stored() -> None:
    log = MemoryLog()
    taken(log, LOG)

    judged = taken(log, [NODE.signed(2_000_000, 20.0)], is_direct=False)

    assert judged == BatchOutcome(far=1)


@pytest.mark.parametrize("held", [[], LOG], ids=["nothing held", "all between has expired"])
def test_judge__a_far_id_that_a_log_can_have_reached__is_new_and_no_offence(
    held: Sequence[bytes],
) -> None:
    log = MemoryLog()
    taken(log, held)
    later = 10 * DAY

    judged = taken(log, [NODE.signed(50_000_000, later)], now=later)

    assert [len(judged.new), judged.offences] == [1, []]


def test_judge__an_id_that_no_log_can_have_reached__is_evidence_from_whom_it_ever_came() -> None:
    log = MemoryLog()
    far = NODE.signed(2**62, 20.0)

    judged = taken(log, [far], is_direct=False)

    assert judged.far == 1
    assert judged.offences == [Offence(NODE.node_id, Misbehavior.OUT_OF_ORDER, (far,))]
    assert weight(judged.offences[0]) is Weight.CLAIMED

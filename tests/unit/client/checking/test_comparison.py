"""The same log at several nodes: gaps, omissions, two under one id, dependencies on nothing."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.misbehavior.evidence import Weight
from chainkit.misbehavior.types import Misbehavior
from chainkit_client.checking.comparison import (
    NodeLog,
    find_dangling,
    find_equivocations,
    find_omissions,
    find_own_gaps,
    ids_in_words,
)
from chainkit_client.reading.answer import read_answer
from chainkit_client.reading.held import MemoryLogs
from support import publishes
from support.client.served import KEYS, NODE, NOW_NS, PEER, weight
from support.network.originator import SECOND_NS

LOG = NODE.log(9)
DAY_NS = 24 * 3600 * SECOND_NS


def answered(envelopes: Iterable[bytes], node_id: int = PEER.node_id, after_id: int = 0) -> NodeLog:
    """A node's answer about the log of node 100."""
    reading = read_answer(envelopes, None, node_id, KEYS, MemoryLogs(), NOW_NS)
    assert not reading.refused
    verified = {each.sequence_id: each for each in reading.accepted}
    held = {each.sequence_id: each.held for each in reading.accepted}
    held |= {place[1]: each.held for place, each in reading.void.items()}
    return NodeLog(node_id, NODE.node_id, after_id, verified, held)


def without(*missing: int) -> list[bytes]:
    return [each for number, each in enumerate(LOG, 1) if number not in missing]


def omitted(logs: list[NodeLog], now_ns: int = NOW_NS) -> dict[int, tuple[int, ...]]:
    return {each.node_id: each.missing for each in find_omissions(logs, now_ns)}


@pytest.mark.conforms("C4")
def test_omissions__ids_below_a_nodes_last_one__are_left_out_and_others_are_witnesses() -> None:
    logs = [answered(LOG, 100), answered(without(3, 4, 7), 200)]

    [omission] = find_omissions(logs, NOW_NS)

    assert (omission.node_id, omission.originator_id) == (200, 100)
    assert (omission.missing, omission.witnesses) == ((3, 4, 7), (100,))


def test_omissions__a_node_that_lags__leaves_nothing_out() -> None:
    assert omitted([answered(LOG, 100), answered(LOG[:4], 200), answered([], 300)]) == {}


def test_omissions__what_nobody_has__is_not_missed_here() -> None:
    assert omitted([answered(without(5), 100), answered(without(5), 200)]) == {}


def test_omissions__read_from_another_id__counts_only_what_stands_behind_it() -> None:
    logs = [answered(LOG, 100), answered(LOG[5:], 200, after_id=5)]

    assert omitted(logs) == {}


def test_omissions__may_have_expired__is_not_missed() -> None:
    expiry = NOW_NS // SECOND_NS + 2 * 24 * 3600
    log = [NODE.signed(each, each, expiry=expiry) for each in (1, 2, 3)]
    logs = [answered(log, 100), answered([log[0], log[2]], 200)]

    assert omitted(logs) == {200: (2,)}
    assert omitted(logs, (expiry - 600) * SECOND_NS) == {}


def test_own_gaps__young_log__are_claimed_with_the_envelopes_around_them() -> None:
    [breach] = find_own_gaps(answered(without(3, 4), 100), NOW_NS)

    assert (breach.node_id, breach.misbehavior) == (100, Misbehavior.OUT_OF_ORDER)
    assert breach.envelopes == (LOG[4], LOG[1])
    assert breach.reason == "its own log lacks 3 to 4"
    assert weight(breach) is Weight.CLAIMED


def test_own_gaps__old_log__may_have_expired() -> None:
    assert find_own_gaps(answered(without(3, 4), 100), NOW_NS + 2 * DAY_NS) == []


def test_own_gaps__first_id_is_not_1__may_have_expired() -> None:
    assert find_own_gaps(answered(LOG[4:], 100), NOW_NS) == []


def test_equivocations__another_envelope_elsewhere__is_proved_once() -> None:
    other = [*LOG[:2], NODE.signed(3, 3.5), *LOG[3:]]
    logs = [answered(LOG, 100), answered(other, 200), answered(other, 300)]

    [breach] = find_equivocations(logs)

    assert (breach.node_id, breach.misbehavior) == (100, Misbehavior.DUPLICATE_SEQUENCE_ID)
    assert weight(breach) is Weight.PROVED
    assert find_equivocations([answered(LOG, 100), answered(LOG, 200)]) == []


def test_equivocations__one_of_the_two_breaks_a_rule__is_proved_too() -> None:
    void = NODE.signed(3, 3, publishes.paid(publishes.group_message(b"no MLS")))
    logs = [answered(LOG, 100), answered([*LOG[:2], void, *LOG[3:]], 200)]

    [breach] = find_equivocations(logs)

    assert weight(breach) is Weight.PROVED


def test_omissions__an_envelope_that_breaks_a_rule__is_none() -> None:
    void = NODE.signed(3, 3, publishes.paid(publishes.group_message(b"no MLS")))

    assert omitted([answered(LOG, 100), answered([*LOG[:2], void, *LOG[3:]], 200)]) == {}


def test_dangling__dependency_that_no_node_has__is_claimed() -> None:
    log = [NODE.signed(1, 1, seen={200: 4}), NODE.signed(2, 2, seen={200: 5, 100: 1})]

    [breach] = find_dangling([answered(log, 100), answered(log, 200)], {200: 4, 100: 2})

    assert (breach.node_id, breach.misbehavior) == (100, Misbehavior.CAUSAL_ORDERING)
    assert breach.reason == "2 depends on 5 of originator 200, which no node has"
    assert weight(breach) is Weight.CLAIMED


@given(st.sets(st.integers(1, 9)), st.integers(0, 9))
def test_omissions__any_subset__is_what_stands_below_the_last_one(
    held: set[int], after_id: int
) -> None:
    served = [LOG[each - 1] for each in sorted(held) if each > after_id]
    log = answered(served, 200, after_id)

    missing = omitted([answered(LOG, 100), log]).get(200, ())

    last = max((each for each in held if each > after_id), default=0)
    assert set(missing) == set(range(after_id + 1, last)) - held


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([4], "4"),
        ([4, 5, 6, 9], "4 to 6, 9"),
        ([1, 3, 5, 7, 9], "1, 3, 5 and 2 more"),
    ],
)
def test_ids_in_words__ranges__are_short(ids: list[int], words: str) -> None:
    assert ids_in_words(ids) == words

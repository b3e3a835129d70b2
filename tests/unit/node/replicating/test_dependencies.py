"""Envelopes that name what is not held: found, or missing, and never held against others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.received_batch import Offence
from chainkit.misbehavior.report import parse_unsigned, safety_report
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.received_envelope import ReceivedEnvelope
from chainkit.signatures import SigningKey
from chainkit.types import TopicKind
from chainkit_node.replicating.dependencies import (
    LONGEST_SECONDS,
    PATIENCE_SECONDS,
    Checked,
    Compared,
    Dependencies,
    KnownLogs,
)
from support.network.originator import BEGIN_NS, SECOND_NS, Originator

OWN = 100
ONE, OTHER = Originator(200), Originator(300, SigningKey(b"\4" * 32))
KNOWN = KnownLogs({0: 5, OWN: 2, 200: 9, 300: 4}, {0}, {OWN, 200, 300}, OWN, BEGIN_NS)
LATER = PATIENCE_SECONDS + 1
NOTHING = Checked()


def naming(seen: Mapping[int, int], node: Originator = ONE, number: int = 10) -> ReceivedEnvelope:
    return node.received(node.signed(number, 1.0, seen=seen))


def waiting(*received: ReceivedEnvelope) -> Dependencies:
    made = Dependencies()
    for each in received:
        assert not made.add(each, KNOWN, 0.0)
    return made


def holding(**held: int) -> KnownLogs:
    return replace(KNOWN, held={**KNOWN.held, **{int(each[1:]): id_ for each, id_ in held.items()}})


def offence(received: ReceivedEnvelope, *others: ReceivedEnvelope) -> Offence:
    evidence = tuple(each.envelope for each in (received, *others))
    return Offence(received.originator_id, Misbehavior.CAUSAL_ORDERING, evidence)


def weight(found: Offence) -> Weight:
    data = safety_report(found.node_id, found.misbehavior, found.envelopes, BEGIN_NS, True)
    keys = {each.node_id: each.key.public_key for each in (ONE, OTHER)}
    return judge_safety(parse_unsigned(data), keys, BEGIN_NS).weight


def lacks(peer_id: int, originator_id: int, begun_at: float = 61.0, highest: int = 4) -> Compared:
    return Compared(peer_id, originator_id, begun_at, highest, is_settled=True)


@pytest.mark.conforms("N48")
@pytest.mark.parametrize(
    "seen", [{}, {300: 4, 0: 5, OWN: 2}, {200: 99}], ids=["nothing", "what is held", "itself"]
)
def test_add__an_envelope_that_names_what_is_held__waits_for_nothing(seen: dict[int, int]) -> None:
    assert len(waiting(naming(seen))) == 0


def test_add__an_envelope_of_this_node__does_not_wait() -> None:
    assert len(waiting(naming({300: 9}, Originator(OWN)))) == 0


@pytest.mark.conforms("N48")
def test_check__what_is_named_comes_late__is_forgotten_without_a_word() -> None:
    dependencies = waiting(naming({300: 7}))

    assert dependencies.check(KNOWN, 59.0) == NOTHING
    assert dependencies.check(holding(_300=6), 59.5) == NOTHING
    assert len(dependencies) == 1
    assert dependencies.check(holding(_300=7), 600.0) == NOTHING
    assert len(dependencies) == 0


@pytest.mark.conforms("N48")
def test_check__both_nodes_lack_what_is_named__is_a_claim_against_the_one_that_named_it() -> None:
    received = naming({300: 7})
    dependencies = waiting(received)

    assert dependencies.check(KNOWN, 59.9) == NOTHING
    assert dependencies.check(KNOWN, 60.0).to_compare == {200, 300}
    assert dependencies.check(KNOWN, 61.0) == NOTHING
    dependencies.compared(lacks(200, 300))
    assert dependencies.check(KNOWN, 62.0) == NOTHING
    dependencies.compared(lacks(300, 300))
    found = dependencies.check(KNOWN, 63.0)

    assert found == Checked((offence(received),))
    assert weight(found.offences[0]) is Weight.CLAIMED
    assert len(dependencies) == 0


@pytest.mark.conforms("N48")
@pytest.mark.parametrize(
    "compared",
    [
        lacks(300, 300, highest=7),
        lacks(400, 300),
        lacks(200, 200),
        lacks(200, 300, begun_at=-0.1),
        replace(lacks(200, 300), is_settled=False),
    ],
    ids=["it exists", "another peer", "another log", "begun before", "more came"],
)
def test_check__a_comparison_that_shows_nothing__accuses_nobody(compared: Compared) -> None:
    dependencies = waiting(naming({300: 7}))
    if compared.peer_id == 300:
        dependencies.compared(lacks(200, 300))
    else:
        dependencies.compared(lacks(300, 300))

    dependencies.compared(compared)

    assert dependencies.check(KNOWN, LATER).offences == ()


@pytest.mark.conforms("N48")
def test_check__an_id_of_this_node__its_own_word_decides_where_the_liar_does_not_answer() -> None:
    received = naming({OWN: 10_000_000})
    dependencies = waiting(received)

    assert dependencies.check(KNOWN, 60.0).to_compare == {200}
    assert dependencies.check(KNOWN, 299.0).offences == ()
    assert dependencies.check(KNOWN, 300.0) == Checked((offence(received),))


def test_check__an_id_of_this_node__after_a_restored_backup_its_word_is_not_enough() -> None:
    dependencies = waiting(naming({OWN: 10_000_000}))

    checked = dependencies.check(replace(KNOWN, knows_own=False), LONGEST_SECONDS - 1)

    assert checked.offences == ()


def test_check__nobody_answers__asks_each_minute_and_gives_up_in_the_end() -> None:
    dependencies = waiting(naming({300: 7}))
    moments = range(int(LONGEST_SECONDS) + 5)

    asked = [now for now in moments if dependencies.check(KNOWN, now).to_compare]

    assert asked == list(range(60, int(LONGEST_SECONDS), 60))
    assert len(dependencies) == 0


@pytest.mark.conforms("N48")
def test_check__an_id_of_this_node_that_it_never_had__is_a_claim() -> None:
    received = naming({OWN: 3})
    dependencies = waiting(received)
    assert dependencies.check(KNOWN, 60.0).to_compare == {200}

    dependencies.compared(lacks(200, OWN, highest=2))

    assert dependencies.check(KNOWN, 61.0).offences == (offence(received),)


@pytest.mark.conforms("N48")
@pytest.mark.parametrize("seen", [{0: 6}, {900: 1}], ids=["chain", "unregistered node"])
def test_check__what_no_node_originates__is_missing_once_the_chain_is_final_beyond_it(
    seen: dict[int, int],
) -> None:
    received = naming(seen)
    dependencies = waiting(received)
    final = replace(KNOWN, final_ns=BEGIN_NS + SECOND_NS + 1)

    assert dependencies.check(final, 59.0) == NOTHING
    assert dependencies.check(replace(final, final_ns=received.originator_ns), LATER) == NOTHING
    assert dependencies.check(final, LATER) == Checked((offence(received),))


def test_add__many_of_one_originator__the_oldest_goes_and_others_stay() -> None:
    dependencies = Dependencies(most=2)
    first = naming({300: 7}, number=1)
    rest = [naming({300: 99}, number=number) for number in (2, 3)]
    kept = naming({200: 99}, OTHER)

    gone = [dependencies.add(each, KNOWN, 0.0) for each in (kept, first, *rest)]

    assert gone == [False, False, False, True]
    for peer_id in (200, 300):
        dependencies.compared(lacks(peer_id, 300))
        dependencies.compared(lacks(peer_id, 200))
    found = dependencies.check(KNOWN, LATER).offences
    assert set(found) == {offence(kept), *map(offence, rest)}


CYCLE = naming({300: 7}), naming({200: 10}, OTHER, 6)


@pytest.mark.conforms("N48")
def test_cycle__the_one_that_lacked_what_it_named__is_reported_alone_with_both() -> None:
    one, other = CYCLE
    dependencies = waiting(one)
    dependencies.compared(lacks(200, 300))

    dependencies.arrived(other)
    found = dependencies.check(holding(_200=10, _300=7), LATER).offences

    assert found == (offence(one, other),)
    assert weight(found[0]) is Weight.CLAIMED


@pytest.mark.conforms("N48")
def test_cycle__nobody_can_tell_who_lied__both_are_reported_with_both() -> None:
    one, other = CYCLE
    dependencies = waiting(one)

    dependencies.arrived(other)
    assert dependencies.check(holding(_200=10, _300=6), 1.0) == NOTHING
    found = dependencies.check(holding(_200=10, _300=7), 2.0).offences

    assert found == (offence(one, other), offence(other, one))
    assert {weight(each) for each in found} == {Weight.CLAIMED}
    assert dependencies.check(holding(_200=10, _300=7), 3.0) == NOTHING


@pytest.mark.conforms("N48")
def test_cycle__the_other_names_what_never_existed__only_that_one_is_reported() -> None:
    one, other = CYCLE[0], naming({200: 1_000_000}, OTHER, 6)
    dependencies, held = waiting(one), holding(_200=10, _300=7)
    dependencies.arrived(other)
    dependencies.add(other, held, 1.0)

    assert dependencies.check(held, 2.0) == NOTHING
    for peer_id in (200, 300):
        dependencies.compared(lacks(peer_id, 200))
    found = [*dependencies.check(held, LATER).offences, *dependencies.check(held, LATER).offences]

    assert found == [offence(other)]
    assert len(dependencies) == 0


@pytest.mark.parametrize(
    "other",
    [
        naming({200: 9}, OTHER, 6),
        naming({200: 10}, OTHER, 8),
        naming({0: 3}, OTHER, 6),
        replace(CYCLE[1], topic=TopicKind.WELCOME.topic(bytes(32))),
    ],
    ids=["names an earlier one", "is later than named", "names another", "is of another topic"],
)
def test_cycle__none__accuses_nobody(other: ReceivedEnvelope) -> None:
    dependencies = waiting(CYCLE[0])

    dependencies.arrived(other)

    assert dependencies.check(holding(_200=10, _300=9), LATER) == NOTHING


class CountedLookups(dict[int, int]):
    """Held ids, and how often one was looked up."""

    count = 0

    def get(self, key: int, default: Any = None) -> Any:
        self.count += 1
        return super().get(key, default)


def test_add__an_envelope_that_names_thousands_of_strangers__keeps_one_of_them() -> None:
    received = naming({300: 7, **dict.fromkeys(range(1000, 9000), 1)})
    dependencies = waiting(received)
    held = CountedLookups(KNOWN.held)

    assert dependencies.check(replace(KNOWN, held=held), 59.0) == NOTHING
    assert held.count <= 2
    known = replace(KNOWN, final_ns=received.originator_ns + 1)
    assert dependencies.check(known, LATER).offences == (offence(received),)


def test_add__large_envelopes__wait_up_to_some_bytes() -> None:
    dependencies = Dependencies()
    large = [replace(naming({300: 7}, number=each), envelope=bytes(5 << 20)) for each in (10, 11)]

    assert [dependencies.add(each, KNOWN, 0.0) for each in large] == [False, False]
    last = replace(naming({300: 7}, number=12), envelope=bytes(9 << 20))
    assert dependencies.add(last, KNOWN, 0.0)

    assert len(dependencies) == 2

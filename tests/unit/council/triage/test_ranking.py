"""The ranking of nodes: what counts, how often, and that nothing else matters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.council.triage.falls import Fall
from chainkit.council.triage.ranking import MOST_GROUNDS, rank
from chainkit.council.triage.values import Action, Claim, Dismissed, RankedNode, Ranking
from chainkit.misbehavior.types import Misbehavior, Severity
from support.audit.identities import key_of
from support.council.triage import AUDITOR, OTHER_AUDITOR, proof, registered, roll, tells

ROLL = roll(100, 200, registered(250, is_enabled=False), 300, 400, 500)
NEEDED = 3
GAP = Misbehavior.OUT_OF_ORDER


def ranked(*claims: Claim) -> Ranking:
    return rank(claims, [], ROLL, NEEDED)


def only(ranking: Ranking) -> RankedNode:
    (node,) = ranking.nodes
    return node


def reasons(ranking: Ranking) -> dict[str, str]:
    return {each.source: each.reason for each in ranking.dismissed}


# ------------------------------------------------------------------ proofs


@pytest.mark.conforms("3.2.7-3")
def test_rank__one_proof__suffices() -> None:
    ranking = ranked(proof(300, b"one"))

    node = only(ranking)
    assert (node.action, node.recommendation) == (Action.DISABLE, "disable: one safety proof")
    assert (node.status, node.severity, node.proved, node.claimed, node.reporters) == (
        *("enabled", Severity.CRITICAL),
        # The auditor's key is no node's: any changed report is signed by such a key.
        *(1, 0, 0),
    )
    assert ranking.to_disable == (node,)
    assert node.grounds == ("300-one",)
    assert not ranking.dismissed


def test_rank__same_envelope_by_keys_that_no_node_has__is_one_proof_of_no_reporter() -> None:
    copy = proof(300, b"one", reporter=OTHER_AUDITOR, source="copy")

    node = only(ranked(proof(300, b"one"), copy))

    assert (node.proved, node.reporters) == (1, 0)
    assert node.recommendation == "disable: one safety proof"
    assert node.grounds == ("300-one",)


def fell(reporter_id: int, name: bytes, at_seconds: int, by_ms: int) -> Claim:
    """A proof that a time of node 300 fell."""
    source = f"{reporter_id}-{name.decode()}"
    claim = proof(300, name, reporter=key_of(reporter_id), source=source, misbehavior=GAP)
    return replace(claim, fall=Fall(at_seconds * 10**9, by_ms * 10**6))


def test_rank__times_that_fell_as_under_load__say_how_often_and_people_judge() -> None:
    falls = [fell(each, b"one", 1_700_000_000, 3) for each in (100, 200, 400)]

    node = only(ranked(*falls, fell(100, b"two", 1_700_000_500, 12)))

    assert node.action is Action.JUDGE
    assert node.recommendation == (
        "judge by hand: times fell 2 times since 2023-11-14 22:13:20 UTC, "
        "by 12 ms at most: another order by time, nothing lost"
    )
    assert node.grounds == ()


def test_rank__times_that_fell_beside_another_proof__suffice_by_that_one() -> None:
    node = only(
        ranked(fell(100, b"one", 1_700_000_000, 3), proof(300, b"two", reporter=key_of(100)))
    )

    assert node.recommendation == "disable: one safety proof"


def test_rank__same_envelope_by_two__is_one_proof_of_two_reporters() -> None:
    copy = proof(300, b"one", reporter=key_of(200), source="copy")

    node = only(ranked(proof(300, b"one", reporter=key_of(100)), copy))

    assert (node.proved, node.reporters) == (1, 2)
    assert node.recommendation == "disable: one safety proof"
    assert node.grounds == ("300-one", "copy")


def test_rank__same_file_twice__says_so_and_counts_once() -> None:
    ranking = ranked(proof(300, b"one"), proof(300, b"one", source="copy"))

    assert (only(ranking).proved, only(ranking).reporters) == (1, 0)
    assert reasons(ranking) == {"copy": "says the same as 300-one"}


def test_rank__report_and_bundle_of_one_reporter__are_told_as_the_same() -> None:
    bundle = proof(300, b"one", source="bundle", digest=b"the bundle's own")

    ranking = ranked(proof(300, b"one"), bundle)

    assert reasons(ranking) == {"bundle": "says the same as 300-one"}
    assert only(ranking).grounds == ("300-one",)


def test_rank__proof_that_nobody_signed__waits_for_a_reporter() -> None:
    ranking = ranked(proof(300, b"one", reporter=None))

    node = only(ranking)
    assert (node.action, node.proved) == (Action.WAIT, 0)
    assert node.recommendation == "wait: proved, but no report counts"
    assert reasons(ranking) == {"300-one": "proved, but nobody signed a report of it"}


def test_rank__accused_reports_itself__does_not_count_without_a_proof() -> None:
    gap = tells(300, 300, 1, misbehavior=GAP)
    cycle = tells(300, 300, 2, misbehavior=Misbehavior.CAUSAL_ORDERING)
    ranking = ranked(tells(300, 300), gap, cycle)

    assert not ranking.to_disable
    assert only(ranking).reporters == 0
    assert len(ranking.dismissed) == 3
    assert all("the accused reports itself" in each.reason for each in ranking.dismissed)


def test_rank__proof_in_a_clients_report_that_the_accused_signed__suffices() -> None:
    own = proof(300, b"one", reporter=key_of(300))

    assert only(ranked(own)).recommendation == "disable: one safety proof"
    assert [node.node_id for node in rank([own], [], None, NEEDED).to_disable] == [300]


def test_rank__node_disabled_already__is_left_out() -> None:
    ranking = ranked(proof(250, b"one"))

    node = only(ranking)
    assert (node.action, node.status, node.grounds) == (Action.NOTHING, "disabled", ())
    assert node.recommendation == "disabled already (one safety proof)"
    assert not ranking.to_disable


def test_rank__node_that_is_not_registered__has_no_rank() -> None:
    ranking = ranked(proof(900, b"one"), tells(800, 100, accused_key=None))

    assert not ranking.nodes
    assert set(reasons(ranking).values()) == {
        *("node 900 is not registered", "node 800 is not registered"),
    }


def test_rank__no_registry__tells_no_status_and_takes_proofs_alone() -> None:
    claims = [proof(300, b"one"), *(tells(200, each) for each in (100, 300, 400))]

    ranking = rank(claims, [], None, NEEDED)

    assert [(node.node_id, node.status) for node in ranking.to_disable] == [(300, "unknown")]
    assert all("no registered node" in each.reason for each in ranking.dismissed)


# ------------------------------------------------------------------ liveness


@pytest.mark.conforms("3.2.7-4")
def test_rank__too_few_peers__waits() -> None:
    node = only(ranked(tells(300, 100), tells(300, 200)))

    assert (node.action, node.recommendation) == (Action.WAIT, "wait: 2 of 3 reporters")
    assert (node.claimed, node.reporters, node.severity) == (2, 2, Severity.MAJOR)
    assert node.grounds == ()


def test_rank__enough_peers__is_to_be_disabled_by_a_report_of_each() -> None:
    claims = [tells(300, peer, number) for peer in (100, 200, 400) for number in range(2)]

    node = only(ranked(*claims))

    assert node.recommendation == "disable: 3 of 3 reporters"
    assert node.grounds == ("300-by-100-0", "300-by-200-0", "300-by-400-0")


def test_rank__one_peer_with_ten_reports__is_one_reporter() -> None:
    node = only(ranked(*(tells(300, 100, number) for number in range(10))))

    assert (node.claimed, node.reporters) == (10, 1)
    assert node.recommendation == "wait: 1 of 3 reporters"


def test_rank__nodes_of_one_holder__are_one_reporter() -> None:
    nodes = [registered(each, holder="the same") for each in (100, 200, 400)]

    ranking = rank([tells(300, each) for each in (100, 200, 400)], [], roll(300, *nodes), NEEDED)

    assert only(ranking).reporters == 1
    assert not ranking.to_disable


def test_rank__strangers_with_many_keys__are_no_peers() -> None:
    ranking = ranked(*(tells(300, 1000 + number) for number in range(5)))

    assert only(ranking).recommendation == "nothing proved"
    assert all("no registered node" in each.reason for each in ranking.dismissed)


@pytest.mark.conforms("3.2.7-7")
def test_rank__clients_report_stored_by_many_nodes__does_not_count() -> None:
    ranking = ranked(*(tells(300, each, is_from_node=False) for each in (100, 200, 400)))

    assert only(ranking).reporters == 0
    assert all("only stored it for a client" in each.reason for each in ranking.dismissed)


def test_rank__peer_that_is_disabled_by_now__counts_and_is_marked() -> None:
    node = only(ranked(*(tells(300, each) for each in (100, 200, 250))))

    assert node.action is Action.DISABLE
    (tally,) = node.tallies
    marks = {
        each.node.node.node_id: each.node.node.is_enabled for each in tally.reporters if each.node
    }
    assert marks == {100: True, 200: True, 250: False}


def test_rank__several_types_of_liveness__are_counted_together() -> None:
    slow = [tells(300, each, misbehavior=Misbehavior.SLOW_NODE) for each in (200, 400)]

    node = only(ranked(tells(300, 100), *slow))

    assert node.recommendation == "disable: 3 of 3 reporters"
    names = [tally.misbehavior.name for tally in node.tallies]
    assert names == ["UNRESPONSIVE_NODE", "SLOW_NODE"]


@pytest.mark.conforms("3.2.7-2")
@pytest.mark.parametrize("misbehavior", [each for each in Misbehavior if 5 <= each <= 7])
def test_rank__safety_failure_that_is_only_claimed__is_left_to_people(
    misbehavior: Misbehavior,
) -> None:
    claims = [
        tells(300, each, misbehavior=misbehavior, reason="a cycle") for each in (100, 200, 400, 500)
    ]

    ranking = ranked(*claims)

    node = only(ranking)
    assert (node.action, node.claimed, node.proved) == (Action.JUDGE, 4, 0)
    words = f"{misbehavior.name} is not proved: judge its envelopes (a cycle)"
    assert [each.reason for each in ranking.dismissed] == [words] * 4
    assert not ranking.to_disable


@pytest.mark.conforms("3.2.7-3")
@pytest.mark.parametrize("misbehavior", [each for each in Misbehavior if each >= 4])
def test_rank__one_proof_of_each_safety_failure__suffices(misbehavior: Misbehavior) -> None:
    claim = proof(300, b"one", misbehavior=misbehavior)

    assert only(ranked(claim)).recommendation == "disable: one safety proof"


def test_rank__type_8_that_proves_nothing__is_left_to_people() -> None:
    empty = replace(proof(300, b"one"), proofs=frozenset())

    assert not ranked(empty).to_disable


# ------------------------------------------------------------------ ranks


def test_rank__several_nodes__most_urgent_first() -> None:
    claims = [
        *(tells(500, each) for each in (100, 200, 400)),
        proof(400, b"one"),
        *(proof(300, b"two", b"three"), tells(100, 200)),
        proof(250, b"four"),
    ]

    assert [node.node_id for node in ranked(*claims).nodes] == [300, 400, 500, 100, 250]


def test_rank__nothing_but_dismissed_evidence__nothing_is_proved() -> None:
    dismissed = [Dismissed("a", "not proved", 300), Dismissed("b", "unreadable")]

    ranking = rank([], dismissed, ROLL, NEEDED)

    assert only(ranking).recommendation == "nothing proved"
    assert only(ranking).severity is None
    assert ranking.is_complete
    assert not rank([], [Dismissed("c", "cut off", None, True)], ROLL, NEEDED).is_complete


def test_rank__many_proofs__proposal_names_no_more_than_people_read() -> None:
    claims = [proof(300, b"%d" % number) for number in range(MOST_GROUNDS + 5)]

    node = only(ranked(*claims))

    assert node.proved == MOST_GROUNDS + 5
    assert len(node.grounds) == MOST_GROUNDS


def test_rank__more_peers_needed_than_people_read__proposal_names_all_of_them() -> None:
    peers = range(1000, 1000 + MOST_GROUNDS + 2)

    claims = [tells(300, peer) for peer in peers]
    ranking = rank(claims, [], roll(300, *peers), len(peers))

    assert len(only(ranking).grounds) == len(peers)


CLAIMS = st.lists(
    st.one_of(
        st.builds(
            lambda node_id, what, reporter: proof(node_id, what, reporter=reporter),
            st.sampled_from([100, 200, 250, 900]),
            st.sampled_from([b"one", b"two"]),
            st.sampled_from([AUDITOR, OTHER_AUDITOR, None, key_of(200)]),
        ),
        st.builds(
            tells,
            st.sampled_from([100, 200, 250]),
            st.sampled_from([100, 200, 300, 400, 1000]),
            st.integers(0, 3),
            misbehavior=st.sampled_from([Misbehavior.UNRESPONSIVE_NODE, Misbehavior.OUT_OF_ORDER]),
        ),
    ),
    max_size=12,
)


def outcome(ranking: Ranking) -> list[tuple[object, ...]]:
    """All that is said of nodes, but for the files' names."""
    return [
        (node.node_id, node.status, node.tallies, node.action, node.recommendation)
        for node in ranking.nodes
    ]


def named(claims: list[Claim]) -> list[Claim]:
    return [replace(claim, source=f"{number:03}") for number, claim in enumerate(claims)]


@given(CLAIMS, st.randoms(use_true_random=False), st.integers(1, 3))
def test_rank__other_order_and_copies__says_the_same(
    claims: list[Claim], random: object, copies: int
) -> None:
    shuffled = claims * copies
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert outcome(ranked(*named(shuffled))) == outcome(ranked(*named(claims)))


@given(CLAIMS)
def test_rank__more_reports_of_the_same_peers__recommend_the_same(claims: list[Claim]) -> None:
    again = [replace(each, digest=each.digest[::-1]) for each in claims if each.sample]

    before, after = ranked(*named(claims)), ranked(*named([*claims, *again]))

    assert [node.recommendation for node in after.nodes] == [
        node.recommendation for node in before.nodes
    ]


@given(CLAIMS)
def test_rank__whatever_is_claimed__nobody_is_disabled_without_proof_or_peers(
    claims: list[Claim],
) -> None:
    for node in ranked(*named(claims)).to_disable:
        own = key_of(node.node_id).public_key
        about = [each for each in claims if each.node_id == node.node_id]
        peers = {each.reporter for each in about if each.sample and each.reporter != own}
        is_proved = any(each.proofs and each.reporter for each in about)
        assert is_proved or len(peers & {key_of(each).public_key for each in ROLL}) >= NEEDED

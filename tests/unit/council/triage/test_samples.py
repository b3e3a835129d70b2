"""Failures that nothing proves: which peers are counted together, as the guide says."""

from __future__ import annotations

import re

import pytest

from chainkit.council.triage.ranking import MOST_GROUNDS, rank
from chainkit.council.triage.thresholds import THRESHOLDS, Sample
from chainkit.council.triage.values import Claim, RankedNode, Ranking
from chainkit.misbehavior.types import Misbehavior, Severity
from support.council.triage import roll, tells
from support.project import ROOT

GAP = Misbehavior.OUT_OF_ORDER


def ranked(*claims: Claim) -> Ranking:
    return rank(claims, [], roll(100, 200, 300, 400, 500), 3)


def only(ranking: Ranking) -> RankedNode:
    (node,) = ranking.nodes
    return node


@pytest.mark.conforms("3.2.7-4")
def test_rank__gap_that_enough_peers_report__is_to_be_disabled() -> None:
    claims = [tells(300, each, misbehavior=GAP) for each in (100, 200, 400)]

    assert only(ranked(*claims[:2])).recommendation == "wait: 2 of 3 reporters"
    node = only(ranked(*claims))
    assert (node.recommendation, node.severity) == ("disable: 3 of 3 reporters", Severity.MAJOR)
    assert len(node.grounds) == 3


def test_rank__gap_that_strangers_and_clients_report__does_not_count() -> None:
    strangers = [tells(300, 1000 + number, misbehavior=GAP) for number in range(4)]
    clients = [
        tells(300, each, misbehavior=GAP, is_from_node=False) for each in (100, 200, 400, 500)
    ]

    ranking = ranked(*strangers, *clients)

    assert only(ranking).recommendation == "nothing proved"
    assert all(each.reason.startswith("OUT_OF_ORDER unproved") for each in ranking.dismissed)


def test_rank__gaps_and_late_answers__are_counted_apart() -> None:
    gaps = [tells(300, each, misbehavior=GAP) for each in (100, 200)]
    late = [tells(300, each) for each in (400, 500)]

    node = only(ranked(*gaps, *late))

    assert (node.recommendation, node.reporters) == ("wait: 2 of 3 reporters", 4)


def test_rank__enough_peers_of_one_sample__are_the_first_grounds() -> None:
    peers = range(1000, 1000 + MOST_GROUNDS)
    late = [tells(300, each, source=f"a-{each}") for each in peers[1:]]
    gaps = [tells(300, each, misbehavior=GAP, source=f"b-{each}") for each in peers]

    ranking = rank([*late, *gaps], [], roll(300, *peers), len(peers))

    assert only(ranking).grounds == tuple(sorted(each.source for each in gaps))


def test_thresholds__of_every_type__are_those_of_the_guide() -> None:
    guide = (ROOT / "docs" / "triage.md").read_text()
    rows = re.findall(r"^\| (\d) ([A-Z_0-9]+) \| ([^|]+) \| ([^|]+) \|", guide, re.MULTILINE)

    told = {Misbehavior(int(number)): (name, proof, peers) for number, name, proof, peers in rows}

    words = {Sample.LIVENESS: "N peers, with types 1 to 3", Sample.ORDER: "N peers, of this type"}
    assert told == {
        each: (
            each.name,
            "-" if threshold.proofs is None else str(threshold.proofs),
            "by hand" if threshold.sample is None else words[threshold.sample],
        )
        for each, threshold in THRESHOLDS.items()
    }
    assert set(told) == set(Misbehavior)

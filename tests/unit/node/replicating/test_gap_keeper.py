"""Gaps by expiry and gaps by omission, by the word of the originator and by the times around."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from chainkit.misbehavior.types import Misbehavior
from chainkit.signatures import SigningKey
from chainkit_indexer.storage.identity import Identity
from chainkit_node.replicating import gap_keeper
from chainkit_node.replicating.gap_keeper import GapKeeper
from chainkit_node.replicating.intake import Intake, Source
from chainkit_node.replicating.own_ids import UngivenIds
from chainkit_node.storage import schema
from chainkit_node.storage.gaps import GapRow, GapState
from chainkit_node.storage.learned_ids import LEARNED
from support.chains.fake_chain import FakeChain
from support.indexer.fake_node import open_store
from support.network.originator import BEGIN_NS, SECOND_NS, Originator

OWN = Identity.of(FakeChain().deployment, SigningKey(b"\5" * 32).public_key)
NODE = Originator(200)
SOURCE = Source(NODE.node_id, NODE.key.public_key, is_direct=True)
RELAYED = Source(NODE.node_id, NODE.key.public_key, is_direct=False)
DAY = 86_400


class Node:
    """A database with a gap, whose clock a test sets."""

    def __init__(self, path: Path) -> None:
        self.store = open_store(path, OWN)
        self.reports: list[tuple[int, Misbehavior, Sequence[bytes]]] = []
        self.seconds = 0.0
        self.intake = Intake(
            self.store,
            self,
            self.now_ns,
            lambda new, late: None,
            lambda stored: None,
            UngivenIds(lambda: None, lambda: True),
        )
        self.keeper = GapKeeper(self.store, self, self.now_ns)

    def now_ns(self) -> int:
        return BEGIN_NS + int(self.seconds * SECOND_NS)

    def submit_own_safety(
        self, node_id: int, misbehavior: Misbehavior, envelopes: Sequence[bytes]
    ) -> None:
        self.reports.append((node_id, misbehavior, envelopes))

    def gaps(self) -> list[tuple[int, int, str]]:
        query = select(schema.gaps).order_by("first_id")
        with self.store.reading() as connection:
            rows = [GapRow._make(row) for row in connection.execute(query)]
            learned = list(LEARNED.runs(connection, NODE.node_id, range(1, 2**62)))
        found = [(row.first_id, row.last_id, row.state) for row in rows]
        return sorted([*found, *((run[0], run[-1], GapState.EXPIRED) for run in learned)])


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path / "node.db")
    yield made
    made.store.close()


def test_answer__the_originator_calls_some_expired__they_are_and_it_serves_the_rest(
    node: Node,
) -> None:
    node.intake.take([NODE.signed(9, 0.0)], SOURCE)
    assert node.gaps() == [(1, 8, GapState.ASKED)]

    node.keeper.answered(NODE.node_id, 9, held=[range(1, 3), range(6, 9)], expired=[range(3, 6)])

    assert node.gaps() == [
        (1, 2, GapState.ASKED),
        (3, 5, GapState.EXPIRED),
        (6, 8, GapState.ASKED),
    ]
    assert node.reports == []


def test_unexplained__the_originator_has_not_answered_yet__is_what_is_missing(node: Node) -> None:
    node.intake.take([NODE.signed(9, 0.0)], SOURCE)
    assert node.keeper.unexplained(NODE.node_id) == [range(1, 9)]

    node.keeper.answered(NODE.node_id, 9, held=[range(6, 9)], expired=[range(1, 6)])

    assert node.keeper.unexplained(NODE.node_id) == [range(6, 9)]


@pytest.mark.conforms("N34")
def test_answer__calls_expired_what_cannot_be__is_omitted_and_reported(node: Node) -> None:
    before, after = NODE.signed(1, 0.0), NODE.signed(4, 1.0)
    # It came from another node, which has nothing to answer for.
    node.intake.take([before, after], RELAYED)
    assert node.gaps() == [(2, 3, GapState.ASKED)]
    assert node.reports == []

    node.keeper.answered(NODE.node_id, 4, held=[], expired=[range(2, 4)])

    assert node.gaps() == [(2, 3, GapState.OMITTED)]
    assert node.reports == [(NODE.node_id, Misbehavior.OUT_OF_ORDER, (after, before))]


@pytest.mark.conforms("N34", "N46")
def test_answer__lacks_them_and_the_next_one_is_young__is_reported_once(node: Node) -> None:
    young = NODE.signed(9, 0.0)
    node.intake.take([young], SOURCE)

    node.keeper.answered(NODE.node_id, 9, [], [])
    node.keeper.answered(NODE.node_id, 9, [], [])

    assert node.gaps() == [(1, 8, GapState.OMITTED)]
    assert node.reports == [(NODE.node_id, Misbehavior.OUT_OF_ORDER, (young,))]


@pytest.mark.conforms("N34")
def test_answer__the_next_one_is_older_than_the_retention__is_permitted(node: Node) -> None:
    node.intake.take([NODE.signed(9, 0.0)], SOURCE)
    node.seconds = DAY + 1

    node.keeper.answered(NODE.node_id, 9, [], [])

    assert node.gaps() == [(1, 8, GapState.EXPIRED)]
    assert node.reports == []


def test_answer__up_to_an_id__says_nothing_of_later_ones(node: Node) -> None:
    node.intake.take([NODE.signed(9, 0.0)], SOURCE)

    node.keeper.answered(NODE.node_id, 5, [], [])

    assert node.gaps() == [(1, 5, GapState.OMITTED), (6, 8, GapState.ASKED)]


def test_answer__of_another_originator__changes_nothing(node: Node) -> None:
    node.intake.take([NODE.signed(9, 0.0)], SOURCE)

    node.keeper.answered(300, 9, [], [])

    assert node.gaps() == [(1, 8, GapState.ASKED)]


def test_answer__a_gap_between_an_old_and_a_young_one__names_both(node: Node) -> None:
    before, after = NODE.signed(1, 0.0), NODE.signed(4, 2 * DAY)
    node.seconds = 2 * DAY
    node.intake.take([before, after], SOURCE)
    assert node.gaps() == [(2, 3, GapState.ASKED)]

    node.keeper.answered(NODE.node_id, 4, [], [])

    assert node.reports == [(NODE.node_id, Misbehavior.OUT_OF_ORDER, (after, before))]


def test_answer__gaps_that_were_filled_yesterday__are_forgotten(node: Node) -> None:
    node.intake.take([NODE.signed(1, 0.0), NODE.signed(4, 3.0)], RELAYED)
    for sequence_id in (2, 3):
        node.intake.take([NODE.signed(sequence_id, sequence_id)], RELAYED)
    node.seconds = DAY + 60

    node.keeper.answered(NODE.node_id, 4, [], [])

    # The last change of all stays: readers begin behind it.
    assert node.gaps() == [(3, 3, GapState.FILLED)]


def test_answer__hundreds_of_runs__no_transaction_changes_more_than_a_hundred(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.intake.take([NODE.signed(1001, 0.0)], SOURCE)
    changes: list[Connection] = []
    change = gap_keeper.change_gaps

    def counted(connection: Connection, *arguments: Any) -> bool:
        changes.append(connection)
        return change(connection, *arguments)

    monkeypatch.setattr(gap_keeper, "change_gaps", counted)
    expired = [range(each, each + 1) for each in range(2, 501, 2)]
    held = [range(each, each + 1) for each in range(1, 500, 2)] + [range(501, 1001)]

    node.keeper.answered(NODE.node_id, 1001, held=held, expired=expired)

    by_transaction = Counter(map(id, changes))
    assert sorted(by_transaction.values()) == [50, 100, 100]
    assert sum(state == GapState.EXPIRED for _, _, state in node.gaps()) == 250

"""Gaps by expiry and gaps by omission, by the word of the originator and by the times around."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import select

from chainkit.misbehavior.types import Misbehavior
from chainkit.signatures import SigningKey
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.gaps import GapRow
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.types import GapState
from chainkit_node.replicating.gap_keeper import GapKeeper
from chainkit_node.replicating.intake import Intake, Source
from support.chains.fake_chain import FakeChain
from support.indexer.fake_node import open_store
from support.network.originator import BEGIN_NS, SECOND_NS, Originator

OWN = Identity.of(FakeChain().deployment, SigningKey(b"\5" * 32).public_key)
NODE = Originator(200)
SOURCE = Source(NODE.node_id, NODE.key.public_key, is_direct=True)
DAY = 86_400


class Node:
    """A database with a gap, whose clock a test sets."""

    def __init__(self, path: Path) -> None:
        self.store = open_store(path, OWN)
        self.reports: list[tuple[int, Misbehavior, Sequence[bytes]]] = []
        self.seconds = 0.0
        self.intake = Intake(
            self.store, self, self.now_ns, lambda new, late: None, lambda stored: None
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
        return [(row.first_id, row.last_id, row.state) for row in rows]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path / "node.db")
    yield made
    made.store.close()


def test_explained__by_the_originator__what_may_have_expired_has(node: Node) -> None:
    node.intake.take([NODE.signed(9, 0.0)], SOURCE)
    assert node.gaps() == [(1, 8, GapState.ASKED)]

    node.keeper.explained(NODE.node_id, [range(3, 6)])

    assert node.gaps() == [
        (1, 2, GapState.ASKED),
        (3, 5, GapState.EXPIRED),
        (6, 8, GapState.ASKED),
    ]
    assert node.reports == []


@pytest.mark.conforms("N34")
def test_explained__what_cannot_have_expired__stays_omitted(node: Node) -> None:
    node.intake.take([NODE.signed(1, 0.0), NODE.signed(4, 1.0)], SOURCE)
    assert node.gaps() == [(2, 3, GapState.OMITTED)]

    node.keeper.explained(NODE.node_id, [range(2, 4)])

    assert node.gaps() == [(2, 3, GapState.OMITTED)]


@pytest.mark.conforms("N34", "N46")
def test_denied__the_next_one_is_young__is_reported_once(node: Node) -> None:
    young = NODE.signed(9, 0.0)
    node.intake.take([young], SOURCE)

    node.keeper.denied(NODE.node_id, 9, [])
    node.keeper.denied(NODE.node_id, 9, [])

    assert node.gaps() == [(1, 8, GapState.OMITTED)]
    assert node.reports == [(NODE.node_id, Misbehavior.OUT_OF_ORDER, (young,))]


@pytest.mark.conforms("N34")
def test_denied__the_next_one_is_older_than_the_retention__is_permitted(node: Node) -> None:
    node.intake.take([NODE.signed(9, 0.0)], SOURCE)
    node.seconds = DAY + 1

    node.keeper.denied(NODE.node_id, 9, [])

    assert node.gaps() == [(1, 8, GapState.EXPIRED)]
    assert node.reports == []


@pytest.mark.parametrize(
    ("originator_id", "through", "held"),
    [(NODE.node_id, 7, []), (NODE.node_id, 9, [range(8, 9)]), (300, 9, [])],
)
def test_denied__not_compared_or_held_or_of_another__stays(
    node: Node, originator_id: int, through: int, held: Sequence[range]
) -> None:
    node.intake.take([NODE.signed(9, 0.0)], SOURCE)

    node.keeper.denied(originator_id, through, held)

    assert node.gaps() == [(1, 8, GapState.ASKED)]
    assert node.reports == []


def test_denied__a_gap_in_the_middle__names_both_neighbors(node: Node) -> None:
    before, after = NODE.signed(1, 0.0), NODE.signed(4, 2 * DAY)
    node.seconds = 2 * DAY
    node.intake.take([before, after], SOURCE)
    assert node.gaps() == [(2, 3, GapState.ASKED)]

    node.keeper.denied(NODE.node_id, 4, [])

    assert node.reports == [(NODE.node_id, Misbehavior.OUT_OF_ORDER, (after, before))]

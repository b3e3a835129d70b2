from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from chainkit.chain import EndpointPool
from chainkit_indexer.export import write_export
from chainkit_indexer.inspection.history import read_history
from chainkit_indexer.inspection.status import as_json, read_status
from chainkit_indexer.rewind import plan_rewind, rewind
from chainkit_indexer.storage import schema
from chainkit_indexer.types import Idle
from chainkit_indexer.verification.page_comparison import Difference
from chainkit_indexer.verification.verify import Verified, stored_range, verify_range
from support.chains.fake_chain import FakeChain, Post, malformed, update
from support.indexer.fake_node import FakeNode

OWN = 100
A, B, C, D = Post("a"), update("b"), malformed("c"), Post("d")
TOPIC = b"\x00" + A.identifier
OWN_ROWS = [(OWN, number, 10**18 + number, TOPIC, None, b"own") for number in range(1, 9)]


@dataclass
class Twins:
    """A node with envelopes of its own, and one that has none; both follow one chain."""

    chain: FakeChain
    node: FakeNode
    twin: FakeNode

    def each(self, act: Callable[[FakeNode], Any]) -> Any:
        """Do the same with both, and return the result, which must be the same."""
        with_own, without = act(self.node), act(self.twin)
        assert with_own == without
        return with_own

    def check(self) -> None:
        """Fail unless the own envelopes are as they were, and nothing else differs."""
        with self.node.store.reading() as connection:
            own = schema.envelopes.c.originator_id == OWN
            rows = connection.execute(select(schema.envelopes).where(own))
            assert sorted(tuple(row) for row in rows) == OWN_ROWS
        for table in schema.metadata.sorted_tables:
            rows = [row for row in self.node.rows(table) if row not in OWN_ROWS]
            assert rows == self.twin.rows(table), table.name


@pytest.fixture
def twins(database_url: str, tmp_path: Path) -> Iterator[Twins]:
    chain = FakeChain()
    chain.mine([A], [B, C], [], [D])
    node = FakeNode(chain, database_url, window_blocks=3)
    twin = FakeNode(chain, tmp_path / "twin.db", window_blocks=3)
    with node.store.writing() as connection:
        names = schema.envelopes.columns.keys()
        rows = [dict(zip(names, row, strict=True)) for row in OWN_ROWS]
        connection.execute(schema.envelopes.insert(), rows)
    twins = Twins(chain, node, twin)
    twins.each(FakeNode.catch_up)
    yield twins
    node.store.close()
    twin.store.close()


class Heard:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.differences: list[Difference] = []

    def differs(self, difference: Difference) -> None:
        self.differences.append(difference)

    def compared(self, blocks: int) -> None:
        """Nothing to note."""


def verified(node: FakeNode) -> tuple[Verified, list[Difference]]:
    heard = Heard()
    pool = EndpointPool([node.chain.endpoint])
    blocks = stored_range(node.store, None, node.chain.head.number)
    return verify_range(pool, node.store, node.chain.deployment, blocks, heard), heard.differences


def status(node: FakeNode) -> dict[str, Any]:
    return as_json(replace(read_status(node.store), database=""))


def exported(node: FakeNode, folder: Path) -> dict[str, bytes]:
    write_export(node.store, folder, range_blocks=2)
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_reorg__envelopes_of_a_node_beside__stay_and_change_nothing(twins: Twins) -> None:
    twins.chain.fork(3, [B], [D, C])

    twins.each(FakeNode.catch_up)

    assert twins.each(FakeNode.journal) == [
        (1, 2, "kept", None),
        (1, 3, "moved", 4),
        (1, 4, "moved", 3),
    ]
    twins.check()


def test_retract_all__envelopes_of_a_node_beside__stay_and_change_nothing(
    database_url: str, tmp_path: Path
) -> None:
    chain = FakeChain()
    nodes = [FakeNode(chain, path) for path in (database_url, tmp_path / "twin.db")]
    twins = Twins(chain, *nodes)
    with twins.node.store.writing() as connection:
        names = schema.envelopes.columns.keys()
        rows = [dict(zip(names, row, strict=True)) for row in OWN_ROWS]
        connection.execute(schema.envelopes.insert(), rows)
    chain.mine([A], [B, C], [D])
    twins.each(FakeNode.catch_up)

    position = twins.each(lambda node: node.store.position())
    assert twins.each(lambda node: node.store.retract_all(position)) == (1, 4)

    twins.check()
    twins.each(FakeNode.catch_up)
    twins.check()
    for node in nodes:
        node.store.close()


@pytest.mark.parametrize("to_block", [3, 5])
def test_rewind__envelopes_of_a_node_beside__are_not_counted_and_stay(
    twins: Twins, to_block: int
) -> None:
    def back(node: FakeNode) -> Any:
        plan = plan_rewind(node.store, to_block, below_final=True, endpoint=twins.chain.endpoint)
        return plan, rewind(node.store, plan)

    twins.each(back)

    twins.check()
    twins.each(FakeNode.catch_up)
    twins.check()


def test_export__envelopes_of_a_node_beside__has_the_same_bytes(
    twins: Twins, tmp_path: Path
) -> None:
    twins.each(lambda node: exported(node, tmp_path / f"{id(node)}"))


def test_verify__envelopes_of_a_node_beside__finds_no_difference(twins: Twins) -> None:
    found, differences = twins.each(verified)

    assert (found.envelopes, found.quarantined, differences) == (3, 1, [])


def test_status__envelopes_of_a_node_beside__counts_the_chain_s(twins: Twins) -> None:
    found = twins.each(status)

    assert (found["envelopes"], found["envelopes_final"], found["envelopes_soft"]) == (3, 1, 2)


def test_history__sequence_id_that_a_node_has_too__is_the_chain_s(twins: Twins) -> None:
    history = twins.each(lambda node: read_history(node.store, 0, 2))

    assert history.current is not None
    assert not twins.each(lambda node: read_history(node.store, OWN, 5)).is_known


def test_step__at_the_head__writes_nothing(twins: Twins) -> None:
    assert isinstance(twins.each(FakeNode.step), Idle)

    twins.check()

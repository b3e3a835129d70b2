"""Blocks that were stored without a proof, proved later: the envelopes stay byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import update

from chainkit.chain import EndpointPool
from chainkit.errors import Unconfirmed
from chainkit_indexer.inspection.status import as_json, as_text, read_status
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.provenance import extend_runs, read_runs
from chainkit_indexer.types import Provenance, ProvenanceRun, RolledBack
from chainkit_indexer.verification.page_comparison import Difference
from chainkit_indexer.verification.prove import Proved, prove_runs, unproved_runs
from support.chains.fake_chain import FIRST_BLOCK, FakeChain, Post, malformed
from support.indexer.fake_node import FakeNode

LAST = FIRST_BLOCK + 5


@dataclass
class Heard:
    """Differences and progress of a proof; it ends after so many pages."""

    pages: int = 100
    differences: list[Difference] = field(default_factory=list)
    blocks: int = 0

    def differs(self, difference: Difference) -> None:
        self.differences.append(difference)

    def compared(self, blocks: int) -> None:
        self.blocks += blocks
        self.pages -= 1
        if not self.pages:
            raise KeyboardInterrupt


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    """A node of an endpoint that offered no receipts when it followed, and offers them now."""
    chain = FakeChain()
    chain.mine([Post("a")], [], [Post("b"), malformed("c")], [], [Post("d")], [])
    node = FakeNode(chain, tmp_path / "node.db")
    node.catch_up_without_receipts(page_blocks=2)
    yield node
    node.store.close()


def runs_of(node: FakeNode) -> list[ProvenanceRun]:
    with node.store.reading() as connection:
        return list(read_runs(connection))


def prove(node: FakeNode, heard: Heard, pool: EndpointPool | None = None) -> Proved:
    return prove_runs(
        pool or EndpointPool([node.chain.endpoint]),
        node.store,
        node.chain.deployment,
        unproved_runs(node.store),
        heard,
        page_blocks=2,
    )


def test_prove__one_endpoints_word__becomes_a_proof_and_no_envelope_changes(
    node: FakeNode,
) -> None:
    assert runs_of(node) == [ProvenanceRun(FIRST_BLOCK, LAST, Provenance.ONE_ENDPOINT)]
    before = node.rows(schema.envelopes), node.rows(schema.quarantine)

    found = prove(node, heard := Heard())

    assert found == Proved(receipts=6, second_endpoint=0, differences=0)
    assert (heard.blocks, heard.differences) == (6, [])
    assert runs_of(node) == [ProvenanceRun(FIRST_BLOCK, LAST, Provenance.RECEIPTS)]
    assert (node.rows(schema.envelopes), node.rows(schema.quarantine)) == before
    assert unproved_runs(node.store) == ()


def test_prove__interrupted__goes_on_where_it_was(node: FakeNode) -> None:
    with pytest.raises(KeyboardInterrupt):
        prove(node, Heard(pages=2))
    [left] = unproved_runs(node.store)
    assert (left.first_block, left.last_block) == (FIRST_BLOCK + 4, LAST)

    assert prove(node, Heard()).receipts == 2
    assert len(runs_of(node)) == 1


def test_prove__row_that_is_not_the_chains__stays_unproved_and_is_named(node: FakeNode) -> None:
    second = schema.envelopes.c.sequence_id == 2
    with node.store.writing() as connection:
        connection.execute(update(schema.envelopes).where(second).values(topic=b"\x00other"))

    found = prove(node, heard := Heard())

    assert found.differences == 1
    assert "envelope 2 of originator 0: expected topic" in str(heard.differences[0])
    [left] = unproved_runs(node.store)
    assert left.first_block <= FIRST_BLOCK + 2 <= left.last_block


def test_prove__still_no_receipts__says_why(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.chain.offers_receipts = False
    monkeypatch.setattr("chainkit_indexer.verification.verify._PATIENCE_SECONDS", 0.0)

    with pytest.raises(Unconfirmed, match="no receipts"):
        prove(node, Heard())

    assert len(unproved_runs(node.store)) == 1


def test_prove__blocks_without_payloads__need_a_later_block_that_is_stored(
    node: FakeNode,
) -> None:
    # Two blocks end the run that have no payload, and only the next one's hash is stored.
    node.chain.mine([], [], [Post("e")])
    run = ProvenanceRun(FIRST_BLOCK, LAST + 2, Provenance.ONE_ENDPOINT)
    node.catch_up()
    with node.store.writing() as connection:
        connection.execute(schema.provenance.delete())
        extend_runs(connection, run)
        extend_runs(connection, ProvenanceRun(LAST + 3, LAST + 3, Provenance.RECEIPTS))
        connection.execute(schema.blocks.delete().where(schema.blocks.c.number < LAST + 3))
    honest = list(node.chain.blocks)
    place = LAST + 2
    node.chain.rewind(2)
    node.chain.salt += 1
    node.chain.mine([], [Post("e")])
    assert node.chain.blocks[place].hash != honest[place].hash

    found = prove(node, heard := Heard())

    # The last block of the run belongs to another branch, as the payload after it shows.
    assert found.differences and heard.differences
    assert [left.last_block for left in unproved_runs(node.store)] == [place]
    node.chain.blocks = honest
    assert prove(node, Heard()).differences == 0
    assert runs_of(node) == [ProvenanceRun(FIRST_BLOCK, LAST + 3, Provenance.RECEIPTS)]


def test_runs__blocks_taken_back__end_at_the_cursor(node: FakeNode) -> None:
    node.chain.fork(2, [], [Post("x")])

    assert isinstance(node.step(), RolledBack)

    assert runs_of(node) == [ProvenanceRun(FIRST_BLOCK, LAST - 2, Provenance.ONE_ENDPOINT)]


def test_status__blocks_by_one_endpoint__says_how_many(node: FakeNode) -> None:
    with pytest.raises(KeyboardInterrupt):
        prove(node, Heard(pages=1))

    status = read_status(node.store)

    assert as_json(status)["blocks_established"] == {"receipts": 2, "one endpoint": 4}
    assert "established  2 blocks proved by their receipts\n" in as_text(status)
    assert "             4 blocks by one endpoint, not proved\n" in as_text(status)

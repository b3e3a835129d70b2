from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import delete
from sqlalchemy import update as update_rows

from chainkit.chain import EndpointPool
from chainkit.errors import ChainkitError, ReorgTooDeep, StoreError, WrongChain
from chainkit_indexer.cli import index
from chainkit_indexer.inspection.status import as_json, as_text, read_status
from chainkit_indexer.rewind import plan_rewind, rewind
from chainkit_indexer.storage import schema
from chainkit_indexer.types import Advanced
from support.chains.fake_chain import Block, FakeChain, Post
from support.indexer.fake_node import FakeNode
from support.indexer.six_blocks import FINALITY, A, B, C, D, E, F

pytest_plugins = ["support.indexer.node_fixtures"]

SERVED = (schema.envelopes, schema.envelope_logs, schema.quarantine, schema.cursor)


def final_block(node: FakeNode) -> int:
    return node.store.final_block()


def test_rewind__to_a_known_block__reads_the_rest_again_and_ends_as_before(
    node: FakeNode,
) -> None:
    before = [node.rows(table) for table in SERVED]

    plan = plan_rewind(node.store, 6)
    reorg_id = rewind(node.store, plan)

    assert (reorg_id, plan.depth, plan.envelopes, plan.quarantined) == (1, 2, 2, 0)
    assert node.journal() == [(1, 5, "dropped", None), (1, 6, "dropped", None)]
    assert [row[1] for row in node.rows(schema.envelopes)] == [1, 2, 4]
    assert isinstance(node.step(), Advanced)
    assert [node.rows(table) for table in SERVED] == before
    assert node.journal() == [(1, 5, "kept", None), (1, 6, "kept", None)]


def test_rewind__planned_only__changes_nothing(node: FakeNode) -> None:
    before = node.content()

    plan_rewind(node.store, 6)
    plan_rewind(node.store, 3, below_final=True, endpoint=node.chain.endpoint)

    assert node.content() == before


def test_rewind__below_the_final_block_without_being_told__is_refused(node: FakeNode) -> None:
    assert final_block(node) == 6

    with pytest.raises(StoreError, match=r"from the final block 6 on, got 5 .*--below-final"):
        plan_rewind(node.store, 5)


def test_rewind__below_the_final_block__needs_the_chain(node: FakeNode) -> None:
    with pytest.raises(ChainkitError, match="expected --rpc URL, got none for block 5"):
        plan_rewind(node.store, 5, below_final=True)


@pytest.mark.parametrize(
    ("to_block", "envelopes", "quarantined"), [(5, 3, 0), (4, 3, 0), (3, 4, 1), (2, 5, 1)]
)
def test_rewind__below_the_final_block__reads_the_rest_again_and_ends_as_before(
    node: FakeNode, to_block: int, envelopes: int, quarantined: int
) -> None:
    before = [node.rows(table) for table in SERVED]

    plan = plan_rewind(node.store, to_block, below_final=True, endpoint=node.chain.endpoint)
    rewind(node.store, plan)

    assert (plan.envelopes, plan.quarantined) == (envelopes, quarantined)
    assert final_block(node) == plan.target.header.number <= to_block
    node.catch_up()
    assert [node.rows(table) for table in SERVED] == before
    assert {outcome for _, _, outcome, _ in node.journal()} == {"kept"}


@pytest.mark.parametrize(
    ("to_block", "target", "blocks"),
    [(6, 6, None), (5, 4, "block 5"), (4, 4, None), (2, 2, None)],
)
def test_plan_rewind__to_a_block_without_payloads__says_why_it_goes_further(
    node: FakeNode, to_block: int, target: int, blocks: str | None
) -> None:
    plan = plan_rewind(node.store, to_block, below_final=True, endpoint=node.chain.endpoint)

    reason = blocks and f"nothing is stored of {blocks}, where the chain may hold payloads"
    assert (plan.target.header.number, plan.reason) == (target, reason)


@pytest.mark.parametrize("as_json", [True, False])
def test_run_rewind__further_than_asked__prints_the_reason(
    node: FakeNode, as_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = EndpointPool([node.chain.endpoint])
    monkeypatch.setattr("chainkit_indexer.cli.repair.connect_to_chain_of", lambda *_: pool)
    node.chain.mine(*[[]] * 5, [A])
    node.catch_up()
    arguments = ["rewind", "--below-final", "--to-block", "11", "--database", str(node.path)]
    options = ["--rpc", "http://fake", *(["--json"] if as_json else [])]

    result = CliRunner().invoke(index, [*arguments, *options])

    assert "nothing is stored of blocks 9 to 11, where the chain may hold" in result.output
    assert ('"to_block": 11' if as_json else "because      nothing") in result.output


def test_rewind__after_a_reorg_of_what_was_final__lets_the_indexer_go_on(node: FakeNode) -> None:
    node.chain.fork(4, [Post("x")], [], [E], [], [])
    with pytest.raises(ReorgTooDeep, match="chainkit index rewind --below-final --to-block 5"):
        node.step()

    rewind(node.store, plan_rewind(node.store, 4, True, node.chain.endpoint))
    node.catch_up()

    clean = FakeNode(node.chain, node.path.with_name("clean.db"), FINALITY)
    clean.catch_up()
    assert [node.rows(table) for table in SERVED] == [clean.rows(table) for table in SERVED]
    assert node.journal() == [
        (1, 4, "dropped", None),
        (1, 5, "kept", None),
        (1, 6, "dropped", None),
    ]
    clean.store.close()


@pytest.mark.parametrize("to_block", [5, 4])
def test_rewind__to_a_block_above_the_fork__is_refused_and_says_how_far(
    node: FakeNode, to_block: int
) -> None:
    node.chain.fork(5, [Post("x")], [D], [E], [F], [])

    with pytest.raises(StoreError) as caught:
        plan_rewind(node.store, to_block, True, node.chain.endpoint)

    assert "expected a block up to 3, got " in str(caught.value)


def test_rewind__chain_holds_payloads_where_none_are_stored__goes_below_them(
    node: FakeNode,
) -> None:
    # Block 5 held nothing, and holds a payload on the chain that is right.
    node.chain.fork(4, [Post("new")], [D], [E], [F], [])

    plan = plan_rewind(node.store, 5, True, node.chain.endpoint)
    rewind(node.store, plan)

    assert plan.target.header.hash == node.chain.blocks[4].hash
    node.catch_up()
    clean = FakeNode(node.chain, node.path.with_name("clean.db"), FINALITY)
    clean.catch_up()
    assert [node.rows(table) for table in SERVED] == [clean.rows(table) for table in SERVED]
    clean.store.close()


def test_rewind__endpoint_of_another_chain__is_refused(node: FakeNode) -> None:
    other = FakeChain()
    other.blocks[0] = Block.of(0, bytes(32), (), 9, ())

    with pytest.raises(WrongChain, match="block 0 at fake chain"):
        plan_rewind(node.store, 5, True, other.endpoint)


@pytest.mark.parametrize("to_block", [1, 9])
def test_rewind__block_that_is_not_below_the_cursor_or_below_the_contracts__is_refused(
    node: FakeNode, to_block: int
) -> None:
    with pytest.raises(StoreError, match="a block from 2 to 7, below the cursor"):
        plan_rewind(node.store, to_block, True, node.chain.endpoint)


@pytest.mark.parametrize("to_block", [1, 2, 3])
def test_rewind__nothing_left_to_take_back__says_so(node: FakeNode, to_block: int) -> None:
    rewind(node.store, plan_rewind(node.store, 2, True, node.chain.endpoint))

    with pytest.raises(StoreError, match=r"got none \(nothing above block 2 is stored\)"):
        plan_rewind(node.store, to_block, True, node.chain.endpoint)


def test_rewind__to_the_cursor_itself__says_that_nothing_is_above(node: FakeNode) -> None:
    with pytest.raises(StoreError, match=r"got none \(nothing above block 8 is stored\)"):
        plan_rewind(node.store, 8)


def test_rewind__nothing_indexed__says_so(tmp_path: Path) -> None:
    node = FakeNode(FakeChain(), tmp_path / "node.db")

    with pytest.raises(StoreError, match="expected an indexed block, got none yet"):
        plan_rewind(node.store, 0)

    node.store.close()


def test_rewind__cursor_moved_since_the_plan__changes_nothing(node: FakeNode) -> None:
    plan = plan_rewind(node.store, 6)
    node.chain.mine([Post("g")])
    node.catch_up()

    with node.refusing(StoreError, "expected the cursor at block 8"):
        rewind(node.store, plan)


@pytest.mark.parametrize("to_block", [7, 6])
@pytest.mark.parametrize("below_final", [False, True])
def test_rewind__known_blocks_claim_that_final_rows_lie_above__changes_nothing(
    node: FakeNode, to_block: int, below_final: bool
) -> None:
    with node.store.writing() as connection:
        connection.execute(update_rows(schema.blocks).values(sequence_ids='{"0": 1}'))
    plan = plan_rewind(node.store, to_block, below_final, node.chain.endpoint)

    with node.refusing(StoreError, r"above the final block 6 .*sequence id 2 "):
        rewind(node.store, plan)


def test_rewind__known_block_is_lost__takes_it_from_the_chain(node: FakeNode) -> None:
    before = [node.rows(table) for table in SERVED]
    with node.store.writing() as connection:
        connection.execute(delete(schema.blocks).where(schema.blocks.c.number == 7))

    rewind(node.store, plan_rewind(node.store, 7, endpoint=node.chain.endpoint))

    assert [row[0] for row in node.rows(schema.blocks)] == [6, 7]
    node.catch_up()
    assert [node.rows(table) for table in SERVED] == before


def test_rewind__lost_block_leads_below_the_final_one_without_being_told__changes_nothing(
    node: FakeNode,
) -> None:
    node.chain.mine([], [])
    node.catch_up()
    assert final_block(node) == 8
    node.chain.mine([])
    node.catch_up()
    with node.store.writing() as connection:
        connection.execute(delete(schema.blocks).where(schema.blocks.c.number == 9))
    plan = plan_rewind(node.store, 9, endpoint=node.chain.endpoint)

    with node.refusing(StoreError, r"above the final block 9 .*those above block 8"):
        rewind(node.store, plan)


def test_rewind__everything_taken_back_since_the_plan__changes_nothing(node: FakeNode) -> None:
    plan = plan_rewind(node.store, 6)
    with node.store.writing() as connection:
        connection.execute(delete(schema.cursor))

    with node.refusing(StoreError, r"expected the cursor at block 8 .*, got none"):
        rewind(node.store, plan)


def test_rewind__row_missing_below__names_the_command_that_tells(node: FakeNode) -> None:
    with node.store.writing() as connection:
        connection.execute(delete(schema.quarantine))
    node.chain.fork(6, [Post("x")], [B, C], [], [D], [E], [F])

    with pytest.raises(StoreError, match=r"envelope 3 of originator 0: .*chainkit index verify"):
        plan_rewind(node.store, 5, True, node.chain.endpoint)


def test_status__rewind_and_reorg__are_told_apart(node: FakeNode) -> None:
    rewind(node.store, plan_rewind(node.store, 6, below_final=True, endpoint=node.chain.endpoint))
    node.catch_up()
    node.chain.fork(1, [], [])
    node.catch_up()

    first, second = as_json(read_status(node.store))["reorgs"]

    assert (first["rewound_to"], second["rewound_to"]) == (6, None)
    text = as_text(read_status(node.store))
    assert "             1: rewind to 6, " in text
    assert "             2: 1 blocks above " in text

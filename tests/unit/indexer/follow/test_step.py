import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import ReorgTooDeep, StoreError
from chainkit.protocol.envelope import parse_originator_envelope, recover_node_key
from chainkit.types import TopicKind
from chainkit_indexer.finality import FinalityPolicy
from chainkit_indexer.follow import step as step_module
from chainkit_indexer.follow.build import PendingPage
from chainkit_indexer.storage import schema
from chainkit_indexer.types import Advanced, Idle, PageRows, RolledBack
from support.chain_times import chain_ns
from support.chains.fake_chain import FIRST_BLOCK, FakeChain, Post, malformed, update
from support.indexer.fake_node import KEY, FakeNode

A, B, C, D = Post("a"), update("b"), malformed("c"), Post("d")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    node = FakeNode(FakeChain(), tmp_path / "node.db")
    yield node
    node.store.close()


def test_step__new_blocks__commits_one_page(node: FakeNode) -> None:
    node.chain.mine([A], [B, C], [D])

    result = node.step(page_blocks=2)

    assert isinstance(result, Advanced)
    assert (result.from_block, result.cursor.number) == (FIRST_BLOCK, FIRST_BLOCK + 1)
    assert result.head.number == FIRST_BLOCK + 2
    assert (result.envelopes, result.quarantined) == (2, 1)


def test_step__at_the_head__is_idle(node: FakeNode) -> None:
    node.chain.mine([A])
    node.catch_up()
    before = node.content()

    result = node.step()

    assert result == Idle(result.head.reference, result.head, -1)
    assert node.content() == before


@pytest.mark.conforms("2.2.2-1", "2.2.3-2", "2.2.4-2")
def test_step__payloads_of_both_contracts__signs_what_the_chain_holds(node: FakeNode) -> None:
    node.chain.mine([A, B])
    node.catch_up()

    names = names_of(schema.chain_envelopes)
    rows = [dict(zip(names, row, strict=True)) for row in node.rows(schema.chain_envelopes)]
    block = node.chain.head
    assert [row["topic"] for row in rows] == [
        b"\x00" + A.identifier,
        b"\x02" + B.identifier,
    ]
    for post, row in zip((A, B), rows, strict=True):
        served = parse_originator_envelope(row["envelope"])
        assert served.client_envelope == post.payload
        assert served.transaction_hash == row["transaction_hash"] == post.transaction_hash
        assert served.sequence_id == row["sequence_id"]
        assert served.originator_ns == row["originator_ns"]
        assert served.originator_ns == chain_ns(block.timestamp, served.sequence_id)
        assert recover_node_key(served) == KEY.public_key


def test_step__group_id_of_16_bytes__is_served_under_the_topic_that_the_payload_names(
    node: FakeNode,
) -> None:
    node.chain.mine([Post("a", id_length=16), B])
    node.catch_up()

    assert [row[names_of(schema.envelopes).index("topic")]
            for row in node.rows(schema.envelopes)] == [
        b"\x00" + A.identifier[:16],
        b"\x02" + B.identifier,
    ]  # fmt: skip
    assert node.rows(schema.quarantine) == []


def test_step__group_id_of_16_bytes_seen_again_after_a_reorg__is_the_same_payload(
    node: FakeNode,
) -> None:
    short = Post("a", id_length=16)
    node.chain.mine([], [D, short])
    node.catch_up()
    node.chain.fork(1, [short], [D])
    node.catch_up()

    assert node.journal() == [(1, 1, "moved", 2), (1, 2, "moved", 1)]


def test_step__malformed_payload__is_quarantined_and_uses_its_sequence_id(
    node: FakeNode,
) -> None:
    node.chain.mine([A, C, D])
    node.catch_up()

    assert [row[1] for row in node.rows(schema.envelopes)] == [1, 3]
    [row] = node.rows(schema.quarantine)
    names = [column.name for column in schema.quarantine.columns]
    quarantined = dict(zip(names, row, strict=True))
    assert quarantined["sequence_id"] == 2
    assert quarantined["payload"] == C.payload
    assert quarantined["contract"] == node.chain.record.group_messages.address
    assert quarantined["reason"] == "not a ClientEnvelope"


@pytest.mark.conforms("2.1.2-1")
def test_step__fork__retracts_then_replays_with_outcomes(node: FakeNode) -> None:
    node.chain.mine([A], [B], [C, D])
    node.catch_up()
    node.chain.fork(2, [B], [D])

    result = node.step()

    assert isinstance(result, RolledBack)
    assert (result.reorg_id, result.depth, result.retracted) == (1, 2, 3)
    assert result.cursor.number == FIRST_BLOCK
    assert node.journal() == [(1, 2, "dropped", None), (1, 3, "dropped", None),
                              (1, 4, "dropped", None)]  # fmt: skip
    node.catch_up()
    assert node.journal() == [(1, 2, "kept", None), (1, 3, "dropped", None), (1, 4, "moved", 3)]


def test_step__retracted_twice__answers_the_entry_that_waits(node: FakeNode) -> None:
    node.chain.mine([A], [B])
    node.catch_up()
    node.chain.fork(1, [], [])
    node.catch_up()
    node.chain.mine([D], [B])
    node.catch_up()
    node.chain.fork(2, [B], [D])
    node.catch_up()

    assert node.journal() == [(1, 2, "moved", 3), (2, 2, "moved", 3), (2, 3, "moved", 2)]


def test_step__payload_posted_twice_by_one_transaction__pairs_each_once(node: FakeNode) -> None:
    twice = Post("twice", times=2)
    node.chain.mine([], [twice])
    node.catch_up()
    node.chain.fork(1, [A, D, twice])
    node.catch_up()

    assert node.journal() == [(1, 1, "moved", 3), (1, 2, "moved", 4)]


@pytest.mark.parametrize(
    ("times", "first"), [(1, ("dropped", None)), (2, ("moved", 3))], ids=["once", "twice"]
)
def test_step__payload_of_two_seen_again_at_the_second_id__keeps_the_second(
    node: FakeNode, times: int, first: tuple[str, int | None]
) -> None:
    node.chain.mine([], [Post("twice", times=2)])
    node.catch_up()
    node.chain.fork(1, [A, Post("twice", times=times)])
    node.catch_up()

    assert node.journal() == [(1, 1, *first), (1, 2, "kept", None)]


def test_step__payload_of_two_seen_again_at_the_first_id__moves_the_second(node: FakeNode) -> None:
    twice = Post("twice", times=2)
    node.chain.mine([A], [twice])
    node.catch_up()
    node.chain.fork(2, [twice], [])
    node.catch_up()

    assert node.journal() == [(1, 1, "dropped", None), (1, 2, "kept", None), (1, 3, "moved", 1)]


def test_step__same_payload_to_two_topics__are_told_apart(node: FakeNode) -> None:
    to_identity = Post("c", TopicKind.IDENTITY_UPDATE, is_valid=False)
    assert (to_identity.payload, to_identity.transaction_hash) == (C.payload, C.transaction_hash)
    node.chain.mine([], [C, to_identity])
    node.catch_up()
    node.chain.fork(1, [to_identity], [])
    node.catch_up()

    assert node.journal() == [(1, 1, "dropped", None), (1, 2, "moved", 1)]


def test_step__retracted_envelope__keeps_what_was_served(node: FakeNode) -> None:
    node.chain.mine([A], [B, C])
    node.catch_up()
    served = [row[names_of(schema.envelopes).index("envelope")]
              for row in node.rows(schema.envelopes)][1]  # fmt: skip
    node.chain.fork(1, [])
    node.catch_up()

    envelopes = [row[names_of(schema.journal).index("envelope")]
                 for row in node.rows(schema.journal)]  # fmt: skip
    assert envelopes == [served, None]


def names_of(table: Any) -> list[str]:
    return [column.name for column in table.columns]


def test_step__shortened_chain__waits_until_another_block_appears(node: FakeNode) -> None:
    node.chain.mine([A], [B], [D])
    node.catch_up()
    before = node.content()
    node.chain.rewind(2)

    result = node.step()

    assert isinstance(result, Idle)
    assert result.head.number == result.cursor.number - 2
    assert node.content() == before
    node.chain.fork(0, [D])
    rolled_back = node.step()
    assert isinstance(rolled_back, RolledBack)
    assert rolled_back.depth == 2
    assert rolled_back.cursor.number == FIRST_BLOCK


def test_step__reorg_of_the_whole_window__is_repaired(node: FakeNode) -> None:
    node.chain.mine(*[[]] * 30, [A])
    node.catch_up(page_blocks=7)
    node.chain.fork(node.window_blocks, *[[]] * 20)

    result = node.step()

    assert isinstance(result, RolledBack)
    assert result.depth == node.window_blocks


def test_step__reorg_below_the_window__changes_nothing(node: FakeNode) -> None:
    node.chain.mine(*[[]] * 30, [A])
    node.catch_up(page_blocks=7)
    before = node.content()
    node.chain.fork(node.window_blocks + 1, *[[]] * 20)

    with pytest.raises(
        ReorgTooDeep, match=r"the final block 17.*nothing was changed.*--to-block 16 "
    ):
        node.step()

    assert node.content() == before


@pytest.mark.parametrize("new_blocks", [0, 1])
def test_step__shorter_finality_than_before__counts_from_the_next_block_on(
    node: FakeNode, new_blocks: int
) -> None:
    node.chain.mine(*[[]] * 5, [A])
    node.catch_up()
    node.finality = FinalityPolicy(blocks=1)
    node.catch_up()
    node.chain.mine(*[[]] * new_blocks)
    node.catch_up()
    node.chain.fork(4, *[[]] * 4)

    if new_blocks:
        with pytest.raises(ReorgTooDeep, match="nothing was changed"):
            node.step()
    else:
        assert isinstance(node.step(), RolledBack)


def test_step__page_longer_than_window__keeps_the_window_only(node: FakeNode) -> None:
    node.chain.mine(*[[]] * 40)
    node.catch_up()

    numbers = [row[0] for row in node.rows(schema.blocks)]
    head = node.chain.head.number
    assert numbers == list(range(head - node.window_blocks, head + 1))


def test_step__killed_within_the_transaction__leaves_the_old_state(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.chain.mine([A])
    node.catch_up()
    node.chain.mine([B], [C])
    before = node.content()
    with monkeypatch.context() as patch:
        patch.setattr("chainkit_indexer.storage.store.move_cursor", _die)
        with pytest.raises(KeyboardInterrupt):
            node.step()
    assert node.content() == before

    node.catch_up()
    node.chain.fork(2, [C], [B])
    before = node.content()
    with monkeypatch.context() as patch:
        patch.setattr("chainkit_indexer.storage.store.move_cursor", _die)
        with pytest.raises(KeyboardInterrupt):
            node.step()
    assert node.content() == before


def _die(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_step__cursor_moved_by_another_process__changes_nothing(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.chain.mine([A])
    node.catch_up()
    node.chain.mine([B])

    def wait_long(page: PendingPage) -> PageRows:
        monkeypatch.undo()
        node.step()
        return page.rows()

    monkeypatch.setattr(PendingPage, "rows", wait_long)
    with pytest.raises(StoreError, match="another process writes to it"):
        node.step()

    assert [row[1] for row in node.rows(schema.envelopes)] == [1, 2]


def test_step__reorg_repaired_by_another_process__is_journalled_once(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.chain.mine([A], [B])
    node.catch_up()
    node.chain.fork(1, [D], [])
    find_ancestor = step_module.find_ancestor

    def find_slowly(*arguments: Any) -> Any:
        monkeypatch.undo()
        node.step()
        return find_ancestor(*arguments)

    monkeypatch.setattr(step_module, "find_ancestor", find_slowly)
    with pytest.raises(StoreError, match="another process writes to it"):
        node.step()

    assert len(node.rows(schema.reorgs)) == 1
    assert node.journal() == [(1, 2, "dropped", None)]
    node.catch_up()
    assert [row[1] for row in node.rows(schema.envelopes)] == [1, 2]


def test_step__invented_row_in_the_way__is_an_error_of_the_store(node: FakeNode) -> None:
    node.chain.mine([A])
    node.catch_up()
    with sqlite3.connect(node.path) as connection:
        columns = ", ".join(names_of(schema.envelopes)).replace("sequence_id", "sequence_id + 1")
        connection.execute(f"INSERT INTO envelopes SELECT {columns} FROM envelopes")
    connection.close()
    node.chain.mine([B])

    with pytest.raises(StoreError, match="UNIQUE"):
        node.step()

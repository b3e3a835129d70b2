import json
from pathlib import Path

import pytest
from sqlalchemy import insert

from chainkit.signatures import SigningKey
from chainkit.types import BlockReference
from chainkit_indexer.inspection.status import ReorgSummary, as_json, as_text, read_status
from chainkit_indexer.storage import schema
from support.chains.fake_chain import FIRST_BLOCK, FakeChain, Post, malformed, update
from support.indexer.fake_node import KEY, FakeNode

A, B, C, D = Post("a"), update("b"), malformed("c"), Post("d")


@pytest.fixture
def chain() -> FakeChain:
    chain = FakeChain()
    chain.mine([A], [B, C], [], [D])
    return chain


def test_status__after_a_reorg__counts_what_became_of_it(chain: FakeChain, tmp_path: Path) -> None:
    node = FakeNode(chain, tmp_path / "node.db", window_blocks=3)
    node.catch_up()
    old_head = BlockReference(chain.head.number, chain.head.hash)
    ancestor = BlockReference(chain.blocks[-4].number, chain.blocks[-4].hash)
    chain.fork(3, [B], [D, C])
    node.catch_up()

    status = read_status(node.store)

    assert status.cursor == BlockReference(chain.head.number, chain.head.hash)
    assert status.final_block == FIRST_BLOCK
    assert status.sequence_ids == {0: 4}
    assert (status.envelopes, status.soft_envelopes) == (3, 2)
    assert status.quarantined == {"not a ClientEnvelope": 1}
    assert status.reorgs == (
        ReorgSummary(1, ancestor, old_head, 3, None, kept=1, moved=2, dropped=0),
    )
    content = json.loads(json.dumps(as_json(status)))
    assert content["reorgs"][0]["moved"] == 2
    assert (content["envelopes_final"], content["envelopes_soft"]) == (1, 2)
    text = as_text(status)
    assert "1 kept, 2 moved, 0 dropped" in text
    assert "3: 1 final, 2 soft" in text
    assert "up to block 3" in text
    node.store.close()


def test_status__nothing_indexed__says_so(chain: FakeChain, tmp_path: Path) -> None:
    node = FakeNode(chain, tmp_path / "node.db")

    status = read_status(node.store)

    assert (status.cursor, status.final_block) == (None, None)
    assert (status.envelopes, status.soft_envelopes) == (0, 0)
    assert "before the first block" in as_text(status)
    node.store.close()


def test_status__more_reorgs_than_are_shown__counts_all_and_tells_the_newest(
    chain: FakeChain, tmp_path: Path
) -> None:
    node = FakeNode(chain, tmp_path / "node.db")
    node.catch_up()
    for number in range(12):
        chain.fork(1, [Post(f"fork {number}")])
        node.catch_up()

    status = read_status(node.store)

    assert status.reorg_count == 12
    assert [reorg.reorg_id for reorg in status.reorgs] == list(range(3, 13))
    node.store.close()


def test_status__registry_was_followed__says_who_this_node_is(
    chain: FakeChain, tmp_path: Path
) -> None:
    node = FakeNode(chain, tmp_path / "node.db")
    other = SigningKey(bytes([8]) * 32)
    place = {"block_hash": bytes(32), "transaction_hash": bytes(32), "timestamp": 0}
    updates = [(7, 100, KEY, True), (8, 200, other, True), (9, 200, other, False)]
    with node.store.writing() as connection:
        followed = {"address": bytes(20), "genesis_hash": bytes(32), "block_hash": b"\x02" * 32}
        cursor = insert(schema.registry_cursor)
        connection.execute(
            cursor.values(id=1, chain_id=1, first_block=2, block_number=12, **followed)
        )
        for number, node_id, key, is_enabled in updates:
            row = {"block_number": number, "node_id": node_id, "is_enabled": is_enabled}
            row |= {"signing_key": key.public_key, "http_address": b"", "log_index": 0}
            connection.execute(insert(schema.registry_updates).values(row | place))

    status = read_status(node.store)

    assert as_json(status)["registry"] == {
        "block": {"number": 12, "hash": "0x" + "02" * 32},
        "node_id": 100,
        "status": "enabled",
        "enabled_nodes": [100],
    }
    assert "node 100 is enabled; enabled nodes: 100 (at block 12)" in as_text(status)
    node.store.close()

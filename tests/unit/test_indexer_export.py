import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from chainkit.errors import StoreError
from chainkit.exports import read_manifest
from chainkit.signatures import SigningKey
from chainkit.types import BlockReference
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.export import write_export
from chainkit_indexer.status import ReorgSummary, as_json, as_text, read_status
from chainkit_indexer.step import step
from chainkit_indexer.store import Identity, Store
from chainkit_indexer.types import Idle
from support.fake_chain import FakeChain, Post, malformed, update

KEY = SigningKey(bytes([7]) * 32)
A, B, C, D = Post("a"), update("b"), malformed("c"), Post("d")


def indexed(chain: FakeChain, path: Path, page_blocks: int = 200) -> Store:
    store = Store.open(str(path), Identity.of(chain.record, KEY.public_key))
    settings = IndexerSettings(chain.record, page_blocks)
    while not isinstance(step(chain.endpoint, store, KEY, settings), Idle):
        pass
    return store


@pytest.fixture
def chain() -> FakeChain:
    chain = FakeChain()
    chain.mine([A], [B, C], [], [D])
    return chain


def test_export__pages_of_any_size__gives_the_same_bytes(chain: FakeChain, tmp_path: Path) -> None:
    for page_blocks in (1, 3, 200):
        store = indexed(chain, tmp_path / f"{page_blocks}.db", page_blocks)
        write_export(store, tmp_path / f"export-{page_blocks}")
        store.close()

    contents = [
        {path.name: path.read_bytes() for path in (tmp_path / f"export-{page_blocks}").iterdir()}
        for page_blocks in (1, 3, 200)
    ]
    assert contents[0] == contents[1] == contents[2]
    assert sorted(contents[0]) == [
        "envelopes.parquet",
        "journal.parquet",
        "manifest.json",
        "quarantine.parquet",
    ]


def test_export__more_rows_than_a_chunk__holds_all_in_order(tmp_path: Path) -> None:
    chain = FakeChain()
    chain.mine([Post("many", times=2500)])
    store = indexed(chain, tmp_path / "node.db")

    write_export(store, tmp_path / "export")

    ids = pq.read_table(tmp_path / "export" / "envelopes.parquet")["sequence_id"].to_pylist()
    assert ids == list(range(1, 2501))
    store.close()


def test_export__after_a_reorg__is_pinned_and_holds_the_journal(
    chain: FakeChain, tmp_path: Path
) -> None:
    store = indexed(chain, tmp_path / "node.db")
    store.close()
    chain.fork(3, [D], [])
    store = indexed(chain, tmp_path / "node.db")

    write_export(store, tmp_path / "export")

    manifest = read_manifest(tmp_path / "export", "node")
    assert manifest.to_block == chain.head.number
    assert manifest.to_block_hash == "0x" + chain.head.hash.hex()
    assert manifest.node_public_key == "0x" + KEY.public_key.hex()
    journal = pq.read_table(tmp_path / "export" / "journal.parquet").to_pylist()
    assert [(int(row["sequence_id"]), row["outcome"]) for row in journal] == [
        (2, "dropped"),
        (3, "dropped"),
        (4, "moved"),
    ]
    assert int(journal[2]["new_sequence_id"]) == 2
    assert journal[1]["envelope"] is None
    store.close()


def test_export__nothing_indexed__leaves_no_folder(chain: FakeChain, tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "node.db"), Identity.of(chain.record, KEY.public_key))

    with pytest.raises(StoreError, match="expected an indexed block, got none yet"):
        write_export(store, tmp_path / "export")

    assert not (tmp_path / "export").exists()
    store.close()


def test_status__after_a_reorg__counts_what_became_of_it(chain: FakeChain, tmp_path: Path) -> None:
    indexed(chain, tmp_path / "node.db").close()
    old_head = BlockReference(chain.head.number, chain.head.hash)
    ancestor = BlockReference(chain.blocks[-4].number, chain.blocks[-4].hash)
    chain.fork(3, [B], [D, C])
    store = indexed(chain, tmp_path / "node.db")

    status = read_status(store)

    assert status.cursor == BlockReference(chain.head.number, chain.head.hash)
    assert status.sequence_ids == {0: 4}
    assert status.envelopes == 3
    assert status.quarantined == {"not a ClientEnvelope": 1}
    assert status.reorgs == (ReorgSummary(1, ancestor, old_head, 3, kept=1, moved=2, dropped=0),)
    assert json.loads(json.dumps(as_json(status)))["reorgs"][0]["moved"] == 2
    assert "1 kept, 2 moved, 0 dropped" in as_text(status)
    store.close()


def test_status__nothing_indexed__says_so(chain: FakeChain, tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "node.db"), Identity.of(chain.record, KEY.public_key))

    status = read_status(store)

    assert status.cursor is None
    assert status.sequence_ids == {0: 0}
    assert "before the first block" in as_text(status)
    store.close()

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import insert

from chainkit.errors import StoreError
from chainkit.exports import Manifest, files_of
from chainkit_indexer.config import DEFAULT_RANGE_BLOCKS
from chainkit_indexer.export import write_export
from chainkit_indexer.rewind import plan_rewind, rewind
from chainkit_indexer.storage import schema
from support.audit.export_folders import contents_of
from support.chains.fake_chain import FakeChain, Post, malformed, update
from support.exports import read_manifest
from support.indexer.fake_node import KEY, FakeNode

A, B, C, D = Post("a"), update("b"), malformed("c"), Post("d")
FINALITY = 2
FIRST_RANGE = "envelopes/0000000003-0000000003.parquet"


@pytest.fixture
def chain() -> FakeChain:
    chain = FakeChain()
    chain.mine([A], [B, C], [], [D])
    return chain


@pytest.fixture
def node(chain: FakeChain, tmp_path: Path) -> Iterator[FakeNode]:
    node = caught_up(chain, tmp_path / "node.db")
    yield node
    node.store.close()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "export"


def caught_up(chain: FakeChain, path: Path, page_blocks: int = 200) -> FakeNode:
    node = FakeNode(chain, path, FINALITY)
    node.catch_up(page_blocks)
    return node


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    names = files_of(read_manifest(folder, "node"), table)
    return [row for name in names for row in pq.read_table(folder / name).to_pylist()]


def ids_of(folder: Path, table: str = "envelopes") -> list[int]:
    return [int(row["sequence_id"]) for row in rows_of(folder, table)]


def finished(manifest: Manifest) -> list[str]:
    return sorted(name for name, about in manifest.files.items() if about.get("finished"))


# ------------------------------------------------------------------ what an export holds


def test_export__pages_of_any_size__gives_the_same_bytes(chain: FakeChain, tmp_path: Path) -> None:
    contents = []
    for page_blocks in (1, 3, 200):
        node = caught_up(chain, tmp_path / f"{page_blocks}.db", page_blocks)
        write_export(node.store, tmp_path / f"export-{page_blocks}", range_blocks=2)
        node.store.close()
        contents.append(contents_of(tmp_path / f"export-{page_blocks}"))

    assert contents[0] == contents[1] == contents[2]


def test_export__ranges__are_cut_at_multiples_and_finished_up_to_the_final_block(
    node: FakeNode, out: Path
) -> None:
    manifest = write_export(node.store, out, range_blocks=2).manifest

    assert read_manifest(out, "node") == manifest
    assert (manifest.to_block, manifest.final_block) == (6, 4)
    ranges = [
        (about["from_block"], about["to_block"], about["finished"], about["rows"])
        for about in (manifest.files[name] for name in files_of(manifest, "envelopes"))
    ]
    assert ranges == [(3, 3, True, 1), (4, 5, False, 1), (6, 6, False, 1)]
    assert finished(manifest) == [FIRST_RANGE, FIRST_RANGE.replace("envelopes", "quarantine")]
    assert ids_of(out) == [1, 2, 4]
    assert ids_of(out, "quarantine") == [3]


def test_export__more_rows_than_a_chunk__holds_all_in_order(tmp_path: Path, out: Path) -> None:
    chain = FakeChain()
    chain.mine([Post("many", times=2500)])
    node = caught_up(chain, tmp_path / "node.db")

    write_export(node.store, out)

    assert ids_of(out) == list(range(1, 2501))
    node.store.close()


def test_export__after_a_reorg__is_pinned_and_holds_the_journal(
    node: FakeNode, chain: FakeChain, out: Path
) -> None:
    chain.fork(2, [B], [D])
    node.catch_up()

    write_export(node.store, out)

    manifest = read_manifest(out, "node")
    assert (manifest.to_block, manifest.last_reorg) == (chain.head.number, 1)
    assert manifest.to_block_hash == "0x" + chain.head.hash.hex()
    assert manifest.node_public_key == "0x" + KEY.public_key.hex()
    journal = rows_of(out, "journal")
    assert [(int(row["sequence_id"]), row["outcome"]) for row in journal] == [(4, "moved")]
    assert int(journal[0]["new_sequence_id"]) == 5


def test_export__registry_was_followed__holds_its_history_and_says_up_to_where(
    node: FakeNode, out: Path
) -> None:
    followed = {"address": b"\x09" * 20, "genesis_hash": b"\x01" * 32, "block_hash": b"\x02" * 32}
    update_ = {
        "block_number": 7,
        "log_index": 0,
        "block_hash": b"\x02" * 32,
        "transaction_hash": b"\x03" * 32,
        "timestamp": 1_700_000_000,
        "node_id": 100,
        "signing_key": KEY.public_key,
        "http_address": b"https://\xff",
        "is_enabled": True,
    }
    with node.store.writing() as connection:
        connection.execute(
            insert(schema.registry_cursor).values(
                id=1, chain_id=1, first_block=2, block_number=8, **followed
            )
        )
        connection.execute(insert(schema.registry_updates).values(update_))

    write_export(node.store, out)

    assert rows_of(out, "registry_updates") == [update_]
    assert read_manifest(out, "node").registry == {
        "chain_id": 1,
        "address": "0x" + "09" * 20,
        "block_number": 8,
        "block_hash": "0x" + "02" * 32,
    }


def test_export__nothing_indexed__leaves_no_folder(
    chain: FakeChain, tmp_path: Path, out: Path
) -> None:
    node = FakeNode(chain, tmp_path / "node.db")

    with pytest.raises(StoreError, match="expected an indexed block, got none yet"):
        write_export(node.store, out)

    assert not out.exists()
    node.store.close()


# ------------------------------------------------------------------ again, into the same folder


def test_export__again__keeps_what_is_finished_and_writes_the_rest(
    node: FakeNode, chain: FakeChain, out: Path
) -> None:
    write_export(node.store, out, range_blocks=2)
    before = contents_of(out)
    times = {name: (out / name).stat().st_mtime_ns for name in before}
    chain.mine([Post("e")], [Post("f")], [])
    node.catch_up()

    exported = write_export(node.store, out, range_blocks=2)

    assert exported.kept == (FIRST_RANGE, FIRST_RANGE.replace("envelopes", "quarantine"))
    assert all((out / name).stat().st_mtime_ns == times[name] for name in exported.kept)
    manifest = read_manifest(out, "node")
    assert len(finished(manifest)) == 6
    assert ids_of(out) == [1, 2, 4, 5, 6]
    assert set(contents_of(out)) == {"manifest.json", *manifest.files}


def test_export__in_steps_or_at_once__ends_in_the_same_bytes(
    node: FakeNode, chain: FakeChain, tmp_path: Path
) -> None:
    for name in "efgh":
        write_export(node.store, tmp_path / "steps", range_blocks=2)
        chain.mine([Post(name)])
        node.catch_up()
    for folder in ("steps", "once"):
        write_export(node.store, tmp_path / folder, range_blocks=2)

    assert contents_of(tmp_path / "steps") == contents_of(tmp_path / "once")


def test_export__nothing_new__changes_no_byte(node: FakeNode, out: Path) -> None:
    write_export(node.store, out)
    before = contents_of(out)

    write_export(node.store, out, check_digests=True)

    assert contents_of(out) == before


def test_export__same_height_after_a_reorg__replaces_the_unfinished_files(
    node: FakeNode, chain: FakeChain, out: Path
) -> None:
    write_export(node.store, out)
    before = read_manifest(out, "node")
    chain.fork(1, [Post("x")])
    node.catch_up()
    write_export(node.store, out)

    after = read_manifest(out, "node")

    assert before.to_block == after.to_block
    assert not set(files_of(before, "envelopes")) & set(files_of(after, "envelopes"))
    assert set(contents_of(out)) == {"manifest.json", *after.files}


def test_export__rewound_below_the_final_block__writes_those_ranges_anew(
    node: FakeNode, chain: FakeChain, out: Path
) -> None:
    chain.mine([Post("e")], [], [])
    node.catch_up()
    finished_before = finished(write_export(node.store, out, range_blocks=2).manifest)
    chain.fork(5, [Post("other")], [], [], [], [])
    rewind(node.store, plan_rewind(node.store, 4, below_final=True, endpoint=chain.endpoint))
    node.catch_up()

    exported = write_export(node.store, out, range_blocks=2)

    assert exported.kept == (FIRST_RANGE, FIRST_RANGE.replace("envelopes", "quarantine"))
    assert finished(exported.manifest) == finished_before
    assert ids_of(out) == [1, 2, 4]
    assert read_manifest(out, "node") == exported.manifest


def test_export__folder_ahead_of_the_database__is_refused_and_untouched(
    node: FakeNode, chain: FakeChain, tmp_path: Path, out: Path
) -> None:
    chain.mine([], [], [])
    older = caught_up(chain, tmp_path / "older.db")
    chain.mine([], [], [])
    node.catch_up()
    write_export(node.store, out, range_blocks=2)
    before = contents_of(out)

    with pytest.raises(StoreError, match="expected ranges finished up to block 7 at most"):
        write_export(older.store, out, range_blocks=2)

    assert contents_of(out) == before
    older.store.close()


def test_export__other_range_size__is_refused_and_untouched(node: FakeNode, out: Path) -> None:
    write_export(node.store, out, range_blocks=2)
    before = contents_of(out)

    with pytest.raises(StoreError) as caught:
        write_export(node.store, out, range_blocks=3)

    said = f"export {out}: expected --range-blocks 2 as it was made with, got 3"
    assert str(caught.value) == said
    assert contents_of(out) == before


def test_export__no_range_size_again__takes_the_folder_s(
    node: FakeNode, chain: FakeChain, tmp_path: Path, out: Path
) -> None:
    write_export(node.store, out, range_blocks=2)
    chain.mine([A], [B])
    node.catch_up()

    manifest = write_export(node.store, out).manifest

    assert manifest.range_blocks == 2
    write_export(node.store, tmp_path / "clean", range_blocks=2)
    assert contents_of(out) == contents_of(tmp_path / "clean")


def test_export__no_range_size_in_a_new_folder__takes_the_default(
    node: FakeNode, out: Path
) -> None:
    assert write_export(node.store, out).manifest.range_blocks == DEFAULT_RANGE_BLOCKS


@pytest.mark.parametrize("value", [None, 0])
def test_export__folder_whose_manifest_has_no_range_size__is_refused(
    node: FakeNode, out: Path, value: int | None
) -> None:
    write_export(node.store, out)
    path = out / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"range_blocks": value}))

    with pytest.raises(StoreError, match="manifest"):
        write_export(node.store, out)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("node_public_key", "0x04" + "11" * 64),
        ("genesis_hash", "0x" + "ee" * 32),
        ("chain_id", 1),
        ("contracts", {"GroupMessages": "0x" + "11" * 20}),
    ],
)
def test_export__folder_of_another_node_or_chain__is_refused_and_untouched(
    node: FakeNode, out: Path, field: str, value: Any
) -> None:
    write_export(node.store, out)
    path = out / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    before = contents_of(out)

    with pytest.raises(StoreError, match=f"expected {field} "):
        write_export(node.store, out)

    assert contents_of(out) == before


def test_export__folder_with_other_files__is_refused_and_untouched(
    node: FakeNode, out: Path
) -> None:
    out.mkdir()
    (out / "diary.txt").write_text("dear diary")

    with pytest.raises(StoreError, match="an export, or an empty folder, got diary"):
        write_export(node.store, out)

    assert set(contents_of(out)) == {"diary.txt"}


def test_export__finished_file_cut__is_seen_by_its_size(node: FakeNode, out: Path) -> None:
    write_export(node.store, out, range_blocks=2)
    (out / FIRST_RANGE).write_bytes((out / FIRST_RANGE).read_bytes()[:-1])

    with pytest.raises(StoreError, match=r"envelopes/.*: expected \d+ bytes, got \d+"):
        write_export(node.store, out, range_blocks=2)


def test_export__finished_file_of_the_same_size_changed__is_seen_by_its_digest(
    node: FakeNode, out: Path
) -> None:
    write_export(node.store, out, range_blocks=2)
    data = (out / FIRST_RANGE).read_bytes()
    (out / FIRST_RANGE).write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])

    write_export(node.store, out, range_blocks=2)

    with pytest.raises(StoreError, match="expected sha256"):
        write_export(node.store, out, range_blocks=2, check_digests=True)


def test_export__another_export_writes__is_refused(node: FakeNode, out: Path) -> None:
    write_export(node.store, out)
    descriptor = os.open(out, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)

    with pytest.raises(StoreError, match="a folder that nobody writes to, got another export"):
        write_export(node.store, out)

    os.close(descriptor)

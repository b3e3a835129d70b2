"""The folder grows, whoever is killed, and holds the same bytes in the end."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainkit.deployment import DeploymentRecord
from chainkit.errors import InconsistentAnswer, StoreError
from chainkit.exports import Manifest, files_of, load_manifest, read_manifest
from chainkit_jobs.chain_export.export import Exported, export_chain
from support.answered_chain import RECORD, AnsweredChain, hash_hex
from support.fake_endpoint import RpcError

POSTS = {3: 1, 4: 2, 9: 3, 17: 4, 18: 5}
HEAD = 19


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chainkit_jobs.chain_export.export.CHUNK_BLOCKS", 2)
    # Nobody pulls a plug here.
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


def chain_of(**changes: Any) -> AnsweredChain:
    return AnsweredChain(**{"posts": POSTS, "head": HEAD} | changes)


def export(
    chain: AnsweredChain,
    out: Path,
    end: int = HEAD,
    first_block: int = 1,
    range_blocks: int | None = 5,
    record: DeploymentRecord = RECORD,
    **options: Any,
) -> Exported:
    last = chain.reference(end)
    return export_chain(chain.endpoint(), record, first_block, last, out, range_blocks, **options)


def contents_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    manifest = read_manifest(folder, "chain")
    return [
        row
        for name in files_of(manifest, table)
        for row in pq.read_table(folder / name).to_pylist()
    ]


class KilledAfter:
    """Dies as a process would, once so many blocks were fetched."""

    def __init__(self, blocks: int) -> None:
        self.left = blocks

    def __call__(self, more: int, _: int) -> None:
        self.left -= more
        if self.left < 0:
            raise KeyboardInterrupt


# ------------------------------------------------------------------ one clean run


def test_export_chain__several_ranges__each_in_files_of_its_own(tmp_path: Path) -> None:
    exported = export(chain_of(), tmp_path / "chain")

    manifest = read_manifest(tmp_path / "chain", "chain")
    assert manifest == exported.manifest
    assert [name.split(".")[0] for name in files_of(manifest, "blocks")] == [
        "blocks/0000000001-0000000004",
        "blocks/0000000005-0000000009",
        "blocks/0000000010-0000000014",
        "blocks/0000000015-0000000019",
    ]
    assert all(file["finished"] for file in manifest.files.values())
    assert (exported.kept, exported.fetched_blocks) == ((), HEAD)
    assert [row["number"] for row in rows_of(tmp_path / "chain", "blocks")] == [*range(1, 20)]
    for table in ("transactions", "receipts", "logs"):
        assert [row["block_number"] for row in rows_of(tmp_path / "chain", table)] == [*POSTS]


def test_export_chain__last_range_is_not_full__bears_its_digest(tmp_path: Path) -> None:
    manifest = export(chain_of(), tmp_path, end=11).manifest

    partial = [name for name, file in manifest.files.items() if not file["finished"]]
    assert len(partial) == 4
    assert all(manifest.files[name]["sha256"].startswith(name.split(".")[1]) for name in partial)
    assert {name for name in contents_of(tmp_path) if name != "manifest.json"} == {*manifest.files}


@pytest.mark.parametrize("parallel", [1, 2, 16])
@pytest.mark.parametrize(
    "refused", [{}, {"eth_getBlockReceipts": RpcError(-32601, "method not found")}], ids=len
)
def test_export_chain__any_parallelism_and_way_to_the_receipts__gives_the_same_bytes(
    tmp_path: Path, parallel: int, refused: dict[str, RpcError]
) -> None:
    export(chain_of(), tmp_path / "clean")
    export(chain_of(refused=refused), tmp_path / "other", parallel=parallel)

    assert contents_of(tmp_path / "other") == contents_of(tmp_path / "clean")


def test_export_chain__requests_are_refused_down_to_one_call__gives_the_same_bytes(
    tmp_path: Path,
) -> None:
    class OneAtATime(AnsweredChain):
        def make_batch_request(self, batch_requests: Any) -> Any:
            if len(batch_requests) > 1:
                return {"error": {"code": -32600, "message": "batch too large"}}
            return super().make_batch_request(batch_requests)

    export(chain_of(), tmp_path / "clean")
    export(OneAtATime(posts=POSTS, head=HEAD), tmp_path / "other")

    assert contents_of(tmp_path / "other") == contents_of(tmp_path / "clean")


def test_export_chain__row_groups__end_with_the_chunk_that_fills_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainkit_jobs.chain_export.range_files._GROUP_ROWS", 3)

    export(chain_of(), tmp_path, range_blocks=50, parallel=3)

    [blocks] = files_of(read_manifest(tmp_path, "chain"), "blocks")
    groups = pq.ParquetFile(tmp_path / blocks).metadata
    assert [groups.row_group(n).num_rows for n in range(groups.num_row_groups)] == [4, 4, 4, 4, 3]


# ------------------------------------------------------------- killed and resumed


@settings(max_examples=20)
@given(
    head=st.integers(1, 18),
    size=st.integers(2, 8),
    parallel=st.integers(1, 4),
    posts=st.sets(st.integers(2, 18), max_size=6),
    kills=st.lists(st.tuples(st.integers(0, 18), st.integers(1, 18)), min_size=1, max_size=2),
)
def test_export_chain__killed_at_any_blocks__same_bytes_as_a_clean_run(
    head: int, size: int, parallel: int, posts: set[int], kills: list[tuple[int, int]]
) -> None:
    numbered = {block: sequence for sequence, block in enumerate(sorted(posts), 1)}
    chain = AnsweredChain({b: s for b, s in numbered.items() if b <= head}, head)
    with tempfile.TemporaryDirectory() as folder:
        clean, out = Path(folder, "clean"), Path(folder, "out")
        export(chain, clean, head, range_blocks=size)
        reached = 0
        for blocks, end in sorted(kills, key=lambda kill: kill[1]):
            if not reached <= end <= head:
                continue
            with suppress(KeyboardInterrupt):
                export(
                    chain,
                    out,
                    end,
                    range_blocks=size,
                    parallel=parallel,
                    progress=KilledAfter(blocks),
                )
            if out.exists():
                reached = read_manifest(out, "chain").to_block

        export(chain, out, head, range_blocks=size, parallel=parallel)

        assert contents_of(out) == contents_of(clean)


def test_export_chain__killed__leaves_a_valid_shorter_export(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        export(chain_of(), tmp_path, progress=KilledAfter(11))

    manifest = read_manifest(tmp_path, "chain")
    assert (manifest.from_block, manifest.to_block) == (1, 9)
    assert manifest.to_block_hash == hash_hex(1009)
    assert manifest.sequence_after == 3


def test_export_chain__killed__only_what_is_missing_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        export(chain_of(), tmp_path, progress=KilledAfter(11))
    chain = chain_of()

    exported = export(chain, tmp_path, range_blocks=None)

    calls = [call for request in chain.requests for call in request]
    heights = {int(params[0], 16) for method, params in calls if method == "eth_getBlockReceipts"}
    assert heights == {*range(10, 20)}
    assert (len(exported.kept), exported.fetched_blocks) == (8, 10)


def test_export_chain__longer_chain__partial_range_is_written_anew(tmp_path: Path) -> None:
    before = export(chain_of(), tmp_path / "grown", end=12).manifest
    export(chain_of(), tmp_path / "grown")
    export(chain_of(), tmp_path / "clean")

    assert contents_of(tmp_path / "grown") == contents_of(tmp_path / "clean")
    assert sum(not file["finished"] for file in before.files.values()) == 4


def test_export_chain__nothing_new__says_so_and_asks_for_no_block(tmp_path: Path) -> None:
    first = export(chain_of(), tmp_path)
    chain = chain_of()

    again = export(chain, tmp_path)

    assert (again.manifest, again.fetched_blocks) == (first.manifest, 0)
    assert again.kept == tuple(sorted(first.manifest.files))
    assert chain.requests == []


def test_export_chain__all_there_but_not_proved__is_proved_by_the_counter(tmp_path: Path) -> None:
    chain = chain_of(counters={9: RpcError(-32000, "missing trie node")})
    with pytest.raises(KeyboardInterrupt):
        export(chain, tmp_path, progress=KilledAfter(11))
    assert read_manifest(tmp_path, "chain").sequence_after is None

    exported = export(chain_of(), tmp_path, end=9)

    assert (exported.fetched_blocks, exported.manifest.sequence_after) == (0, 3)
    assert read_manifest(tmp_path, "chain") == exported.manifest


def test_export_chain__endpoint_fails_half_way__leaves_what_was_published(tmp_path: Path) -> None:
    chain = chain_of()
    whole = chain.answers["eth_getBlockByNumber"]
    chain.answers |= {
        "eth_getBlockByNumber": lambda number, is_whole=False: (
            RpcError(-32000, "no such luck") if int(number, 16) == 13 else whole(number, is_whole)
        )
    }

    with pytest.raises(Exception, match="no such luck"):
        export(chain, tmp_path)

    assert read_manifest(tmp_path, "chain").to_block == 9
    assert {*contents_of(tmp_path)} == {"manifest.json", *load_manifest(tmp_path, "chain").files}


# ----------------------------------------------------------------- another branch


@pytest.mark.parametrize("forked_from", [1, 4, 7, 10, 17, 19])
def test_export_chain__reorg_between_runs__drops_what_it_retracted_and_says_so(
    tmp_path: Path, forked_from: int
) -> None:
    export(chain_of(), tmp_path / "chain")
    branch = chain_of(forked_from=forked_from)
    told: list[str] = []

    exported = export(branch, tmp_path / "chain", tell=told.append)
    export(branch, tmp_path / "clean")

    first = max(forked_from // 5 * 5, 1)
    assert contents_of(tmp_path / "chain") == contents_of(tmp_path / "clean")
    assert exported.fetched_blocks == HEAD - first + 1
    assert len(told) == 1
    assert f"fetching block {first} and all above again" in told[0]


def test_export_chain__reorg_of_the_partial_range_only__keeps_all_finished_ones(
    tmp_path: Path,
) -> None:
    export(chain_of(), tmp_path / "chain", end=18)
    branch = chain_of(forked_from=16)
    told: list[str] = []

    exported = export(branch, tmp_path / "chain", end=18, tell=told.append)
    export(branch, tmp_path / "clean", end=18)

    assert contents_of(tmp_path / "chain") == contents_of(tmp_path / "clean")
    assert (len(exported.kept), told) == (12, [])


def test_export_chain__killed_after_a_reorg__leaves_a_valid_export_and_goes_on(
    tmp_path: Path,
) -> None:
    export(chain_of(), tmp_path / "chain")
    branch = chain_of(forked_from=7)

    with pytest.raises(KeyboardInterrupt):
        export(branch, tmp_path / "chain", progress=KilledAfter(7))

    manifest = read_manifest(tmp_path / "chain", "chain")
    assert (manifest.to_block, manifest.to_block_hash) == (9, hash_hex(2009))
    export(branch, tmp_path / "chain")
    export(branch, tmp_path / "clean")
    assert contents_of(tmp_path / "chain") == contents_of(tmp_path / "clean")


class Reorganised(AnsweredChain):
    """Goes over to another branch after so many answers to requests for blocks."""

    def __init__(self, forked_from: int, after: int) -> None:
        super().__init__(POSTS, HEAD)
        self._left = after
        self._forked_from = forked_from

    def block_at(self, height: str, is_whole: bool = False) -> Any:
        self._left -= 1
        if self._left < 0:
            self.forked_from = self._forked_from
        return super().block_at(height, is_whole)


@pytest.mark.parametrize("forked_from", [2, 6, 12, 19])
@pytest.mark.parametrize("after", [3, 9, 20])
def test_export_chain__reorg_meanwhile__is_refused_and_the_next_run_mends_it(
    tmp_path: Path, forked_from: int, after: int
) -> None:
    chain = Reorganised(forked_from, after)

    with pytest.raises(InconsistentAnswer):
        export(chain, tmp_path / "chain", parallel=1)

    export(chain_of(forked_from=forked_from), tmp_path / "chain")
    export(chain_of(forked_from=forked_from), tmp_path / "clean")
    assert contents_of(tmp_path / "chain") == contents_of(tmp_path / "clean")


# ---------------------------------------------------------------- another export


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "ranges": ({"range_blocks": 7}, "expected --range-blocks 5 as it was made with, got 7"),
    "first block": ({"first_block": 2}, "expected from_block 2, got 1"),
    "shorter": ({"end": 12}, "expected none above block 12, the last to export, got 14 0x"),
}


@pytest.mark.parametrize(("options", "message"), OTHERS.values(), ids=OTHERS)
def test_export_chain__folder_of_another_export__is_refused_and_unchanged(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    export(chain_of(), tmp_path, end=14)
    before = contents_of(tmp_path)

    with pytest.raises(StoreError, match=message):
        export(chain_of(), tmp_path, **options)

    assert contents_of(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chain_id", 2),
        ("genesis_hash", hash_hex(7)),
        ("contracts", {"GroupMessages": "0x" + "66" * 20}),
        ("first_block", 0),
        ("first_payload_block", 3),
        ("source", "cryo"),
        ("source", None),
        ("range_blocks", None),
    ],
)
def test_export_chain__manifest_of_another_chain__is_refused_and_unchanged(
    tmp_path: Path, name: str, value: Any
) -> None:
    export(chain_of(), tmp_path, end=14)
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    before = contents_of(tmp_path)

    with pytest.raises(StoreError, match=name):
        export(chain_of(), tmp_path)

    assert contents_of(tmp_path) == before


def damaged_files(folder: Path, manifest: Manifest) -> Iterator[Path]:
    yield folder / files_of(manifest, "logs")[0]
    yield folder / files_of(manifest, "blocks")[-1]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("end", [14, HEAD], ids=["nothing new", "more"])
def test_export_chain__file_changed_its_size__is_refused_and_unchanged(
    tmp_path: Path, which: int, end: int
) -> None:
    manifest = export(chain_of(), tmp_path, end=14).manifest
    path = list(damaged_files(tmp_path, manifest))[which]
    path.write_bytes(path.read_bytes() + b"\0")
    before = contents_of(tmp_path)

    with pytest.raises(StoreError, match="bytes, got"):
        export(chain_of(), tmp_path, end=end)

    assert contents_of(tmp_path) == before


def test_export_chain__file_that_must_be_read_has_another_digest__is_refused(
    tmp_path: Path,
) -> None:
    manifest = export(chain_of(), tmp_path, end=12).manifest
    path = tmp_path / files_of(manifest, "logs")[1]
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)

    with pytest.raises(StoreError, match="sha256"):
        export(chain_of(), tmp_path)


def test_export_chain__other_files_in_the_folder__is_refused(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"")

    with pytest.raises(StoreError, match=r"an export, or an empty folder, got photo\.jpg"):
        export(chain_of(), tmp_path)

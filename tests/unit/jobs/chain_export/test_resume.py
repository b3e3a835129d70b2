"""The folder grows, whoever is killed, and holds the same bytes in the end."""

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainkit.exports import files_of, load_manifest
from support.audit.chain_export_runs import (
    HEAD,
    POSTS,
    KilledAfter,
    chain_of,
    export,
    rows_of,
)
from support.audit.export_folders import contents_of
from support.chains.answered_chain import AnsweredChain, hash_hex
from support.endpoints.fake_endpoint import RpcError
from support.exports import read_manifest

pytest_plugins = ["support.audit.chain_export_fixtures"]
pytestmark = pytest.mark.usefixtures("small_chunks")


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

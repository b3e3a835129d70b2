"""A folder with blocks of another branch is mended; one of another export is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import InconsistentAnswer, StoreError
from chainkit.exports import Manifest, files_of
from support.audit.chain_export_runs import (
    HEAD,
    POSTS,
    KilledAfter,
    chain_of,
    export,
)
from support.audit.export_folders import contents_of
from support.chains.answered_chain import AnsweredChain, hash_hex
from support.exports import read_manifest

pytest_plugins = ["support.audit.chain_export_fixtures"]
pytestmark = pytest.mark.usefixtures("small_chunks")


# ----------------------------------------------------------------- another branch


@pytest.mark.parametrize("forked_from", [1, 4, 7, 10, 17, 19])
def test_export_chain__reorg_between_runs__drops_what_it_retracted_and_says_so(
    tmp_path: Path, forked_from: int
) -> None:
    export(chain_of(), tmp_path / "chain")
    branch = chain_of(forked_from=forked_from)
    told: list[str] = []

    exported = export(branch, tmp_path / "chain", report=told.append)
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

    exported = export(branch, tmp_path / "chain", end=18, report=told.append)
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

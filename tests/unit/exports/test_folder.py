import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from chainkit.errors import StoreError
from chainkit.exports import ExportFolder, load_manifest
from chainkit_indexer.export import write_export
from support.audit.export_folders import contents_of
from support.chains.fake_chain import FakeChain, Post
from support.exports import read_manifest
from support.indexer.fake_node import FakeNode

FINALITY = 2


@pytest.fixture
def chain() -> FakeChain:
    chain = FakeChain()
    chain.mine([Post("a")], [Post("b")], [], [Post("d")])
    return chain


@pytest.fixture
def node(chain: FakeChain, tmp_path: Path) -> Iterator[FakeNode]:
    node = FakeNode(chain, tmp_path / "node.db", FINALITY)
    node.catch_up()
    yield node
    node.store.close()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "export"


MOVES = ("mkdir", "replace", "write_text", "unlink")


def die_at(monkeypatch: pytest.MonkeyPatch, method: str, call: int) -> list[int]:
    """Let a method of Path raise as if the process were killed there, at its n-th call."""
    calls = [0]
    original = getattr(Path, method)

    def patched(self: Path, *arguments: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    monkeypatch.setattr(Path, method, patched)
    # A killed process cleans nothing up, but its lock ends.
    monkeypatch.setattr(ExportFolder, "__exit__", lambda self, *_: os.close(self._descriptor))
    return calls


@pytest.mark.parametrize("method", MOVES)
def test_export__killed_at_any_move__leaves_the_last_export_and_goes_on(
    node: FakeNode, chain: FakeChain, tmp_path: Path, out: Path, method: str
) -> None:
    write_export(node.store, out, range_blocks=2)
    before = read_manifest(out, "node")
    chain.fork(1, [Post("x")], [Post("y")], [])
    node.catch_up()
    write_export(node.store, tmp_path / "clean", range_blocks=2)
    clean = contents_of(tmp_path / "clean")
    for call in range(1, 50):
        with pytest.MonkeyPatch.context() as patch:
            calls = die_at(patch, method, call)
            with suppress(KeyboardInterrupt):
                write_export(node.store, out, range_blocks=2)
        assert read_manifest(out, "node") in (before, load_manifest(tmp_path / "clean", "node"))
        if calls[0] < call:
            break

    write_export(node.store, out, range_blocks=2)

    assert call > 1
    assert contents_of(out) == clean


@pytest.mark.parametrize("method", MOVES[:3])
def test_export__first_one_killed__is_no_export_until_it_is_made_again(
    node: FakeNode, out: Path, method: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        die_at(patch, method, 2 if method != "write_text" else 1)
        with pytest.raises(KeyboardInterrupt):
            write_export(node.store, out)
    with pytest.raises(StoreError, match=r"a folder with manifest\.json"):
        read_manifest(out, "node")

    write_export(node.store, out)

    assert set(contents_of(out)) == {"manifest.json", *read_manifest(out, "node").files}


def test_export__disk_is_full__says_so_and_leaves_the_last_export(
    node: FakeNode, chain: FakeChain, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_export(node.store, out)
    before = contents_of(out)
    chain.mine([Post("e")])
    node.catch_up()

    def full_disk(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full_disk)

    with pytest.raises(StoreError, match="got No space left on device"):
        write_export(node.store, out)

    assert contents_of(out) == before

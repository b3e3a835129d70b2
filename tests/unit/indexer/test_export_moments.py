import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import StoreError, StoreUnavailable
from chainkit_indexer.export import write_export
from chainkit_indexer.storage.store import Store
from support.audit.export_folders import contents_of
from support.chains.fake_chain import FakeChain, Post
from support.indexer.fake_node import FakeNode

FINALITY = 2


@pytest.fixture
def chain() -> FakeChain:
    chain = FakeChain()
    chain.mine([Post("a")], [Post("b")], [], [Post("d")])
    return chain


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "export"


@pytest.fixture
def at_rest(chain: FakeChain, tmp_path: Path) -> Iterator[Store]:
    """A database that nobody writes, opened as the command opens it."""
    node = FakeNode(chain, tmp_path / "node.db", FINALITY)
    node.catch_up()
    node.store.close()
    store = Store.open_existing(str(tmp_path / "node.db"))
    yield store
    store.close()


@pytest.fixture
def node_at_work(chain: FakeChain, tmp_path: Path) -> Callable[[], None]:
    """Open the database to write, follow another block, and close it."""

    def work() -> None:
        chain.mine([Post("e")])
        node = FakeNode(chain, tmp_path / "node.db", FINALITY)
        node.catch_up()
        node.store.close()

    return work


def test_export__a_writer_comes_while_it_reads__publishes_nothing(
    at_rest: Store, node_at_work: Callable[[], None], out: Path
) -> None:
    write_export(at_rest, out, range_blocks=2)
    before = contents_of(out)
    node_at_work()
    expected = pytest.raises(StoreUnavailable, match="no writer while it is read")

    with expected:
        write_export(
            at_rest, out, range_blocks=2, progress=lambda done, files: done > 1 or node_at_work()
        )

    assert contents_of(out) == before


def test_export__a_writer_comes_while_the_first_is_written__leaves_no_folder(
    at_rest: Store, node_at_work: Callable[[], None], out: Path
) -> None:
    with pytest.raises(StoreUnavailable, match="no writer while it is read"):
        write_export(at_rest, out, progress=lambda done, files: done > 1 or node_at_work())

    assert not out.exists()


def test_export__power_fails_after_any_move__manifest_lists_only_what_is_on_the_disk(
    at_rest: Store, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsafe: set[Path] = set()
    listed: list[set[Path]] = []
    original_replace, original_sync = Path.replace, os.fsync

    def replace(self: Path, target: Path) -> Path:
        if target.name == "manifest.json":
            listed.append(set(unsafe))
        unsafe.add(target.parent)
        return original_replace(self, target)

    def sync(descriptor: int) -> None:
        unsafe.discard(Path(f"/proc/self/fd/{descriptor}").readlink())
        original_sync(descriptor)

    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(os, "fsync", sync)

    write_export(at_rest, out, range_blocks=2)

    assert listed == [set()]
    assert unsafe == set()


@pytest.mark.parametrize(("owner", "name"), [(fcntl, "flock"), (Path, "iterdir")])
def test_export__folder_that_cannot_be_taken__says_why(
    at_rest: Store, out: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    def fails(*_: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(owner, name, fails)

    with pytest.raises(StoreError, match="a folder that can be written, got Permission denied"):
        write_export(at_rest, out)

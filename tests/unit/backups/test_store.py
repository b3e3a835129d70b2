"""Files on disk: when they are served, when they are gone, and what a restart finds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chainkit.errors import ConfigurationError, StoreInUse
from chainkit.service.upload_grant import Grant
from chainkit_backups.store import Store
from chainkit_backups.types import DEFAULT_SECONDS, AlreadyUsed, Kind, Stored

BEGIN = 1_800_000_000.0
GRANT = Grant(bytes(16), int(BEGIN) + 600)


@dataclass
class Clock:
    now: float = BEGIN

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    store = Store.open(tmp_path / "files", clock)
    yield store
    store.close()


def keep(store: Store, data: bytes = b"data", grant: Grant | None = None) -> Stored:
    upload = store.begin(Kind.OPEN if grant is None else Kind.GRANTED, "192.0.2.1", grant)
    upload.write(data)
    upload.sync(BEGIN + DEFAULT_SECONDS)
    return upload.keep()


def on_disk(folder: Path) -> list[str]:
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.name != "lock"
    )


@pytest.mark.conforms("H24")
@pytest.mark.parametrize(("hours", "minutes", "is_there"), [(71, 59, True), (72, 0, False)])
def test_find__after_hours__is_there_until_72(
    store: Store, clock: Clock, hours: int, minutes: int, is_there: bool
) -> None:
    stored = keep(store)

    clock.now = BEGIN + hours * 3600 + minutes * 60

    assert (store.find(stored.id) is not None) is is_there
    assert (store.purge() == []) is is_there


def test_purge__expired_file__leaves_nothing_of_it(
    store: Store, clock: Clock, tmp_path: Path
) -> None:
    keep(store, grant=GRANT)
    clock.now = BEGIN + DEFAULT_SECONDS + 5
    assert store.overdue_seconds == 5

    [gone] = store.purge()

    assert (gone.size, gone.address, store.overdue_seconds) == (4, "192.0.2.1", 0)
    assert [path for path in on_disk(tmp_path / "files") if "/" in path] == []


def test_open__after_a_restart__finds_files_expiry_and_used_grants(
    store: Store, clock: Clock, tmp_path: Path
) -> None:
    kept = [keep(store), keep(store, b"granted", GRANT)]
    store.begin(Kind.OPEN, "192.0.2.1").write(b"unfinished")
    store.expire(kept[0], BEGIN + 60)
    store.close()

    again = Store.open(tmp_path / "files", clock)

    found = {each.id: (each.kind, each.size, each.expires_at, each.address) for each in again.files}
    assert found == {
        kept[0].id: (Kind.OPEN, 4, BEGIN + 60, ""),
        kept[1].id: (Kind.GRANTED, 7, BEGIN + DEFAULT_SECONDS, ""),
    }
    with pytest.raises(AlreadyUsed):
        again.begin(Kind.GRANTED, "192.0.2.1", GRANT)
    assert os.listdir(tmp_path / "files" / "incoming") == []


def test_keep__grant_used_meanwhile__keeps_one_file(store: Store) -> None:
    uploads = [store.begin(Kind.GRANTED, "192.0.2.1", GRANT) for _ in range(2)]
    for upload in uploads:
        upload.sync(BEGIN + 60)
    uploads[1].keep()

    with pytest.raises(AlreadyUsed):
        uploads[0].keep()
    uploads[0].drop()

    assert [each.id for each in store.files] == [uploads[1].stored.id]


def test_upload__dropped_while_it_is_written__writes_into_no_other_file(store: Store) -> None:
    dropped = store.begin(Kind.OPEN, "192.0.2.1")
    dropped.drop()
    # Takes the number of the closed descriptor.
    kept = store.begin(Kind.OPEN, "192.0.2.1")

    dropped.write(b"late")
    kept.sync(BEGIN + 60)

    with store.open_file(kept.keep()) as file:
        assert file.read() == b""


def test_expire__later_than_before__changes_nothing(store: Store) -> None:
    stored = keep(store)

    store.expire(stored, BEGIN + 2 * DEFAULT_SECONDS)

    assert stored.expires_at == BEGIN + DEFAULT_SECONDS


def test_files__of_others_accounts__cannot_be_read_by_them(store: Store, tmp_path: Path) -> None:
    keep(store)

    for path in (tmp_path / "files").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0


def test_open__folder_in_use_or_no_folder__is_refused(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StoreInUse, match="is served by another process"):
        Store.open(tmp_path / "files", Clock())
    with pytest.raises(ConfigurationError, match="expected a folder"):
        Store.open(tmp_path / "file", Clock())

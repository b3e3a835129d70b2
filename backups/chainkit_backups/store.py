"""The files on disk: written under another name, made durable, then named; never changed.

::

    lock             held by the process that serves the folder
    incoming/        uploads under way; emptied at the start
    open/, granted/  one file for each upload, by its id
    used/            an empty file for each used grant, by its id in hex

A file's time of modification is the moment at which the file expires: it needs no index, and
survives a restart. Ids that are asked for are looked up in memory, so that no text of a stranger
becomes a path. Addresses of uploaders are in memory only.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from threading import Lock, RLock
from typing import BinaryIO, Final, Self

from chainkit.errors import ConfigurationError, StoreError, StoreInUse
from chainkit.service.upload_grant import Grant
from chainkit_backups.types import AlreadyUsed, Kind, Stored

_ID_BYTES: Final = 16
"""128 bits of chance: an id is the only secret of a file's URL."""

_INCOMING: Final = "incoming"
_USED: Final = "used"
_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Store:
    """The folder of a service; for several threads."""

    def __init__(self, folder: Path, clock: Callable[[], float], lock: int) -> None:
        """Use ``open``."""
        self._folder = folder
        self._clock = clock
        self._lock = lock
        self._files: dict[str, Stored] = {}
        self._used: dict[str, float] = {}
        self._guard = RLock()

    @classmethod
    def open(cls, folder: Path, clock: Callable[[], float]) -> Self:
        """Take a folder, which is made where there is none, and forget unfinished uploads.

        ``clock`` gives seconds since 1970. Raises StoreInUse where another process serves the
        folder, and ConfigurationError where the folder cannot be used.
        """
        try:
            for each in (folder, *(folder / name for name in (*Kind, _INCOMING, _USED))):
                each.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
            store = cls(folder, clock, _locked(folder))
            for path in (folder / _INCOMING).iterdir():
                path.unlink()
            store._read()
        except OSError as error:
            subject, got = f"folder {folder}", error.strerror or error
            raise ConfigurationError(subject, "a folder of this account", got) from error
        return store

    def close(self) -> None:
        """Let another process serve the folder."""
        os.close(self._lock)

    @property
    def files(self) -> list[Stored]:
        """All files that are not purged yet."""
        with self._guard:
            return list(self._files.values())

    def count(self, kind: Kind) -> int:
        """Return how many files of a kind are kept."""
        return sum(each.kind is kind for each in self.files)

    def find(self, file_id: str) -> Stored | None:
        """Return a file by its id; None where the file is missing, or has expired."""
        found = self._files.get(file_id)
        return found if found is not None and self._clock() < found.expires_at else None

    def open_file(self, stored: Stored) -> BinaryIO:
        """Open a file's content. Raises FileNotFoundError where it was purged meanwhile."""
        descriptor = os.open(self._path(stored), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        return os.fdopen(descriptor, "rb")

    def begin(self, kind: Kind, address: str, grant: Grant | None = None) -> Upload:
        """Begin an upload. Raises AlreadyUsed where a grant's upload was made."""
        self._check_unused(grant)
        return Upload(self, Stored(secrets.token_urlsafe(_ID_BYTES), kind, 0, 0, address), grant)

    def expire(self, stored: Stored, at: float) -> None:
        """Let a file expire earlier, also for a process that starts later."""
        with self._guard:
            if stored.id in self._files and at < stored.expires_at:
                stored.expires_at = at
                _set_expiry(self._path(stored), at)

    def purge(self) -> list[Stored]:
        """Remove the files that have expired, and return them. Raises StoreError."""
        now, gone = self._clock(), []
        try:
            with self._guard:
                for each in [each for each in self._files.values() if each.expires_at <= now]:
                    self._path(each).unlink(missing_ok=True)
                    gone.append(self._files.pop(each.id))
                for name in [name for name, until in self._used.items() if until <= now]:
                    (self._folder / _USED / name).unlink(missing_ok=True)
                    del self._used[name]
        except OSError as error:
            raise StoreError("purge", "a removed file", error.strerror or error) from error
        return gone

    @property
    def overdue_seconds(self) -> float:
        """For how long a file has waited to be purged, at most."""
        now = self._clock()
        return max([0.0, *(now - each.expires_at for each in self.files)])

    def disk(self) -> tuple[int, int]:
        """Return the free bytes and all bytes of the folder's file system."""
        found = os.statvfs(self._folder)
        return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize

    # The steps of an Upload.

    def create(self, name: str) -> int:
        """Create an unfinished file, and return its descriptor."""
        return os.open(self._folder / _INCOMING / name, _NEW, _FILE_MODE)

    def drop(self, name: str) -> None:
        """Remove an unfinished file."""
        (self._folder / _INCOMING / name).unlink(missing_ok=True)

    def keep(self, stored: Stored, grant: Grant | None) -> None:
        """Give a finished file its name, and use its grant up. Raises AlreadyUsed."""
        with self._guard:
            self._check_unused(grant)
            if grant is not None:
                self._use(grant)
            (self._folder / _INCOMING / stored.id).rename(self._path(stored))
            _sync_folder(self._folder / stored.kind)
            self._files[stored.id] = stored

    def _use(self, grant: Grant) -> None:
        # Durable before the file has its name: a crash between both costs the uploader a new grant.
        path = self._folder / _USED / grant.id.hex()
        os.close(os.open(path, _NEW, _FILE_MODE))
        _set_expiry(path, grant.expires_at)
        _sync_folder(path.parent)
        self._used[path.name] = grant.expires_at

    def _check_unused(self, grant: Grant | None) -> None:
        if grant is not None and grant.id.hex() in self._used:
            raise AlreadyUsed("upload grant", "one that was not used", "one whose file is here")

    def _path(self, stored: Stored) -> Path:
        return self._folder / stored.kind / stored.id

    def _read(self) -> None:
        for kind in Kind:
            for path in (self._folder / kind).iterdir():
                status = path.stat(follow_symlinks=False)
                self._files[path.name] = Stored(path.name, kind, status.st_size, status.st_mtime)
        for path in (self._folder / _USED).iterdir():
            self._used[path.name] = path.stat(follow_symlinks=False).st_mtime


class Upload:
    """One arriving file; its methods block on the disk. ``drop`` after ``keep`` does nothing."""

    def __init__(self, store: Store, stored: Stored, grant: Grant | None) -> None:
        """Use ``Store.begin``."""
        self.stored = stored
        self._store = store
        self._grant = grant
        self._descriptor = store.create(stored.id)
        self._is_open = True
        # A descriptor that is closed while a thread writes may name another file by then.
        self._guard = Lock()

    def write(self, data: bytes) -> None:
        """Append bytes. Raises OSError."""
        view = memoryview(data)
        with self._guard:
            while view and self._is_open:
                view = view[os.write(self._descriptor, view) :]
        self.stored.size += len(data)

    def sync(self, expires_at: float) -> None:
        """Make the content and the moment of expiry durable. Raises OSError."""
        self.stored.expires_at = expires_at
        with self._guard:
            if self._is_open:
                _set_expiry(self._descriptor, expires_at)
                os.fsync(self._descriptor)

    def keep(self) -> Stored:
        """Keep the synced file under its id. Raises AlreadyUsed and OSError."""
        self._store.keep(self.stored, self._grant)
        self._close()
        return self.stored

    def drop(self) -> None:
        """Forget the upload, unless it was kept."""
        if self._is_open:
            self._close()
            self._store.drop(self.stored.id)

    def _close(self) -> None:
        with self._guard:
            self._is_open = False
            os.close(self._descriptor)


def _locked(folder: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder / "lock", flags, _FILE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise StoreInUse(f"folder {folder}", None, "is served by another process") from error
    return descriptor


def _set_expiry(place: Path | int, at: float) -> None:
    moment = int(at * 1e9)
    os.utime(place, ns=(moment, moment))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

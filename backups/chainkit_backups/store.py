"""The files of a service: their index in memory, uploads under way, and who may still upload.

::

    lock             held by the process that serves the folder
    incoming/        uploads under way; emptied at the start

Whole files go to a ``Place``: beside these in the folder, or into a bucket. Files are written
under another name, made durable, then named; never changed. Ids that are asked for are looked up in
memory, so that no text of a stranger becomes a path or a key. Addresses of uploaders are in memory
only.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock, RLock
from typing import Final, Self

from chainkit.errors import ConfigurationError, StoreError, StoreInUse
from chainkit.service.upload_grant import Grant
from chainkit_backups.folder import FILE_MODE, FOLDER_MODE, NEW, Folder, set_expiry
from chainkit_backups.place import Content, Place
from chainkit_backups.types import AlreadyUsed, Kind, Stored

_ID_BYTES: Final = 16
"""128 bits of chance: an id is the only secret of a file's URL."""

_INCOMING: Final = "incoming"


class Store:
    """The files of a service; for several threads."""

    def __init__(self, folder: Path, place: Place, clock: Callable[[], float], lock: int) -> None:
        """Use ``open``."""
        self._folder = folder
        self._place = place
        self._clock = clock
        self._lock = lock
        self._files: dict[str, Stored] = {}
        self._used: dict[str, float] = {}
        self._guard = RLock()

    @classmethod
    def open(
        cls,
        folder: Path,
        clock: Callable[[], float],
        connect: Callable[[], Place] | None = None,
    ) -> Self:
        """Take a folder, which is made where there is none, and forget unfinished uploads.

        ``clock`` gives seconds since 1970. ``connect`` opens the place of whole files; without it
        they are in the folder. Raises StoreInUse where another process serves the folder, and
        ConfigurationError where the folder or the place cannot be used.
        """
        try:
            for each in (folder, folder / _INCOMING):
                each.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            lock = _locked(folder)
            store = cls(folder, Folder(folder) if connect is None else connect(), clock, lock)
            for path in (folder / _INCOMING).iterdir():
                path.unlink()
            files, store._used = store._place.read()
            store._files = {each.id: each for each in files}
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

    def open_file(self, stored: Stored, begin: int = 0) -> Content:
        """Open a file's content from a byte on. Raises FileNotFoundError where it was purged."""
        return self._place.open(stored, begin)

    def begin(self, kind: Kind, address: str, grant: Grant | None = None) -> Upload:
        """Begin an upload. Raises AlreadyUsed where a grant's upload was made."""
        self._check_unused(grant)
        return Upload(self, Stored(secrets.token_urlsafe(_ID_BYTES), kind, 0, 0, address), grant)

    def expire(self, stored: Stored, at: float) -> None:
        """Let a file expire earlier, also for a process that starts later. Raises OSError."""
        with self._guard:
            if stored.id not in self._files or at >= stored.expires_at:
                return
            stored.expires_at = at
        self._place.expire(stored)

    def purge(self) -> list[Stored]:
        """Remove the files that have expired, and return them. Raises StoreError."""
        now, gone = self._clock(), []
        with self._guard:
            expired = [each for each in self._files.values() if each.expires_at <= now]
            ended = [each for each in self._used.items() if each[1] <= now]
        try:
            for stored in expired:
                self._place.remove(stored)
                gone.append(self._files.pop(stored.id))
            for grant_id, until in ended:
                self._place.forget(grant_id, until)
                del self._used[grant_id]
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
        return os.open(self._folder / _INCOMING / name, NEW, FILE_MODE)

    def drop(self, name: str) -> None:
        """Remove an unfinished file."""
        (self._folder / _INCOMING / name).unlink(missing_ok=True)

    def keep(self, stored: Stored, grant: Grant | None) -> None:
        """Give a finished file its place, and use its grant up. Raises AlreadyUsed and OSError."""
        if grant is not None:
            self._use(grant)
        try:
            self._place.keep(self._folder / _INCOMING / stored.id, stored)
        except BaseException:
            if grant is not None:
                self._give_back(grant)
            raise
        with self._guard:
            self._files[stored.id] = stored

    def _use(self, grant: Grant) -> None:
        # Durable before the file has its name: a crash between both costs the uploader a new grant.
        with self._guard:
            self._check_unused(grant)
            self._used[grant.id.hex()] = grant.expires_at
        try:
            self._place.use(grant)
        except OSError:
            del self._used[grant.id.hex()]
            raise

    def _give_back(self, grant: Grant) -> None:
        # A grant that stays used costs the uploader a new one.
        with suppress(OSError):
            self._place.forget(grant.id.hex(), grant.expires_at)
            del self._used[grant.id.hex()]

    def _check_unused(self, grant: Grant | None) -> None:
        if grant is not None and grant.id.hex() in self._used:
            raise AlreadyUsed("upload grant", "one that was not used", "one whose file is here")


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
                set_expiry(self._descriptor, expires_at)
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
    descriptor = os.open(folder / "lock", flags, FILE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise StoreInUse(f"folder {folder}", None, "is served by another process") from error
    return descriptor

"""Files on the disk: renamed into their place when they are whole and synced.

::

    open/, granted/  one file for each upload, by its id
    used/            an empty file for each used grant, by its id in hex

A file's time of modification is the moment at which the file expires: it needs no index, and
survives a restart.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Final

from chainkit.service.upload_grant import Grant
from chainkit_backups.types import Kind, Stored

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_USED: Final = "used"


class Folder:
    """A folder of this account, as ``Place``."""

    def __init__(self, folder: Path) -> None:
        """Take a folder, and make what is missing in it. Raises OSError."""
        self._folder = folder
        for name in (*Kind, _USED):
            (folder / name).mkdir(FOLDER_MODE, parents=True, exist_ok=True)

    def read(self) -> tuple[list[Stored], dict[str, float]]:
        """Return all kept files, and used grants."""
        files = []
        for kind in Kind:
            for path in (self._folder / kind).iterdir():
                status = path.stat(follow_symlinks=False)
                files.append(Stored(path.name, kind, status.st_size, status.st_mtime))
        used = (self._folder / _USED).iterdir()
        return files, {each.name: each.stat(follow_symlinks=False).st_mtime for each in used}

    def keep(self, arrived: Path, stored: Stored) -> None:
        """Give a finished file its name."""
        set_expiry(arrived, stored.expires_at)
        arrived.rename(self._path(stored))
        _sync_folder(self._folder / stored.kind)

    def open(self, stored: Stored, begin: int) -> BinaryIO:
        """Open a file from a byte on."""
        descriptor = os.open(self._path(stored), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        file = os.fdopen(descriptor, "rb")
        file.seek(begin)
        return file

    def expire(self, stored: Stored) -> None:
        """Write a file's earlier moment of expiry."""
        set_expiry(self._path(stored), stored.expires_at)

    def remove(self, stored: Stored) -> None:
        """Remove a file."""
        self._path(stored).unlink(missing_ok=True)

    def use(self, grant: Grant) -> None:
        """Store a used grant: durable before its file has a name."""
        path = self._folder / _USED / grant.id.hex()
        os.close(os.open(path, NEW, FILE_MODE))
        set_expiry(path, grant.expires_at)
        _sync_folder(path.parent)

    def forget(self, grant_id: str, until: float) -> None:
        """Remove a used grant."""
        (self._folder / _USED / grant_id).unlink(missing_ok=True)

    def _path(self, stored: Stored) -> Path:
        return self._folder / stored.kind / stored.id


def set_expiry(place: Path | int, at: float) -> None:
    """Write the moment of expiry, in seconds since 1970, as the time of modification."""
    moment = int(at * 1e9)
    os.utime(place, ns=(moment, moment))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

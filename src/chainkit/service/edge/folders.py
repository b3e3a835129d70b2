"""The folder of one process's files, and the end of folders whose processes were killed.

A process holds a lock on its folder for as long as it runs, also as Envoy's process. A folder gets
its name only once it is locked: a folder that has such a name and no lock belongs to no process,
and nobody looks at the numbers of processes, which are used again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "chainkit-edge-"
_UNLOCKED: Final = f".{PREFIX}"


def make_folder() -> Path:
    """Return a new folder, which this process locks for as long as it runs."""
    unlocked = Path(tempfile.mkdtemp(prefix=_UNLOCKED))
    descriptor = os.open(unlocked, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    # The lock is the descriptor's: Envoy's program takes it over.
    os.set_inheritable(descriptor, True)
    return unlocked.rename(unlocked.with_name(unlocked.name.removeprefix(".")))


def remove_left_folders() -> None:
    """Remove this user's folders whose processes have gone."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        # Somebody else's, no folder, or a living process's.
        with suppress(OSError):
            _remove_unlocked(path)


def _remove_unlocked(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)

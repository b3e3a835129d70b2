"""Files that only their owner may read, as real keystores and passwords are kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_OWNER_ONLY: Final = 0o600


def write_private(path: Path, text: str) -> None:
    """Write a file with mode 0600, also over one that other users may read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, _OWNER_ONLY)
        file.write(text)

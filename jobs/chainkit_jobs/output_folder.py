"""The folder that a job leaves its results in."""

from __future__ import annotations

from pathlib import Path

from chainkit.errors import StoreError


def check_free(directory: Path) -> None:
    """Raise StoreError if the output folder exists: a result is never written over another."""
    if directory.exists():
        raise StoreError(f"output {directory}", "a folder that does not exist yet", "one")

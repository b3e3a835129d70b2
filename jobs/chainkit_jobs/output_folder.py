"""The folder for a job's results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chainkit.documents.files import moved_into_place
from chainkit.errors import StoreError


def check_free(directory: Path) -> None:
    """Raise StoreError if the output folder exists: a result is never written over another."""
    if directory.exists():
        raise StoreError(f"output {directory}", None, "already exists")


@contextmanager
def new_folder(directory: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``directory`` that gets this name when all files are written.

    An error leaves no folder. Raises StoreError where ``directory`` exists or cannot be written.
    """
    check_free(directory)
    try:
        with moved_into_place(directory) as partial:
            partial.mkdir(parents=True)
            yield partial
    except OSError as error:
        subject = f"output {directory}"
        reason = error.strerror or error
        raise StoreError(subject, "a folder that can be written", reason) from error

"""Evidence in a folder that strangers filled: bundles, reports, and other files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from chainkit.errors import ConfigurationError
from chainkit.evidence.bundle import BUNDLE_NAME, FILE_NAMES, REPORTS_NAME

REPORT_SUFFIXES: Final = (".bin", ".pb")
"""How the name of a report's file ends."""

DEEPEST: Final = 16
"""Folders within folders that are looked into."""

GATHER_PAGE: Final = "gather.json"
"""The page of ``council gather`` in the folder itself: it describes nodes, and is no evidence."""

MOST_FILES: Final = 20_000
"""Entries that are looked at: more is no folder of evidence, but a wrong one."""

_BUNDLE_NAMES: Final = frozenset({BUNDLE_NAME, *FILE_NAMES, REPORTS_NAME})
"""Names of a bundle's files; any other file beside the bundle's page is separate evidence."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A bundle's folder, or a file with the name of a report's; its content was not read."""

    path: Path
    source: str
    """The piece's path within the folder; a stranger chose it."""
    is_bundle: bool
    size: int
    """Bytes to read."""


@dataclass(slots=True)
class EvidenceFiles:
    """The evidence in a folder, in the order of its paths."""

    pieces: list[Piece] = field(default_factory=list)
    others: dict[str, str] = field(default_factory=dict)
    """Why a path is not looked at."""


def find_evidence(directory: Path) -> EvidenceFiles:
    """Return the possible evidence in a folder, which may itself be a bundle. No link is followed.

    Raises ConfigurationError where there is no such folder, or it is empty, or holds too much.
    """
    subject, expected = f"evidence {directory}", "a folder of reports and bundles"
    if not directory.is_dir():
        raise ConfigurationError(subject, expected, "none")
    found = EvidenceFiles()
    for count, (entry, reason) in enumerate(_entries(directory, 0), start=1):
        if count > MOST_FILES:
            raise ConfigurationError(subject, f"up to {MOST_FILES} files", "more")
        source = os.path.relpath(entry, directory)
        if reason is None:
            found.pieces.append(_piece(entry, source))
        else:
            found.others[source] = reason
    if not found.pieces and not found.others:
        raise ConfigurationError(subject, expected, "an empty one")
    return found


def _entries(folder: Path, depth: int) -> Iterator[tuple[Path, str | None]]:
    """Yield each path of a report, with the reason why it is no evidence, or None."""
    is_bundle = os.path.lexists(folder / BUNDLE_NAME)
    if is_bundle:
        yield folder, None
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        yield folder, f"the folder cannot be read: {error.strerror}"
        return
    for entry in entries:
        path = folder / entry.name
        if is_bundle and entry.name in _BUNDLE_NAMES:
            continue
        if depth == 0 and entry.name == GATHER_PAGE and entry.is_file(follow_symlinks=False):
            continue
        if entry.is_symlink():
            yield path, "a link, which is not followed"
        elif entry.is_dir():
            if depth == DEEPEST:
                yield path, f"deeper than {DEEPEST} folders"
            else:
                yield from _entries(path, depth + 1)
        elif not entry.is_file():
            yield path, "no regular file"
        elif not entry.name.endswith(REPORT_SUFFIXES):
            yield path, "neither a bundle nor a report's file (*.pb, *.bin)"
        else:
            yield path, None


def _piece(path: Path, source: str) -> Piece:
    is_bundle = path.is_dir()
    files = [path / name for name in FILE_NAMES] if is_bundle else [path]
    return Piece(path, source, is_bundle, sum(map(_size, files)))


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0  # The reader of the file reports why it cannot be evidence.

"""Exports whose files are proved before a test reads them."""

from __future__ import annotations

from pathlib import Path

from chainkit.exports import Manifest, check_files, load_manifest


def read_manifest(directory: Path, kind: str) -> Manifest:
    """Read an export's manifest, and prove its files."""
    manifest = load_manifest(directory, kind)
    check_files(directory, manifest)
    return manifest

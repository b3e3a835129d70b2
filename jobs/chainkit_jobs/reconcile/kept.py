"""Finished audits, kept with their work: the same inputs give the same output, so it is copied."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chainkit import __version__
from chainkit.documents.files import moved_into_place
from chainkit.errors import StoreError
from chainkit_jobs.reconcile.inputs import Inputs
from chainkit_jobs.reconcile.scope import Options

_FOLDER = "audits"


class KeptAudits:
    """The finished audits in a work folder, each under a name that tells its inputs."""

    def __init__(self, work: Path) -> None:
        """Take the folder that ``--work`` names; it need not exist."""
        self._directory = work / _FOLDER

    def has(self, name: str) -> bool:
        """Tell whether an audit is kept."""
        return (self._directory / name).is_dir()

    def restore(self, name: str, out: Path) -> dict[str, Any]:
        """Copy a finished audit to ``out`` and return its summary.

        Raises StoreError where it cannot be copied.
        """
        _copy(self._directory / name, out)
        summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
        return summary

    def keep(self, name: str, out: Path) -> None:
        """Keep what an audit wrote to ``out``. Raises StoreError where it cannot be copied."""
        if not (self._directory / name).exists():
            _copy(out, self._directory / name)


def audit_name(inputs: Inputs, trusted_hash: bytes | None, options: Options) -> str:
    """Name an audit by all that its output depends on; manifests name the digests of all files."""
    content = {
        "version": __version__,
        "chain": inputs.chain.manifest_digest,
        "nodes": sorted([node_id or 0, export.manifest_digest] for node_id, export in inputs.nodes),
        "trust": None if trusted_hash is None else trusted_hash.hex(),
        "options": {name: value for name, value in asdict(options).items() if name != "work"},
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _copy(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with moved_into_place(target) as partial:
            shutil.copytree(source, partial)
    except OSError as error:
        subject = f"folder {target}"
        raise StoreError(subject, f"a copy of {source}", error.strerror or error) from error

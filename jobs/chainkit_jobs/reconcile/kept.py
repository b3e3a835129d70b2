"""Finished audits, kept with their work: the same inputs give the same output, which is copied."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chainkit import __version__
from chainkit.documents.fields import Fields, read_json
from chainkit.documents.files import moved_into_place
from chainkit.errors import ConfigurationError, StoreError
from chainkit.exports import check_digest, sha256_of
from chainkit_jobs.reconcile.conclusion import SUMMARY_FORMAT
from chainkit_jobs.reconcile.inputs import Inputs
from chainkit_jobs.reconcile.scope import Options

_FOLDER = "audits"
_SHA256 = re.compile("[0-9a-f]{64}")
_DIGESTS = "sha256.json"
"""The sha256 of each file of a kept audit, by the file's name: never copied out."""


class KeptAudits:
    """The finished audits in a work folder, each under a name that identifies its inputs."""

    def __init__(self, work: Path) -> None:
        """Take the folder of ``--work``, which need not exist."""
        self._directory = work / _FOLDER

    def has(self, name: str) -> bool:
        """Return whether an audit is kept, with unchanged files."""
        return self._digests(name) is not None

    def restore(self, name: str, out: Path) -> dict[str, Any]:
        """Copy a finished audit to ``out`` and return its summary.

        Raises StoreError where the audit cannot be copied.
        """
        _copy(self._directory / name, out, self._digests(name) or {})
        summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
        return summary

    def keep(self, name: str, out: Path) -> None:
        """Keep an audit's files from ``out``, and replace damaged ones.

        Raises StoreError where the files cannot be copied.
        """
        if not self.has(name):
            shutil.rmtree(self._directory / name, ignore_errors=True)
            digests = {path.name: sha256_of(path) for path in sorted(out.iterdir())}
            _copy(out, self._directory / name, digests, (_DIGESTS, json.dumps(digests)))

    def _digests(self, name: str) -> dict[str, str] | None:
        """Return the digests of a kept audit's files; None where none exist, or a file changed."""
        folder = self._directory / name
        try:
            digests = Fields(read_json(folder / _DIGESTS, "kept audit"), "kept audit")
            found = {
                each: digests.matching(each, _SHA256, "64 hex digits").group()
                for each in digests.names()
            }
            for each, digest in found.items():
                check_digest(folder / Path(each).name, digest)
        except (ConfigurationError, StoreError):
            return None
        return found if "summary.json" in found else None


def audit_name(inputs: Inputs, trusted_hash: bytes | None, options: Options) -> str:
    """Name an audit by all that its output depends on; manifests name the digests of all files.

    A node that was asked may have several exports: their order decides which one is compared with
    the chain, and findings name their folders.
    """
    is_asked = any(export.manifest.is_of_answers for _, export in inputs.nodes)
    content = {
        "version": __version__,
        "format": SUMMARY_FORMAT,
        "chain": inputs.chain.manifest_digest,
        "nodes": sorted([node_id or 0, export.manifest_digest] for node_id, export in inputs.nodes),
        "folders": [str(export.directory) for _, export in inputs.nodes] if is_asked else None,
        "trust": None if trusted_hash is None else trusted_hash.hex(),
        "options": {name: value for name, value in asdict(options).items() if name != "work"},
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _copy(
    source: Path, target: Path, names: Iterable[str], beside: tuple[str, str] | None = None
) -> None:
    """Copy files to a folder that appears whole, and write one more file beside them."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with moved_into_place(target) as partial:
            partial.mkdir()
            for name in (Path(each).name for each in names):
                shutil.copyfile(source / name, partial / name)
            if beside is not None:
                (partial / beside[0]).write_text(beside[1])
    except OSError as error:
        subject = f"folder {target}"
        raise StoreError(subject, f"a copy of {source}", error.strerror or error) from error

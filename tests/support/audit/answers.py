"""Exports of a node's answers, as `chainkit audit export-node` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chainkit.exports import MANIFEST_NAME, load_manifest
from chainkit.exports.tables import ANSWERED_ENVELOPES
from chainkit.signatures import SigningKey
from chainkit_jobs.node_export.answer_page import read_page
from chainkit_jobs.node_export.export import SOURCE
from support.audit.audit_exports import write_node
from support.audit.export_folders import write_folder


def write_answers(
    directory: Path, envelopes: Sequence[bytes], key: SigningKey, **about: Any
) -> Path:
    """Write a node's answers; ``about`` overrides fields of the manifest."""
    page = read_page(envelopes, after=0)
    rows = [dict(zip(ANSWERED_ENVELOPES.names, row, strict=True)) for row in page.rows]
    write_node(directory, [], key)
    manifest = load_manifest(directory, "node")
    (directory / MANIFEST_NAME).unlink()
    names = ("kind", "chain_id", "genesis_hash", "contracts", "from_block")
    usual = {name: getattr(manifest, name) for name in (*names, "to_block", "to_block_hash")}
    usual |= {"node_public_key": manifest.node_public_key, "source": SOURCE}
    usual["answered_to"] = page.cursor
    schemas = {"envelopes": ANSWERED_ENVELOPES}
    write_folder(directory, schemas, {"envelopes": [rows]}, **usual | about)
    return directory

"""The inputs of a bundle: the output of an audit, and the chain export that it proved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from chainkit.documents.fields import Fields, read_json
from chainkit.errors import ConfigurationError, StoreError
from chainkit.evidence.emission import EmittingContracts
from chainkit.evidence.findings import BundledFinding, FindingEvent
from chainkit.exports import sha256_of
from chainkit.types import HASH_LENGTH, BlockReference
from chainkit_jobs.administration.replay import REGISTRY
from chainkit_jobs.findings import FINDINGS, Severity
from chainkit_jobs.sources import Export, emitting_contracts, read_export

_BATCH_ROWS: Final = 100
"""Few: an envelope may hold a payload near the block's gas limit."""

_SHA256: Final = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class BundleInputs:
    """An audit, and the chain export that it proved from a trusted block."""

    audit: Path
    chain: Export
    trusted_block: BlockReference
    node_manifests: dict[int, str]
    """Node id to the sha256 of its export's manifest, for all audited nodes."""
    accused: dict[int, int]
    """Node id to the number of findings about it, where any is graver than a note."""
    summary_digest: str
    findings_digest: str

    @property
    def contracts(self) -> EmittingContracts:
        """The contracts that the chain export names."""
        return emitting_contracts(self.chain)

    @property
    def node_registry(self) -> bytes:
        """The registry that the chain export names, 20 bytes."""
        return self.chain.contract(REGISTRY)

    @property
    def findings_path(self) -> Path:
        """The table of findings."""
        return self.audit / "findings.parquet"


def read_bundle_inputs(audit: Path, chain_directory: Path) -> BundleInputs:
    """Open an audit's output and its chain export.

    Raises StoreError or ConfigurationError where one of them is missing, the audit proved no chain
    export, or this chain export is not the proved one.
    """
    path = audit / "summary.json"
    subject = f"audit {audit}"
    summary = Fields(read_json(path, subject), subject)
    if not summary.has("trust") or summary.is_null("trust"):
        expected = "an audit that proved its chain export (`reconcile --trust HASH`)"
        raise ConfigurationError(subject, expected, "one that trusts the export")
    trusted_hash = summary.inner("trust").bytes("block_hash", HASH_LENGTH)
    chain = read_export(chain_directory, "chain")
    check_audited(summary, chain, subject)
    if bytes.fromhex(chain.manifest.to_block_hash[2:]) != trusted_hash:
        words = f"a chain export that ends in the trusted block, 0x{trusted_hash.hex()}"
        raise StoreError(subject, words, chain.manifest.to_block_hash)
    nodes = [Fields(value, subject, place) for value, place in summary.elements("nodes")]
    manifests = {node.integer("node_id"): _digest_in(node) for node in nodes}
    accused = _accused(audit / "findings.parquet")
    if strangers := accused.keys() - manifests.keys():
        raise StoreError(subject, "findings about nodes of its summary", f"node {min(strangers)}")
    return BundleInputs(
        audit=audit,
        chain=chain,
        trusted_block=BlockReference(chain.manifest.to_block, trusted_hash),
        node_manifests=manifests,
        accused=accused,
        summary_digest=sha256_of(path),
        findings_digest=sha256_of(audit / "findings.parquet"),
    )


def findings_about(inputs: BundleInputs, node_id: int) -> Iterator[BundledFinding]:
    """Return the findings about a node, in the order of the audit, a few at a time."""
    with pq.ParquetFile(inputs.findings_path) as file:
        for batch in file.iter_batches(_BATCH_ROWS):
            own = batch.filter(pc.equal(batch.column("node_id"), node_id))
            yield from map(_bundled, own.to_pylist())


def _bundled(row: dict[str, Any]) -> BundledFinding:
    sequence_id = row["sequence_id"]
    same = ("finding_id", "code", "node_id", "originator_id", "transaction_hash")
    digests = ("expected_digest", "served_digest", "envelope")
    event = FindingEvent(row["block_number"], row["log_index"], row["detail"])
    return BundledFinding(
        **{name: row[name] for name in (*same, *digests)},
        sequence_id=None if sequence_id is None else int(sequence_id),
        event=event if sequence_id is None else None,
    )


def check_audited(summary: Fields, chain: Export, subject: str) -> None:
    """Prove that an export is the one of an audit, by its summary: the manifest names all digests.

    Raises StoreError.
    """
    expected = _digest_in(summary.inner("chain"))
    if chain.manifest_digest != expected:
        words = f"the chain export of {subject}, whose manifest has sha256 {expected}"
        raise StoreError(f"export {chain.directory}", words, chain.manifest_digest)


def _accused(path: Path) -> dict[int, int]:
    try:
        schema = pq.read_schema(path)
        if schema.names != FINDINGS.names:
            raise StoreError(f"findings {path}", "the columns of this version", "others")
        rows = pq.read_table(path, columns=["node_id", "severity"])
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"findings {path}", "the output of an audit", "none") from error
    graver = rows.filter(pc.not_equal(rows.column("severity"), Severity.NOTE.value))
    accused = set(graver.column("node_id").to_pylist()) - {None}
    counts = pc.value_counts(rows.column("node_id")).to_pylist()
    found = {each["values"]: each["counts"] for each in counts}
    return {node_id: found[node_id] for node_id in sorted(accused)}


def _digest_in(fields: Fields) -> str:
    return fields.matching("manifest_sha256", _SHA256, "64 hex digits").group()

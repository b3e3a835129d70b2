"""From a finding to a signed MisbehaviorReport (XIP-49 §3.2.7)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from chainkit.documents.fields import Fields, read_json
from chainkit.errors import ConfigurationError, MalformedData, StoreError
from chainkit.evidence.judgement import EnvelopeJudge
from chainkit.evidence.verdict import EnvelopeVerdict, Verdict
from chainkit.protocol.envelope import parse_originator_envelope, recover_node_key
from chainkit.protocol.reports import sign_inconsistency_report
from chainkit.signatures import SigningKey
from chainkit.types import BlockReference, Node
from chainkit_jobs.evidence.bundle_chain import ABSENCE, ChainRows
from chainkit_jobs.evidence.bundle_inputs import check_audited
from chainkit_jobs.findings import FINDINGS, Code
from chainkit_jobs.sources import Export, emitting_contracts, read_export

REPORTABLE: Final = frozenset({Code.ENVELOPE_ALTERED, Code.ENVELOPE_INVENTED})
"""Findings of type BLOCKCHAIN_INCONSISTENCY: a payload that does not match the chain's."""

SHORTEST_PREFIX: Final = 8


def read_finding(directory: Path, identity: str) -> dict[str, Any]:
    """Return a finding by its id, or by the first digits of the id where no other begins so.

    Raises StoreError where the folder holds no findings, ConfigurationError for an id of no
    finding, or of several.
    """
    path = directory / "findings.parquet"
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"findings {directory}", "the output of an audit", "none") from error
    if table.schema.names != FINDINGS.names:
        raise StoreError(f"findings {path}", "the columns of this version", "others")
    if len(identity) < SHORTEST_PREFIX:
        expected = f"at least {SHORTEST_PREFIX} digits of an id"
        raise ConfigurationError("--finding", expected, repr(identity))
    found = [row for row in table.to_pylist() if row["finding_id"].startswith(identity.lower())]
    if len(found) != 1:
        raise ConfigurationError(f"finding {identity}", f"one finding in {path}", len(found))
    return dict(found[0])


def open_audited(audit: Path, chain_directory: Path) -> Export:
    """Open the chain export that an audit compared. Raises StoreError for another one, or none."""
    subject = f"audit {audit}"
    summary = Fields(read_json(audit / "summary.json", subject), subject)
    chain = read_export(chain_directory, "chain")
    check_audited(summary, chain, subject)
    return chain


def judge_finding(finding: dict[str, Any], chain: Export) -> EnvelopeVerdict:
    """Return what the council will find, as far as a chain export shows; nothing is proved.

    Raises ConfigurationError where the chain refutes the finding.
    """
    rows = ChainRows(chain)
    accused = Node(finding["node_id"], finding["node_public_key"], "", is_enabled=True)
    contracts = emitting_contracts(chain)
    last = BlockReference(
        chain.manifest.to_block, bytes.fromhex(chain.manifest.to_block_hash.removeprefix("0x"))
    )
    judged = EnvelopeJudge(accused, contracts, last, rows.find, ABSENCE).judge(finding["envelope"])
    if judged.verdict is Verdict.REFUTED:
        raise ConfigurationError(_subject(finding), "what the chain does not hold", judged.reason)
    return judged


def check_reportable(finding: dict[str, Any]) -> None:
    """Raise ConfigurationError for a finding that is no evidence of a contradiction by itself.

    Nothing was served, the served bytes match the chain's, or the signature is not the accused
    node's.
    """
    subject = _subject(finding)
    if finding["envelope"] is None:
        expected = "an envelope that the node served and signed"
        raise ConfigurationError(subject, expected, "none: nothing was served that proves it")
    if finding["code"] not in REPORTABLE:
        expected = f"one of {', '.join(sorted(REPORTABLE))}"
        raise ConfigurationError(subject, expected, "no contradiction of the chain's bytes")
    _check_signature(subject, finding)


def report_finding(finding: dict[str, Any], reporter_time_ns: int, key: SigningKey) -> bytes:
    """Sign a MisbehaviorReport of type BLOCKCHAIN_INCONSISTENCY that carries the evidence.

    ``reporter_time_ns`` is in nanoseconds since 1970.
    """
    return sign_inconsistency_report(
        finding["node_id"], [finding["envelope"]], reporter_time_ns, key
    )


def _subject(finding: dict[str, Any]) -> str:
    return f"finding {finding['finding_id'][:16]} ({finding['code']})"


def _check_signature(subject: str, finding: dict[str, Any]) -> None:
    """Check the bytes again: a report is worth as much as the signature in its evidence."""
    expected = f"a signature by the registered key of node {finding['node_id']}"
    try:
        signer = recover_node_key(parse_originator_envelope(finding["envelope"]))
    except MalformedData as error:
        raise ConfigurationError(subject, expected, error) from error
    if signer != finding["node_public_key"]:
        raise ConfigurationError(subject, expected, "another key's: it proves nothing against it")


def write_report(path: Path, report: bytes) -> None:
    """Write a report to a new file. Raises ConfigurationError if the file exists."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(report)
        except OSError:
            path.unlink()  # half a report is none
            raise
    except OSError as error:
        expected = "a file that does not exist yet and can be written"
        raise ConfigurationError(f"report {path}", expected, error.strerror) from error

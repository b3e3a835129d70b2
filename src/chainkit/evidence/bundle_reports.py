"""Checks the report files of a bundle: each must fit its finding, and no other may be there."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from chainkit.documents.untrusted import LONGEST_LINE, read_small
from chainkit.errors import MalformedData
from chainkit.evidence.bundle import REPORTS_NAME, Bundle
from chainkit.evidence.findings import BundledFinding
from chainkit.protocol.reports import reporter_of, unsigned_inconsistency_report

UNSIGNED_SUFFIX: Final = ".unsigned.pb"
SIGNED_SUFFIX: Final = ".pb"


def check_reports(directory: Path, bundle: Bundle, finding: BundledFinding) -> frozenset[str]:
    """Prove that a finding's reports carry the finding's evidence; return the names of their files.

    Raises MalformedData where reports carry other evidence, or have another signer than the bundle
    names.
    """
    if finding.unsigned_report_sha256 is None:
        if finding.report_sha256 is not None:
            raise MalformedData(finding.name, "an unsigned report beside the signed one", "none")
        return frozenset()
    if finding.envelope is None:
        raise MalformedData(finding.name, "no report where nothing was served", "one")
    unsigned = _read(directory, finding, UNSIGNED_SUFFIX, finding.unsigned_report_sha256)
    time_ns = bundle.reporter_time_ns
    expected = unsigned_inconsistency_report(bundle.node_id, [finding.envelope], time_ns)
    if unsigned != expected:
        raise MalformedData(finding.name, "a report of what was served", "another report")
    names = {finding.finding_id + UNSIGNED_SUFFIX}
    if (finding.report_sha256 is None) != (bundle.reporter_public_key is None):
        raise MalformedData(finding.name, "a signed report where anybody signed", "otherwise")
    if finding.report_sha256 is not None:
        signed = _read(directory, finding, SIGNED_SUFFIX, finding.report_sha256)
        if reporter_of(signed, unsigned) != bundle.reporter_public_key:
            raise MalformedData(finding.name, "a report signed by the bundle's reporter", "another")
        names.add(finding.finding_id + SIGNED_SUFFIX)
    return frozenset(names)


def _read(directory: Path, finding: BundledFinding, suffix: str, sha256: str) -> bytes:
    name = finding.finding_id + suffix
    data = read_small(directory / REPORTS_NAME / name, LONGEST_LINE)
    if (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise MalformedData(f"bundle file {REPORTS_NAME}/{name}", f"sha256 {sha256}", found)
    return data

"""Makes a bundle of an audit's findings about a node, for others to check without the auditor."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from chainkit import __version__
from chainkit.errors import ConfigurationError, MalformedEnvelope, StoreError
from chainkit.evidence.bundle import (
    BUNDLE_NAME,
    FILE_NAMES,
    FINDINGS_NAME,
    HEADERS_NAME,
    REPORTS_NAME,
    TRANSACTIONS_NAME,
    Bundle,
    FileDigest,
    bundle_bytes,
)
from chainkit.evidence.bundle_reports import SIGNED_SUFFIX, UNSIGNED_SUFFIX
from chainkit.evidence.findings import BundledFinding, finding_line
from chainkit.evidence.folder import ProvedTransactions, open_transactions, registered_node
from chainkit.evidence.inclusion import proof_line
from chainkit.evidence.judgement import EnvelopeJudge
from chainkit.evidence.verdict import Verdict
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.protocol.reports import sign_report, unsigned_inconsistency_report
from chainkit.signatures import SigningKey
from chainkit.text.printable import printable
from chainkit_jobs.evidence.bundle_chain import ABSENCE, ChainRows, TransactionPosition
from chainkit_jobs.evidence.bundle_inputs import BundleInputs, findings_about
from chainkit_jobs.output_folder import new_folder

Advance = Callable[[int], None]
"""Takes how many blocks and findings more are done."""


@dataclass(frozen=True, slots=True)
class Reporter:
    """The reporter, and the time of the report."""

    time_ns: int = 0
    """Nanoseconds since 1970; 0 where there is no time."""
    key: SigningKey | None = None
    """None where the reports stay unsigned."""


@dataclass(frozen=True, slots=True)
class WrittenFinding:
    """The result for a finding in the bundle."""

    finding_id: str
    code: str
    proves_itself: bool
    """Then there is a report."""
    reason: str


@dataclass(frozen=True, slots=True)
class WrittenBundle:
    """A bundle that was written."""

    directory: Path
    bundle: Bundle
    findings: tuple[WrittenFinding, ...]


def accused_nodes(inputs: BundleInputs, node_id: int | None) -> list[int]:
    """Return the nodes with findings graver than a note, or the one that is asked for.

    Raises ConfigurationError where there is none.
    """
    found = list(inputs.accused)
    if not found or (node_id is not None and node_id not in found):
        who = "a node" if node_id is None else f"node {node_id}"
        known = ", ".join(map(str, found)) or "no node"
        raise ConfigurationError(
            f"audit {inputs.audit}", f"findings about {who}, and not only notes", f"about {known}"
        )
    return found if node_id is None else [node_id]


def work_of(inputs: BundleInputs, nodes: list[int]) -> int:
    """Return at most how many blocks and findings are to be done."""
    manifest = inputs.chain.manifest
    blocks = manifest.to_block - manifest.from_block + 1
    return sum(blocks + inputs.accused[node_id] for node_id in nodes)


def write_bundles(
    inputs: BundleInputs,
    nodes: list[int],
    out: Path,
    reporter: Reporter,
    advance: Advance = lambda done: None,
) -> list[WrittenBundle]:
    """Write a bundle for each node into a folder of its own below ``out``, all or none.

    The same inputs, and the same reporter, give the same bytes. Raises StoreError if the folder
    exists, cannot be written, or if the export does not prove the findings' rows.
    """
    rows = ChainRows(inputs.chain)
    registrations = rows.registrations(inputs.node_registry)
    with new_folder(out) as partial:
        written = []
        for node_id in nodes:
            directory = partial / f"node-{node_id}"
            draft = _Draft(inputs, rows, registrations.get(node_id, []), node_id, directory)
            bundle, findings = draft.write(reporter, advance)
            written.append(WrittenBundle(out / directory.name, bundle, findings))
    return written


@dataclass(frozen=True, slots=True)
class _Draft:
    inputs: BundleInputs
    rows: ChainRows
    registrations: list[TransactionPosition]
    node_id: int
    directory: Path

    def write(
        self, reporter: Reporter, advance: Advance
    ) -> tuple[Bundle, tuple[WrittenFinding, ...]]:
        (self.directory / REPORTS_NAME).mkdir(parents=True)
        places = sorted({*self.registrations, *self.rows.places_of(self._hashes())})
        trusted = self.inputs.trusted_block
        first_block = min((place.block_number for place in places), default=trusted.number)
        with (self.directory / HEADERS_NAME).open("wb") as file:
            for header in self.rows.headers(first_block):
                file.write(header)
                advance(1)
        left_out = self._write_transactions(places)
        transactions = open_transactions(self.directory, first_block, trusted, lambda read: None)
        findings = self._write_findings(transactions, reporter, advance)
        key = reporter.key
        bundle = Bundle(
            tool=f"chainkit {__version__}",
            chain_id=self.inputs.chain.manifest.chain_id,
            genesis_hash=bytes.fromhex(self.inputs.chain.manifest.genesis_hash[2:]),
            contracts=self.inputs.contracts,
            node_registry=self.inputs.node_registry,
            node_id=self.node_id,
            first_block=first_block,
            trusted_block=trusted,
            registry_transactions=tuple(each.transaction_hash for each in self.registrations),
            findings=len(findings),
            proving_themselves=sum(each.proves_itself for each in findings),
            inputs=self._digests(),
            reporter_time_ns=reporter.time_ns,
            reporter_public_key=None if key is None else key.public_key,
            left_out=left_out,
            files={name: _describe(self.directory / name) for name in FILE_NAMES},
        )
        (self.directory / BUNDLE_NAME).write_bytes(bundle_bytes(bundle))
        return bundle, findings

    def _hashes(self) -> set[bytes]:
        """Return the transactions that the findings name, or what was served does."""
        found: set[bytes] = set()
        for finding in findings_about(self.inputs, self.node_id):
            named = (finding.transaction_hash, _named_transaction(finding))
            found.update(hash_ for hash_ in named if hash_ is not None)
        return found

    def _write_transactions(self, places: list[TransactionPosition]) -> tuple[str, ...]:
        """Write the proofs; return why blocks are left out."""
        left_out = []
        with (self.directory / TRANSACTIONS_NAME).open("wb") as file:
            for _, proofs, gap in self.rows.proofs(places):
                if gap is not None:
                    left_out.append(printable(gap))
                for proof in proofs:
                    file.write(proof_line(proof))
        return tuple(left_out)

    def _write_findings(
        self, transactions: ProvedTransactions, reporter: Reporter, advance: Advance
    ) -> tuple[WrittenFinding, ...]:
        hashes = [each.transaction_hash for each in self.registrations]
        accused = registered_node(transactions, hashes, self.inputs.node_registry, self.node_id)
        if accused is None:
            subject = f"export {self.inputs.chain.directory}"
            raise StoreError(subject, f"a NodeUpdated of node {self.node_id}", "none")
        trusted, contracts = self.inputs.trusted_block, self.inputs.contracts
        judge = EnvelopeJudge(accused, contracts, trusted, transactions.find, ABSENCE)
        written = []
        with (self.directory / FINDINGS_NAME).open("wb") as file:
            for finding in findings_about(self.inputs, self.node_id):
                is_proved, reason = _judged(judge, finding)
                if is_proved:
                    finding = self._write_reports(finding, reporter)
                file.write(finding_line(finding))
                written.append(WrittenFinding(finding.finding_id, finding.code, is_proved, reason))
                advance(1)
        return tuple(written)

    def _write_reports(self, finding: BundledFinding, reporter: Reporter) -> BundledFinding:
        unsigned = unsigned_inconsistency_report(
            self.node_id, [finding.envelope or b""], reporter.time_ns
        )
        path = self.directory / REPORTS_NAME / finding.finding_id
        Path(f"{path}{UNSIGNED_SUFFIX}").write_bytes(unsigned)
        finding = replace(finding, unsigned_report_sha256=_sha256(unsigned))
        if reporter.key is None:
            return finding
        signed = sign_report(unsigned, reporter.key)
        Path(f"{path}{SIGNED_SUFFIX}").write_bytes(signed)
        return replace(finding, report_sha256=_sha256(signed))

    def _digests(self) -> dict[str, str]:
        return {
            "chain_manifest": self.inputs.chain.manifest_digest,
            "findings": self.inputs.findings_digest,
            "node_manifest": self.inputs.node_manifests[self.node_id],
            "summary": self.inputs.summary_digest,
        }


def _judged(judge: EnvelopeJudge, finding: BundledFinding) -> tuple[bool, str]:
    if finding.envelope is None:
        return False, "nothing was served that proves it"
    judged = judge.judge(finding.envelope)
    return judged.verdict is Verdict.PROVED, judged.reason


def _named_transaction(finding: BundledFinding) -> bytes | None:
    if finding.envelope is None:
        return None
    try:
        return parse_originator_envelope(finding.envelope).transaction_hash
    except MalformedEnvelope:
        return None


def _describe(path: Path) -> FileDigest:
    with path.open("rb") as file:
        return FileDigest(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

"""The verdict on an evidence bundle, from one block hash that the council trusts.

Headers lead from the trusted block to each block needed, inclusion proofs from a block's roots to
transactions and receipts. Which contracts are ours is the deployment record's word: a bundle
could name a contract that makes an honest node's envelope look false.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment, node_registry_of
from chainkit.contracts.registry import Registry
from chainkit.council.evidence.report import (
    accused_words,
    check_unchanged,
    fetch_mined,
    reporter_words,
)
from chainkit.errors import ConfigurationError, InconsistentAnswer, MalformedData
from chainkit.evidence.bundle import REPORTS_NAME, Bundle
from chainkit.evidence.bundle_reports import check_reports
from chainkit.evidence.emission import EmittingContracts, MinedTransaction, posted_payloads
from chainkit.evidence.findings import BundledFinding
from chainkit.evidence.folder import (
    OpenBundle,
    check_files,
    open_transactions,
    registered_node,
    report_names,
)
from chainkit.evidence.headers import Advance
from chainkit.evidence.judgement import EnvelopeJudge, Find
from chainkit.evidence.labels import check_labels, codes_that_follow
from chainkit.evidence.verdict import EnvelopeVerdict, Step, Verdict, overall
from chainkit.protocol.envelope import blockchain_proof_digest, unsigned_originator_envelope
from chainkit.text.hexadecimal import hex0x
from chainkit.types import BlockReference, Node, PayloadEvent

PASSES: Final = 2
"""How often each byte of the bundle's files is read: for its digest, and for its content."""


@dataclass(frozen=True, slots=True)
class FindingVerdict:
    """The verdict on one finding of a bundle."""

    finding_id: str
    """64 hex digits."""
    codes: tuple[str, ...]
    """The codes that follow from what was served and the chain's log; see evidence.labels."""
    claimed_code: str
    """The auditor's code for the finding; ``codes`` need not contain it."""
    originator_id: int | None
    sequence_id: int | None
    """Both as in the envelope, or else as in the proved log; None where there is neither."""
    transaction_hash: bytes | None
    """The transaction that the served envelope names; None where no envelope can be read."""
    verdict: Verdict
    reason: str
    steps: tuple[Step, ...]
    signed_digest: bytes | None
    """The digest that the envelope's signature is over, as in EnvelopeVerdict."""
    is_reported: bool
    """Whether the bundle's reporter signed a report of this finding."""


@dataclass(frozen=True, slots=True)
class BundleVerdict:
    """The verdict on a bundle."""

    bundle: Bundle
    accused: Node | None
    """None if nothing in the bundle proves that the node was registered."""
    steps: tuple[Step, ...]
    findings: tuple[FindingVerdict, ...]

    @property
    def verdict(self) -> Verdict:
        """Proved by any one finding; refuted only if every one is."""
        return overall(finding.verdict for finding in self.findings)


def verify_bundle(
    directory: Path,
    bundle: Bundle,
    trusted_hash: bytes,
    record: DeploymentRecord | FollowedDeployment,
    advance: Advance = lambda done: None,
) -> BundleVerdict:
    """Check a bundle from the hash (32 bytes) of its last block alone; no socket is opened.

    Raises ConfigurationError where the hash is another block's, or the bundle is about other
    contracts than the record's; MalformedData where the bundle is damaged, or any part of the
    bundle does not follow from the trusted block.
    """
    last = bundle.trusted_block
    if last.hash != trusted_hash:
        # The error must not show the bundle's own hash: somebody would paste it, and trust the
        # bundle.
        expected = f"the hash of block {last.number}, in which the bundle says that it ends"
        hint = f"take the hash of block {last.number} from a node or explorers of your choice"
        raise ConfigurationError("--trust", expected, hex0x(trusted_hash), hint)
    alone = _Beside("this bundle does not contain", lambda hash_: None)
    return _verify(directory, bundle, record, alone, advance)


def verify_bundle_with_endpoint(
    directory: Path,
    bundle: Bundle,
    endpoint: Endpoint,
    record: DeploymentRecord | FollowedDeployment,
    head: BlockReference,
    advance: Advance = lambda done: None,
) -> BundleVerdict:
    """Check a bundle from the hash that an endpoint gives for its last block.

    Everything else is proved as without an endpoint. Besides, the registry's entry at ``head`` must
    have the same key, and transactions that the bundle lacks are looked for at the endpoint. Raises
    as verify_bundle does, ChainError where the endpoint gives no clear answer, and
    InconsistentAnswer where its registry contradicts the proof.
    """
    last = bundle.trusted_block
    found = endpoint.find_header(last.number)
    if found is None or found.hash != last.hash:
        got = f"another block {last.number}" if found else f"no block {last.number}"
        expected = f"the chain of the bundle's last block, {last.number}"
        raise ConfigurationError(f"endpoint {endpoint.name}", expected, got)
    nodes = Registry(endpoint, node_registry_of(record).address).nodes(head)
    node = next((each for each in nodes if each.node_id == bundle.node_id), None)
    beside = _Beside(
        "neither this bundle nor this endpoint contains",
        lambda hash_: fetch_mined(endpoint, hash_),
        nodes,
        (Step("registry now", f"{accused_words(bundle.node_id, node)} (block {head})"),),
    )
    result = _verify(directory, bundle, record, beside, advance)
    accused, key = result.accused, node.signing_key if node else None
    if accused is not None and accused.signing_key != key:
        subject = f"node {bundle.node_id} at {endpoint.name}"
        raise InconsistentAnswer(subject, "the key that the bundle proves", "another", str(head))
    check_unchanged(endpoint, last)
    return result


@dataclass(frozen=True, slots=True)
class _Beside:
    """The sources besides the bundle itself."""

    absence: str
    """As in EnvelopeJudge."""
    find: Find
    nodes: Sequence[Node] | None = None
    """The registered nodes; None where no registry was read."""
    steps: tuple[Step, ...] = ()


def _verify(
    directory: Path,
    bundle: Bundle,
    record: DeploymentRecord | FollowedDeployment,
    beside: _Beside,
    advance: Advance,
) -> BundleVerdict:
    _check_contracts(bundle, record)
    check_files(directory, bundle, advance)
    last = bundle.trusted_block
    transactions = open_transactions(directory, bundle.first_block, last, advance)
    opened = OpenBundle(directory, bundle, transactions)
    accused = registered_node(
        transactions, bundle.registry_transactions, node_registry_of(record).address, bundle.node_id
    )
    contracts = EmittingContracts.of(record)

    def find(transaction_hash: bytes) -> MinedTransaction | None:
        return transactions.find(transaction_hash) or beside.find(transaction_hash)

    judge = EnvelopeJudge(accused, contracts, last, find, beside.absence)
    findings = tuple(_judged(opened, judge, advance))
    steps = (*_steps(opened, accused, beside.nodes), *beside.steps)
    return BundleVerdict(bundle, accused, steps, findings)


def _check_contracts(bundle: Bundle, record: DeploymentRecord | FollowedDeployment) -> None:
    """Prove that a bundle speaks of the contracts that the reader knows."""
    known, named = EmittingContracts.of(record).described, bundle.contracts.described
    pairs = {
        "chain id": (record.chain_id, bundle.chain_id),
        "genesis hash": (hex0x(record.genesis_hash), hex0x(bundle.genesis_hash)),
        **{name: (known.get(name), named.get(name)) for name in sorted({*known, *named})},
        "NodeRegistry": (hex0x(node_registry_of(record).address), hex0x(bundle.node_registry)),
    }
    for name, (expected, got) in pairs.items():
        if expected != got:
            raise ConfigurationError("bundle", f"{name} of the record, {expected}", got)


def _judged(opened: OpenBundle, judge: EnvelopeJudge, advance: Advance) -> Iterator[FindingVerdict]:
    held = report_names(opened.directory)
    named: set[str] = set()
    ids: set[str] = set()
    for finding in opened.findings(advance):
        if finding.finding_id in ids:
            raise MalformedData(finding.name, "one line", "another")
        ids.add(finding.finding_id)
        named |= check_reports(opened.directory, opened.bundle, finding)
        yield _judge(opened, judge, finding)
    if strangers := held - named:
        expected = f"{REPORTS_NAME}/: the findings' reports alone"
        raise MalformedData("bundle", expected, f"{len(strangers)} more")


def _judge(opened: OpenBundle, judge: EnvelopeJudge, finding: BundledFinding) -> FindingVerdict:
    log, step = _chain_log(opened, judge, finding)
    judged = None if finding.envelope is None else judge.judge(finding.envelope)
    check_labels(finding, judged, log)
    codes: tuple[str, ...] = ()
    if judged is None:
        reason = "nothing was served that proves it: others have to ask the node"
        judged = EnvelopeVerdict(Verdict.NOT_PROVED, reason, (), None)
    else:
        codes = codes_that_follow(judged, log, finding.expected_digest, judge.contracts)
    shown = judged.served or log
    return FindingVerdict(
        finding.finding_id,
        codes,
        finding.code,
        shown.originator_id if shown else None,
        shown.sequence_id if shown else None,
        judged.served.transaction_hash if judged.served else None,
        judged.verdict,
        judged.reason,
        (step, *judged.steps),
        judged.signed_digest,
        finding.report_sha256 is not None,
    )


def _chain_log(
    opened: OpenBundle, judge: EnvelopeJudge, finding: BundledFinding
) -> tuple[PayloadEvent | None, Step]:
    """Return the proved log of the chain that a finding names, and add a step about it."""
    name = "chain's log"
    if finding.transaction_hash is None:
        return None, Step(name, "none is named")
    transaction = opened.transactions.find(finding.transaction_hash)
    where = f"transaction 0x{finding.transaction_hash.hex()}"
    if transaction is None:
        return None, Step(name, f"not proved: the bundle lacks {where}")
    receipt = transaction.receipt
    for event in posted_payloads(receipt, judge.contracts):
        unsigned = unsigned_originator_envelope(event, receipt.block.timestamp)
        digest = blockchain_proof_digest(unsigned, receipt.transaction_hash)
        if digest == finding.expected_digest:
            found = f"sequence id {event.sequence_id} in block {receipt.block.reference}"
            return event, Step(name, f"proved: {found}, {where}")
    return None, Step(name, f"not proved: {where} posts no payload with the digest that is named")


def _steps(
    opened: OpenBundle, accused: Node | None, nodes: Sequence[Node] | None
) -> tuple[Step, ...]:
    bundle = opened.bundle
    key = bundle.reporter_public_key
    last = bundle.trusted_block
    return (
        Step("bundle", f"node {bundle.node_id}, findings: {bundle.findings}"),
        Step("made by", bundle.tool, is_quoted=True),
        Step("reporter", "nobody signed" if key is None else reporter_words(key, nodes)),
        Step(
            "accused", accused_words(bundle.node_id, accused, "of which no registration is proved")
        ),
        Step("trusted block", f"{last.number} 0x{last.hash.hex()}"),
        Step(
            "follows from it",
            f"headers from block {bundle.first_block}, transactions: {len(opened.transactions)}",
        ),
        *(Step("left out", sentence, is_quoted=True) for sentence in bundle.left_out),
    )

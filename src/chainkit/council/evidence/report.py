"""Checks what a misbehavior report proves, by an endpoint's answers about the chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainkit.chain import Endpoint
from chainkit.chain.transactions import fetch_input, fetch_receipt
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment, node_registry_of
from chainkit.contracts.registry import Registry, status_word
from chainkit.errors import InconsistentAnswer
from chainkit.evidence.emission import EmittingContracts, MinedTransaction
from chainkit.evidence.judgement import EnvelopeJudge
from chainkit.evidence.verdict import EnvelopeVerdict, Step, Verdict, overall
from chainkit.protocol.reports import BlockchainInconsistencyReport, parse_inconsistency_report
from chainkit.signatures import address_of
from chainkit.types import BlockReference, Node


@dataclass(frozen=True, slots=True)
class ReportVerdict:
    """The verdict on a report, read at one block."""

    block: BlockReference
    report: BlockchainInconsistencyReport
    accused: Node | None
    """None if the accused node is not registered at the block."""
    steps: tuple[Step, ...]
    envelopes: tuple[EnvelopeVerdict, ...]

    @property
    def verdict(self) -> Verdict:
        """Proved by any one envelope; refuted only if every one is."""
        return overall(envelope.verdict for envelope in self.envelopes)


def verify_report(
    data: bytes,
    endpoint: Endpoint,
    record: DeploymentRecord | FollowedDeployment,
    block: BlockReference,
) -> ReportVerdict:
    """Check a signed MisbehaviorReport against the chain up to a block (XIP-49 §3.2.7).

    Raises MalformedData for anything but a signed report of type BLOCKCHAIN_INCONSISTENCY, and
    ChainError where the endpoint gives no clear answer, also if the chain forked meanwhile.
    """
    report = parse_inconsistency_report(data)
    nodes = Registry(endpoint, node_registry_of(record).address).nodes(block)
    accused = next((node for node in nodes if node.node_id == report.misbehaving_node_id), None)
    judge = EnvelopeJudge(
        accused,
        EmittingContracts.of(record),
        block,
        lambda transaction_hash: fetch_mined(endpoint, transaction_hash),
        "this endpoint does not know",
    )
    verdicts = tuple(map(judge.judge, report.envelopes))
    check_unchanged(endpoint, block)
    steps = (
        Step("report", f"BLOCKCHAIN_INCONSISTENCY, envelopes: {len(report.envelopes)}"),
        Step("reporter", reporter_words(report.reporter_public_key, nodes)),
        Step("accused", accused_words(report.misbehaving_node_id, accused)),
        Step("block", str(block)),
    )
    return ReportVerdict(block, report, accused, steps, verdicts)


def fetch_mined(endpoint: Endpoint, transaction_hash: bytes) -> MinedTransaction | None:
    """Return a mined transaction, None where the endpoint knows none; errors as fetch_receipt."""
    receipt = fetch_receipt(endpoint, transaction_hash)
    if receipt is None:
        return None
    return MinedTransaction(receipt, fetch_input(endpoint, transaction_hash))


def check_unchanged(endpoint: Endpoint, block: BlockReference) -> None:
    """Raise InconsistentAnswer if the endpoint has another block at that height by now."""
    if (found := endpoint.header(block.number).reference) != block:
        raise InconsistentAnswer(f"block {block.number} at {endpoint.name}", block, found)


def accused_words(node_id: int, accused: Node | None, absence: str = "not registered") -> str:
    """Name the accused node, its status, and the owner of its key; or its ``absence``."""
    if accused is None:
        return f"node {node_id}, {absence}"
    key = address_of(accused.signing_key)
    return f"node {accused.node_id}, {status_word(accused)}, key of {key}"


def reporter_words(key: bytes, nodes: Sequence[Node] | None) -> str:
    """Name the reporter (65 bytes of its key) if it is one of the registered nodes.

    Any signature over any bytes gives some key: a report that somebody changed is signed by a
    reporter who does not exist. ``nodes`` is None where no registry was read.
    """
    if nodes is None:
        return f"not established: the signature gives {address_of(key)}, and no registry was read"
    node = next((node for node in nodes if node.signing_key == key), None)
    if node is None:
        return f"not established: the signature gives {address_of(key)}, which is no node's key"
    return f"node {node.node_id}, by its key {address_of(key)}"

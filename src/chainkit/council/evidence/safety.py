"""The verdict on a report of types 4 to 7: by its envelopes, and the registry's keys at a block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment, node_registry_of
from chainkit.contracts.registry import Registry
from chainkit.council.evidence.report import accused_words, reporter_words
from chainkit.errors import InconsistentAnswer
from chainkit.evidence.verdict import Step, Verdict
from chainkit.misbehavior.evidence import Judgement, Weight, judge_safety
from chainkit.misbehavior.signed import SignedReport
from chainkit.types import NANOSECONDS_PER_SECOND, BlockReference, Node

_VERDICTS: Final[Mapping[Weight, Verdict]] = {
    Weight.PROVED: Verdict.PROVED,
    Weight.CLAIMED: Verdict.NOT_PROVED,
    Weight.REFUTED: Verdict.REFUTED,
}


@dataclass(frozen=True, slots=True)
class SafetyVerdict:
    """The verdict on a report of a safety failure, with the registry read at one block."""

    block: BlockReference
    signed: SignedReport
    accused: Node | None
    """None if the accused node is not registered at the block."""
    steps: tuple[Step, ...]
    judgement: Judgement

    @property
    def verdict(self) -> Verdict:
        """A claim is not proved: it depends on its reporter's word."""
        return _VERDICTS[self.judgement.weight]


def verify_safety(
    signed: SignedReport,
    endpoint: Endpoint,
    record: DeploymentRecord | FollowedDeployment,
    block: BlockReference,
    now_ns: int,
) -> SafetyVerdict:
    """Judge a report by its own envelopes and the keys that the registry has at a block.

    ``now_ns`` is this machine's clock in nanoseconds since 1970; where the block's time is later,
    that time counts. Raises ChainError where the endpoint gives no clear answer, also if the chain
    forked.
    """
    registry = Registry(endpoint, node_registry_of(record).address)
    nodes = {each.node_id: each for each in registry.nodes(block)}
    header = endpoint.header(block.number)
    if (found := header.reference) != block:
        raise InconsistentAnswer(f"block {block.number} at {endpoint.name}", block, found)
    keys = {node_id: node.signing_key for node_id, node in nodes.items()}
    clock_ns = max(now_ns, header.timestamp * NANOSECONDS_PER_SECOND)
    report = signed.report
    accused = nodes.get(report.node_id)
    steps = (
        Step("report", f"{report.misbehavior.name}, envelopes: {len(report.envelopes)}"),
        Step("reporter", reporter_words(signed.reporter, list(nodes.values()))),
        Step("accused", accused_words(report.node_id, accused)),
        Step("block", str(block)),
    )
    judgement = judge_safety(report, keys, clock_ns)
    return SafetyVerdict(block, signed, accused, steps, judgement)

"""The output of ``chainkit council verify``, for people and for scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import click

from chainkit.council.evidence import (
    BundleVerdict,
    EnvelopeVerdict,
    FindingVerdict,
    ReportVerdict,
    SafetyVerdict,
    Step,
)
from chainkit.evidence.verdict import Verdict
from chainkit.terminal.facts import echo_fact, echo_quoted, echo_wrapped
from chainkit.text.hexadecimal import hex0x
from chainkit.text.json_values import reference_as_json

_MOST_FINDINGS: Final = 20
"""Findings that are printed one by one; --json has all findings."""


def echo_report(result: ReportVerdict) -> None:
    """Print the steps and the verdict of each envelope, then the report's."""
    _echo_steps(result.steps)
    for number, envelope in enumerate(result.envelopes, start=1):
        click.echo(f"\nenvelope {number} of {len(result.envelopes)}")
        _echo_steps(envelope.steps)
        echo_fact(envelope.verdict, envelope.reason)
    click.echo()
    echo_fact("verdict", result.verdict)


def echo_safety(result: SafetyVerdict) -> None:
    """Print the steps, how much the evidence is worth and why, then the verdict."""
    _echo_steps(result.steps)
    click.echo()
    echo_fact(result.judgement.weight, result.judgement.reason)
    echo_fact("verdict", result.verdict)


def echo_bundle(result: BundleVerdict) -> None:
    """Print the steps, the findings, proved ones first, and the verdict."""
    _echo_steps(result.steps)
    order = list(Verdict)
    findings = sorted(result.findings, key=lambda finding: order.index(finding.verdict))
    for finding in findings[:_MOST_FINDINGS]:
        click.echo()
        echo_wrapped(", ".join([f"finding {finding.finding_id[:16]}", *_labels(finding)]))
        if finding.claimed_code not in finding.codes:
            echo_fact("claimed", f"{finding.claimed_code}, which does not follow from the bundle")
        _echo_steps(finding.steps)
        echo_fact(finding.verdict, finding.reason)
    if len(findings) > _MOST_FINDINGS:
        more = len(findings) - _MOST_FINDINGS
        click.echo(f"\n… and {more} more findings; --json tells all")
    counts = Counter(finding.verdict for finding in findings)
    click.echo()
    words = ", ".join(f"{verdict}: {counts[verdict]}" for verdict in Verdict if counts[verdict])
    echo_fact("findings", words or "none")
    echo_fact("verdict", result.verdict)


def _labels(finding: FindingVerdict) -> list[str]:
    """Return what follows from the proof: never the auditor's words."""
    labels = list(finding.codes)
    if finding.sequence_id is not None:
        originator = f" of originator {finding.originator_id}" if finding.originator_id else ""
        labels.append(f"sequence {finding.sequence_id}{originator}")
    return labels


def report_json(result: ReportVerdict) -> dict[str, Any]:
    """Return what a report proves, as scripts read it."""
    return {
        "verdict": result.verdict,
        "block": reference_as_json(result.block),
        "misbehaving_node_id": result.report.misbehaving_node_id,
        "reporter_public_key": hex0x(result.report.reporter_public_key),
        "reporter_time_ns": result.report.reporter_time_ns,
        "steps": _steps_json(result.steps),
        "envelopes": [_envelope_json(envelope) for envelope in result.envelopes],
    }


def safety_json(result: SafetyVerdict) -> dict[str, Any]:
    """Write the same for scripts, with the names that a report of type 8 has."""
    signed = result.signed
    return {
        "verdict": result.verdict,
        "weight": result.judgement.weight,
        "reason": result.judgement.reason,
        "misbehavior": signed.report.misbehavior.name,
        "block": reference_as_json(result.block),
        "misbehaving_node_id": signed.report.node_id,
        "reporter_public_key": hex0x(signed.reporter),
        "reporter_time_ns": signed.report.reporter_time_ns,
        "steps": _steps_json(result.steps),
    }


def bundle_json(result: BundleVerdict) -> dict[str, Any]:
    """Return what a bundle proves, as scripts read it."""
    bundle = result.bundle
    key = bundle.reporter_public_key
    return {
        "verdict": result.verdict,
        "block": reference_as_json(bundle.trusted_block),
        "misbehaving_node_id": bundle.node_id,
        "reporter_public_key": None if key is None else hex0x(key),
        "reporter_time_ns": bundle.reporter_time_ns,
        "tool": bundle.tool,
        "inputs": dict(bundle.inputs),
        "left_out": list(bundle.left_out),
        "steps": _steps_json(result.steps),
        "findings": [_finding_json(finding) for finding in result.findings],
    }


def _finding_json(finding: FindingVerdict) -> dict[str, Any]:
    hash_ = finding.transaction_hash
    return {
        "finding_id": finding.finding_id,
        "codes": list(finding.codes),
        "claimed_code": finding.claimed_code,
        "verdict": finding.verdict,
        "reason": finding.reason,
        # A uint64 as text: JSON readers round numbers.
        "sequence_id": None if finding.sequence_id is None else str(finding.sequence_id),
        "transaction_hash": None if hash_ is None else hex0x(hash_),
        "steps": _steps_json(finding.steps),
    }


def _envelope_json(envelope: EnvelopeVerdict) -> dict[str, Any]:
    served = envelope.served
    return {
        "verdict": envelope.verdict,
        "reason": envelope.reason,
        "sequence_id": served.sequence_id if served else None,
        "transaction_hash": hex0x(served.transaction_hash) if served else None,
        "steps": _steps_json(envelope.steps),
    }


def _echo_steps(steps: Sequence[Step]) -> None:
    for step in steps:
        (echo_quoted if step.is_quoted else echo_fact)(step.name, step.found)


def _steps_json(steps: Sequence[Step]) -> list[dict[str, str]]:
    return [{"name": step.name, "found": step.found} for step in steps]

"""``chainkit council``: check evidence against an endpoint of the council's own choosing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from chainkit.cli.command import CompleteGroup
from chainkit.cli.options import deployment_option, echo_json, hex0x, json_option, rpc_option
from chainkit.cli.registry import block_option, echo_fact, open_registry
from chainkit.council import EnvelopeVerdict, ReportVerdict, Step, Verdict, verify_report
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.report import parse_inconsistency_report


@click.group(cls=CompleteGroup)
def council() -> None:
    """Check evidence of misbehavior against the chain.

    \b
    Example:
      chainkit council verify report.bin --rpc http://127.0.0.1:8545 --deployment deployment.json
    """


@council.command("verify")
@click.argument("report", type=click.Path(path_type=Path))
@rpc_option
@deployment_option
@block_option
@json_option
def verify(
    report: Path, rpc_url: str, deployment_path: Path, block_number: int | None, as_json: bool
) -> None:
    """Check a signed report that a node served what the chain does not hold.

    Exits 0 if it is proved, 1 if it is not proved or refuted, 2 if it could not be checked.

    \b
    Example:
      chainkit council verify report.bin --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    data = _read(report)
    try:
        parse_inconsistency_report(data)
    except MalformedData as error:
        raise MalformedData(f"report {report}", error.expected, error.got) from error
    registry, record, block = open_registry(rpc_url, deployment_path, block_number)
    result = verify_report(data, registry.endpoint, record, block)
    if as_json:
        echo_json(_report_json(result))
    else:
        _echo_report(result)
    if result.verdict is not Verdict.PROVED:
        sys.exit(1)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"report {path}", "a readable file", error.strerror) from error


def _echo_report(result: ReportVerdict) -> None:
    _echo_steps(result.steps)
    for number, envelope in enumerate(result.envelopes, start=1):
        click.echo(f"\nenvelope {number} of {len(result.envelopes)}")
        _echo_steps(envelope.steps)
        echo_fact(envelope.verdict, envelope.reason)
    click.echo()
    echo_fact("verdict", result.verdict)


def _echo_steps(steps: Sequence[Step]) -> None:
    for step in steps:
        echo_fact(step.name, step.found)


def _report_json(result: ReportVerdict) -> dict[str, Any]:
    return {
        "verdict": result.verdict,
        "block": {"number": result.block.number, "hash": hex0x(result.block.hash)},
        "misbehaving_node_id": result.report.misbehaving_node_id,
        "reporter_public_key": hex0x(result.report.reporter_public_key),
        "reporter_time_ns": result.report.reporter_time_ns,
        "steps": _steps_json(result.steps),
        "envelopes": [_envelope_json(envelope) for envelope in result.envelopes],
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


def _steps_json(steps: Sequence[Step]) -> list[dict[str, str]]:
    return [{"name": step.name, "found": step.found} for step in steps]

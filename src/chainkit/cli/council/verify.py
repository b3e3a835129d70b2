"""``chainkit council verify``: evidence, from a block hash or an endpoint of the council's own."""

from __future__ import annotations

import hashlib
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import click

from chainkit.cli.change.proposal_options import council_option_for, is_proposal, owners_option
from chainkit.cli.council.execution import status
from chainkit.cli.council.proposals import show
from chainkit.cli.council.verify_output import (
    bundle_json,
    echo_bundle,
    echo_report,
    echo_safety,
    report_json,
    safety_json,
)
from chainkit.cli.registry.options import block_option, open_recorded_registry
from chainkit.contracts.followed import read_recorded_deployment
from chainkit.council.evidence import (
    BundleVerdict,
    verify_bundle,
    verify_bundle_with_endpoint,
    verify_report,
    verify_safety,
)
from chainkit.council.evidence.bundle import PASSES
from chainkit.council.triage.checks import LARGEST_REPORT
from chainkit.documents.files import read_regular
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.evidence.bundle import Bundle, bundle_bytes
from chainkit.evidence.folder import read_bundle
from chainkit.evidence.verdict import Verdict
from chainkit.misbehavior.signed import SignedReport, parse_signed
from chainkit.misbehavior.types import Misbehavior
from chainkit.terminal.bar import progress_bar
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.connection import open_recorded_chain
from chainkit.terminal.facts import echo_fact
from chainkit.terminal.options import (
    block_hash,
    deployment_option,
    echo_json,
    is_on_command_line,
    json_option,
    rpc_option_for,
)


@click.command("verify", cls=CompleteCommand)
@click.argument("evidence", type=click.Path(path_type=Path))
@click.option(
    "--trust",
    "trusted_hash",
    metavar="HASH",
    callback=block_hash,
    help="Hash of a bundle's last block, from a source that you trust: no endpoint is asked.",
)
@rpc_option_for("JSON-RPC endpoint of the chain, for a report, or for a bundle without --trust.")
@deployment_option
@block_option
@council_option_for("Your own council file, for a proposal.")
@owners_option
@json_option
@click.pass_context
def verify(
    context: click.Context,
    evidence: Path,
    trusted_hash: bytes | None,
    rpc_url: str | None,
    deployment_path: Path,
    block_number: int | None,
    council_path: Path | None,
    changes_safe: bool,
    as_json: bool,
) -> None:
    """Check a signed report of a safety failure, or a bundle, by the chain and the registry.

    EVIDENCE is a report's file, or the folder of a bundle as `chainkit audit bundle` writes it. A
    report of types 4 to 7 is judged by its own envelopes and the registry's keys, one of type 8 by
    the transactions of the chain. A report of a liveness failure proves nothing alone.
    Exits 0 if it is proved, 1 if it is not proved or refuted, 2 if it could not be checked. A
    proposal's file is rebuilt from your own files as `council show` does, which exits 0 though the
    chain was not asked; with an endpoint, as `council status` does, which asks it.

    \b
    Example:
      chainkit council verify report.bin --rpc http://127.0.0.1:8545 --deployment deployment.json
      chainkit council verify bundles/node-300 --trust 0x5f3e… --deployment deployment.json
    """
    if not evidence.exists():
        raise ConfigurationError(f"evidence {evidence}", "a report or a bundle's folder", "none")
    if evidence.is_dir():
        if block_number is not None:
            raise click.UsageError("--block is for reports: a bundle ends in a block of its own")
        if trusted_hash is not None and is_on_command_line("rpc_url"):
            raise click.UsageError("expected one of --trust and --rpc, got both")
        verdict = _verify_bundle(evidence, trusted_hash, rpc_url, deployment_path, as_json)
    elif is_proposal(evidence):
        if council_path is None:
            raise click.UsageError("missing --council (or CHAINKIT_COUNCIL), for a proposal")
        own = {
            "proposal_path": evidence,
            "deployment_path": deployment_path,
            "council_path": council_path,
            "changes_safe": changes_safe,
            "as_json": as_json,
        }
        if rpc_url is None:
            context.invoke(show, **own)
        else:
            context.invoke(status, rpc_url=rpc_url, no_tracing=False, **own)
        return
    else:
        if trusted_hash is not None:
            raise click.UsageError("--trust is for bundles: a report holds nothing of the chain")
        verdict = _verify_report(evidence, rpc_url, deployment_path, block_number, as_json)
    if verdict is not Verdict.PROVED:
        sys.exit(1)


def _verify_report(
    path: Path, rpc_url: str | None, deployment_path: Path, block_number: int | None, as_json: bool
) -> Verdict:
    if rpc_url is None:
        raise click.UsageError("missing --rpc (or CHAINKIT_RPC)")
    data = read_regular(path, f"report {path}", LARGEST_REPORT)
    signed = _signed(path, data)
    registry, record, block = open_recorded_registry(rpc_url, deployment_path, block_number)
    digest = {"evidence_sha256": hashlib.sha256(data).hexdigest()}
    content: dict[str, Any]
    if signed.report.misbehavior is Misbehavior.BLOCKCHAIN_INCONSISTENCY:
        result = verify_report(data, registry.endpoint, record, block)
        verdict, content, echo = result.verdict, report_json(result), partial(echo_report, result)
    else:
        judged = verify_safety(signed, registry.endpoint, record, block, time.time_ns())
        verdict, content, echo = judged.verdict, safety_json(judged), partial(echo_safety, judged)
    if as_json:
        echo_json(content | digest)
    else:
        echo()
        echo_fact("evidence", f"sha256 {digest['evidence_sha256']}")
    return verdict


def _signed(path: Path, data: bytes) -> SignedReport:
    try:
        signed = parse_signed(data)
        misbehavior = signed.report.misbehavior
        if misbehavior.is_liveness:
            raise MalformedData("report", "a safety failure (types 4 to 8)", misbehavior.name)
    except MalformedData as error:
        raise MalformedData(f"report {path}", error.expected, error.got) from error
    return signed


def _verify_bundle(
    path: Path,
    trusted_hash: bytes | None,
    rpc_url: str | None,
    deployment_path: Path,
    as_json: bool,
) -> Verdict:
    if trusted_hash is None and rpc_url is None:
        raise click.UsageError("missing --trust, or --rpc (or CHAINKIT_RPC)")
    bundle = read_bundle(path)
    result = _bundle_verdict(path, bundle, trusted_hash, rpc_url, deployment_path)
    digest = hashlib.sha256(bundle_bytes(bundle)).hexdigest()
    if as_json:
        echo_json(bundle_json(result) | {"evidence_sha256": digest})
    else:
        echo_bundle(result)
        echo_fact("evidence", f"sha256 {digest}")
    return result.verdict


def _bundle_verdict(
    path: Path,
    bundle: Bundle,
    trusted_hash: bytes | None,
    rpc_url: str | None,
    deployment_path: Path,
) -> BundleVerdict:
    size = PASSES * sum(file.bytes for file in bundle.files.values())
    if trusted_hash is not None or rpc_url is None:
        record = read_recorded_deployment(deployment_path)
        with progress_bar("checking", size) as advance:
            return verify_bundle(path, bundle, trusted_hash or b"", record, advance)
    endpoint, record, head = open_recorded_chain(rpc_url, deployment_path)
    with progress_bar("checking", size) as advance:
        return verify_bundle_with_endpoint(path, bundle, endpoint, record, head.reference, advance)

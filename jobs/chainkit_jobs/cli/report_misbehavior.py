"""``chainkit audit report-misbehavior``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_fact
from chainkit.terminal.keystore import load_signing_key
from chainkit.terminal.options import keystore_option, password_option, path_option
from chainkit_jobs.cli.options import check_audit_folder, check_export_folder, out_option
from chainkit_jobs.evidence.misbehavior import (
    check_reportable,
    judge_finding,
    open_audited,
    read_finding,
    report_finding,
    write_report,
)


@click.command("report-misbehavior", cls=CompleteCommand)
@path_option(
    "--findings", "findings_path", "DIR", "Output of `chainkit audit reconcile`.", required=True
)
@click.option(
    "--chain",
    "chain_path",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Chain export that the audit compared: says whether the report will be proved.",
)
@click.option("--finding", "finding_id", required=True, metavar="ID", help="Id of the finding.")
@keystore_option
@password_option
@out_option("File")
def report_misbehavior_command(
    findings_path: Path,
    chain_path: Path | None,
    finding_id: str,
    keystore_path: Path,
    password_path: Path | None,
    out: Path,
) -> None:
    """Sign a report of type BLOCKCHAIN_INCONSISTENCY that carries a finding's evidence.

    With --chain the finding is judged as `chainkit council verify` judges it. One that is not
    proved is signed all the same, and said to be so; one that the chain refutes is not.

    \b
    Example:
      chainkit audit report-misbehavior --findings audit/ --chain chain/ \\
        --finding 1f0c2a9be51d3c77 --keystore auditor.json --out report.pb
    """
    check_audit_folder(findings_path)
    if chain_path is not None:
        check_export_folder(chain_path)
    finding = read_finding(findings_path, finding_id)
    check_reportable(finding)
    verdict = None
    if chain_path is not None:
        verdict = judge_finding(finding, open_audited(findings_path, chain_path))
    key = load_signing_key(keystore_path, password_path)
    report = report_finding(finding, time.time_ns(), key)
    write_report(out, report)
    click.echo(
        f"{out}: {finding['code']}, sequence {finding['sequence_id']}, node {finding['node_id']}"
    )
    if verdict is None:
        echo_fact("not judged", "give --chain to know whether the council can call it proved")
    else:
        echo_fact(verdict.verdict, verdict.reason)

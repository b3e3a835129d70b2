"""``chainkit audit bundle``."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from chainkit.protocol.chain_time import MAXIMUM_BLOCK_TIMESTAMP
from chainkit.terminal.bar import progress_bar
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_fact
from chainkit.terminal.keystore import load_signing_key
from chainkit.terminal.options import echo_json, json_option, keystore_option_for, password_option
from chainkit.text.hexadecimal import hex0x
from chainkit_jobs.cli.options import check_audit_folder, check_export_folder, out_option
from chainkit_jobs.evidence.bundle import (
    Reporter,
    WrittenBundle,
    accused_nodes,
    work_of,
    write_bundles,
)
from chainkit_jobs.evidence.bundle_inputs import read_bundle_inputs

_MOST_FINDINGS: Final = 20
_NANOSECONDS: Final = 10**9


@click.command("bundle", cls=CompleteCommand)
@click.argument("audit", type=click.Path(path_type=Path), metavar="AUDIT_DIR")
@click.option(
    "--chain",
    "chain_path",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Chain export that the audit proved, as `reconcile --trust` was given it.",
)
@out_option("Folder")
@click.option(
    "--node", "node_id", type=click.IntRange(min=0), metavar="ID", help="Only about this node."
)
@keystore_option_for("Encrypted key that signs the reports; without it they stay unsigned.")
@password_option
@click.option(
    "--reported-at",
    "reported_at",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ"]),
    metavar="TIME",
    help="When it is reported, in UTC, as 2026-11-22T10:00:00Z; reports that are signed need it.",
)
@json_option
def bundle_command(
    audit: Path,
    chain_path: Path,
    out: Path,
    node_id: int | None,
    keystore_path: Path | None,
    password_path: Path | None,
    reported_at: datetime | None,
    as_json: bool,
) -> None:
    """Write the evidence about each accused node so that it can be checked without the auditor.

    AUDIT_DIR is the output of `chainkit audit reconcile --trust`. Each bundle holds all findings
    about a node; those that prove themselves come with a report. The same inputs give the same
    bytes.

    \b
    Example:
      chainkit audit bundle audit/ --chain chain/ --out bundles/ --keystore auditor.json \\
        --reported-at 2026-11-22T10:00:00Z
    """
    if keystore_path is not None and reported_at is None:
        raise click.UsageError("--keystore needs --reported-at TIME, which is signed too")
    check_audit_folder(audit)
    check_export_folder(chain_path)
    inputs = read_bundle_inputs(audit, chain_path)
    nodes = accused_nodes(inputs, node_id)
    key = None if keystore_path is None else load_signing_key(keystore_path, password_path)
    reporter = Reporter(_nanoseconds(reported_at), key)
    with progress_bar("bundling", work_of(inputs, nodes)) as advance:
        written = write_bundles(inputs, nodes, out, reporter, advance)
    if as_json:
        echo_json([_as_json(each) for each in written])
        return
    for each in written:
        _echo(each)


def _nanoseconds(moment: datetime | None) -> int:
    if moment is None:
        return 0
    seconds = int(moment.replace(tzinfo=UTC).timestamp())
    if not 0 <= seconds <= MAXIMUM_BLOCK_TIMESTAMP:
        got = f"{moment:%Y-%m-%d}"
        raise click.UsageError(f"--reported-at: expected a day from 1970 to 2262, got {got}")
    return seconds * _NANOSECONDS


def _echo(written: WrittenBundle) -> None:
    bundle = written.bundle
    signed = "unsigned" if bundle.reporter_public_key is None else "signed"
    proving = f"proving themselves: {bundle.proving_themselves} (reports {signed})"
    click.echo(str(written.directory))
    echo_fact("findings", f"{bundle.findings}, {proving}")
    echo_fact("blocks", f"{bundle.first_block} to {bundle.trusted_block}")
    others = [each for each in written.findings if not each.proves_itself]
    for each in others[:_MOST_FINDINGS]:
        echo_fact("not proved", f"{each.finding_id[:16]} {each.code}: {each.reason}")
    if len(others) > _MOST_FINDINGS:
        more = Counter(each.code for each in others[_MOST_FINDINGS:])
        words = ", ".join(f"{code} {count}" for code, count in sorted(more.items()))
        echo_fact("not proved", f"… and {words}; --json tells all")
    for sentence in bundle.left_out:
        echo_fact("left out", sentence)


def _as_json(written: WrittenBundle) -> dict[str, Any]:
    bundle = written.bundle
    return {
        "directory": str(written.directory),
        "node_id": bundle.node_id,
        "block": {"number": bundle.trusted_block.number, "hash": hex0x(bundle.trusted_block.hash)},
        "first_block": bundle.first_block,
        "findings": [
            {
                "finding_id": each.finding_id,
                "code": each.code,
                "proves_itself": each.proves_itself,
                "reason": each.reason,
            }
            for each in written.findings
        ],
        "left_out": list(bundle.left_out),
    }

"""``chainkit audit``: export the chain, reconcile the nodes with it, report what was found."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from chainkit.cli.command import CompleteGroup, require_packages
from chainkit.cli.options import (
    deployment_option,
    echo_json,
    json_option,
    keystore_option,
    password_option,
    rpc_option,
)

require_packages("pyspark", "pyarrow", "matplotlib", "jinja2")

EXIT_FINDINGS = 1
EXIT_NOT_COMPARED = 2

_height = click.IntRange(min=0)


def _out_option(what: str) -> Callable[[Any], Any]:
    return click.option(
        "--out",
        "out",
        required=True,
        metavar="PATH",
        type=click.Path(path_type=Path),
        help=f"{what} to write; it must not exist yet.",
    )


@click.group(cls=CompleteGroup)
def audit() -> None:
    """Compare what nodes serve with what the chain holds.

    \b
    Example:
      chainkit audit reconcile --chain chain/ --node node-a/ --node node-b/ --out audit/
    """


@audit.command("export-chain")
@rpc_option
@deployment_option
@click.option("--from-block", type=_height, metavar="N", help="First block [the deployment's].")
@click.option("--to-block", type=_height, metavar="N", help="Last block [the head].")
@_out_option("Folder")
@json_option
def export_chain(
    rpc_url: str,
    deployment_path: Path,
    from_block: int | None,
    to_block: int | None,
    out: Path,
    as_json: bool,
) -> None:
    """Write blocks, receipts and logs of a range to Parquet, pinned to its last block.

    \b
    Example:
      chainkit audit export-chain --rpc http://127.0.0.1:8545 --deployment record.json --out chain/
    """
    from chainkit.cli.options import open_chain
    from chainkit_jobs.export_chain import export_chain, resolve_range

    endpoint, record, head = open_chain(rpc_url, deployment_path)
    first, end = resolve_range(endpoint, record, head, from_block, to_block)
    with _progress(end.number - first + 1) as update:
        manifest = export_chain(endpoint, record, first, end, out, update)
    rows = {name.removesuffix(".parquet"): file["rows"] for name, file in manifest.files.items()}
    if as_json:
        echo_json(
            {
                "from_block": manifest.from_block,
                "to_block": manifest.to_block,
                "to_block_hash": manifest.to_block_hash,
                "rows": rows,
            }
        )
    else:
        counts = ", ".join(f"{count} {name}" for name, count in rows.items())
        click.echo(f"{out}: {counts}, up to block {end}")


@contextmanager
def _progress(blocks: int) -> Iterator[Callable[[int], None]]:
    """Show a bar to a person at a terminal, and nothing to a file or a pipe."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    bar: Any = click.progressbar(length=blocks, label="blocks", file=sys.stderr)
    with bar:
        yield bar.update


@audit.command("reconcile")
@click.option(
    "--chain",
    "chain_path",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Chain export, as `chainkit audit export-chain` writes it.",
)
@click.option(
    "--node",
    "node_arguments",
    required=True,
    multiple=True,
    metavar="[ID=]DIR",
    help="Node export, as `chainkit index export` writes it; without its id, found by its key.",
)
@_out_option("Folder")
@click.option(
    "--master", default="local[*]", show_default=True, metavar="URL", help="Spark master."
)
@json_option
def reconcile(
    chain_path: Path, node_arguments: tuple[str, ...], out: Path, master: str, as_json: bool
) -> None:
    """Compare the exports of two or more nodes with a chain export.

    Exits 0 if all is as it must be, 1 with findings, 2 if something could not be compared.

    \b
    Example:
      chainkit audit reconcile --chain chain/ --node node-a/ --node 200=node-b/ --out audit/
    """
    if len(node_arguments) < 2:
        raise click.UsageError("expected two or more of --node, got 1")
    nodes = [_parse_node(argument) for argument in node_arguments]
    from chainkit_jobs.audit import read_inputs, run_audit
    from chainkit_jobs.outputs import check_free, write_outputs
    from chainkit_jobs.session import spark_session

    check_free(out)
    inputs = read_inputs(chain_path, nodes)
    with spark_session(master) as spark:
        result = run_audit(spark, inputs)
    summary = write_outputs(out, result)
    if as_json:
        echo_json(summary)
    else:
        _echo_summary(summary, out)
    if result.comparability.set_aside:
        for sentence in result.comparability.set_aside.values():
            click.echo(f"error: {sentence}", err=True)
        sys.exit(EXIT_NOT_COMPARED)
    if result.findings:
        sys.exit(EXIT_FINDINGS)


def _parse_node(argument: str) -> tuple[int | None, Path]:
    """Take ``ID=DIR`` apart; a folder whose name holds no id before ``=`` is a folder."""
    identity, separator, directory = argument.partition("=")
    if separator and identity.isdecimal():
        return int(identity), Path(directory)
    return None, Path(argument)


def _echo_summary(summary: Mapping[str, Any], out: Path) -> None:
    chain = summary["chain"]
    click.echo(
        f"{chain['payloads']} payloads ({chain['quarantined']} malformed) in blocks "
        f"{chain['from_block']} to {chain['to_block']}\n"
    )
    click.echo(f"{'node':>6}  {'status':<9}{'expected':>9}{'served':>9}{'matched':>9}  findings")
    for node in summary["nodes"]:
        status = "enabled" if node["is_enabled"] else "disabled"
        codes = ", ".join(f"{code} {count}" for code, count in node["findings"].items()) or "none"
        counts = [node["expected"], node["served"], node["matched"]]
        if not node["compared"]:
            counts, codes = ["-"] * 3, "not compared"
        numbers = "".join(f"{count:>9}" for count in counts)
        click.echo(f"{node['node_id']:>6}  {status:<9}{numbers}  {codes}")
    for sentence in summary["not_compared"]:
        click.echo(f"not compared: {sentence}")
    total = summary["findings_total"]
    click.echo(f"\n{total} finding{'' if total == 1 else 's'}; see {out / 'report.html'}")


@audit.command("report-misbehavior")
@click.option(
    "--findings",
    "findings_path",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Output of `chainkit audit reconcile`.",
)
@click.option("--finding", "finding_id", required=True, metavar="ID", help="Id of the finding.")
@keystore_option
@password_option
@_out_option("File")
def report_misbehavior(
    findings_path: Path,
    finding_id: str,
    keystore_path: Path,
    password_path: Path | None,
    out: Path,
) -> None:
    """Sign a report of type BLOCKCHAIN_INCONSISTENCY that carries a finding's evidence.

    \b
    Example:
      chainkit audit report-misbehavior --findings audit/ --finding 1f0c2a9be51d3c77 \\
        --keystore auditor.json --out report.pb
    """
    from chainkit.cli.key import load_signing_key
    from chainkit_jobs.evidence.misbehavior import read_finding, report_finding, write_report

    finding = read_finding(findings_path, finding_id)
    key = load_signing_key(keystore_path, password_path)
    report = report_finding(finding, time.time_ns(), key)
    write_report(out, report)
    click.echo(
        f"{out}: {finding['code']}, sequence {finding['sequence_id']}, node {finding['node_id']}"
    )

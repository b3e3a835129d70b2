"""``chainkit audit reconcile``."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import LINE_WIDTH, echo_error
from chainkit.terminal.options import echo_json, json_option
from chainkit.text.counting import counted
from chainkit_jobs.cli.options import (
    EXIT_FINDINGS,
    EXIT_NOT_COMPARED,
    chain_option,
    check_export_folder,
    master_option,
    out_option,
    trust_option,
)
from chainkit_jobs.findings import Severity
from chainkit_jobs.output_folder import check_free
from chainkit_jobs.proof import check_trusted_hash
from chainkit_jobs.reconcile.audit import run_audit
from chainkit_jobs.reconcile.inputs import open_inputs, proving
from chainkit_jobs.reconcile.kept import KeptAudits, audit_name
from chainkit_jobs.reconcile.scope import Options
from chainkit_jobs.report.compared import tables_compared
from chainkit_jobs.spark.session import spark_context

_FOLDER_WIDTH: Final = 43
"""Columns that the table of nodes leaves to a folder."""


@click.command("reconcile", cls=CompleteCommand)
@chain_option
@click.option(
    "--node",
    "node_arguments",
    required=True,
    multiple=True,
    metavar="[ID=]DIR",
    help="Node export, as `chainkit index export` or `chainkit audit export-node` writes it; "
    "without its id, found by its key. A node that was asked several times may have several.",
)
@out_option("Folder")
@trust_option()
@click.option(
    "--fail-on",
    type=click.Choice([severity.value for severity in Severity]),
    default=Severity.MINOR.value,
    show_default=True,
    help="Least severity of a finding that makes the exit code 1.",
)
@click.option(
    "--without-signatures",
    is_flag=True,
    help="Compare bytes only: a tenth of the work. No signature is checked, so nothing proves who "
    "wrote an envelope.",
)
@click.option(
    "--tables",
    "with_tables",
    is_flag=True,
    help="Compare also what nodes' exports say beside their envelopes: columns, quarantine, "
    "journal, registry, cursor.",
)
@click.option(
    "--without-costs", is_flag=True, help="Leave out what the chain cost: see `audit cost`."
)
@click.option(
    "--work",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that keeps what was compared: a killed run goes on, a later one does the rest.",
)
@master_option
@json_option
def reconcile_command(
    chain_path: Path,
    node_arguments: tuple[str, ...],
    out: Path,
    trusted_hash: bytes | None,
    fail_on: str,
    without_signatures: bool,
    with_tables: bool,
    without_costs: bool,
    work: Path | None,
    master: str,
    as_json: bool,
) -> None:
    """Compare the exports of two or more nodes with a chain export.

    A node whose export is at fault is set aside, with the reason, and the others are compared. The
    first line says what was not proved or checked; findings that rest on it are less severe.

    Exits 0 if nothing was found, 1 with findings of the severity given or graver, 2 if something
    could not be compared, or a node serves what the chain export cannot decide about.

    \b
    Example:
      chainkit audit reconcile --chain chain/ --trust 0x5f3e… --node node-a/ --node 200=node-b/ \\
        --out audit/
    """
    if len(node_arguments) < 2:
        raise click.UsageError("expected two or more of --node, got 1")
    nodes = [_parse_node(argument) for argument in node_arguments]
    options = {
        "with_signatures": not without_signatures,
        "with_tables": with_tables,
        "with_costs": not without_costs,
        "work": work,
    }
    summary = _reconcile(chain_path, nodes, out, trusted_hash, master, options)
    if as_json:
        echo_json(summary)
    else:
        _echo_summary(summary, out)
    if open_questions := [*summary["set_aside"], *summary["undecided"]]:
        for sentence in open_questions:
            echo_error(sentence)
        sys.exit(EXIT_NOT_COMPARED)
    least = Severity(fail_on).rank
    if any(Severity(severity).rank <= least for severity in summary["severities"]):
        sys.exit(EXIT_FINDINGS)


def _reconcile(
    chain_path: Path,
    nodes: list[tuple[int | None, Path]],
    out: Path,
    trusted_hash: bytes | None,
    master: str,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    check_free(out)
    # A fault in one node's folder must not end the audit of the others.
    check_export_folder(chain_path)
    inputs = open_inputs(chain_path, nodes)
    if trusted_hash is not None:
        check_trusted_hash(inputs.chain, trusted_hash)
    wanted = Options(**options)
    kept = KeptAudits(wanted.work) if wanted.work else None
    name = audit_name(inputs, trusted_hash, wanted)
    if kept and inputs.are_sound and kept.has(name):
        with proving(inputs) as proved:
            inputs = proved()
        if inputs.are_sound:
            return kept.restore(name, out)
    with ThreadPoolExecutor(1) as beside:
        # Imported late: the drawing code takes a second to import, and is needed only at the end.
        beside.submit(import_module, "chainkit_jobs.reconcile.outputs")
        with ExitStack() as session:
            # Spark starts meanwhile.
            proved = session.enter_context(proving(inputs))
            context = session.enter_context(spark_context(master))
            inputs = proved()
            result = run_audit(context, inputs, trusted_hash, wanted)
            stopped = beside.submit(session.pop_all().close)
        from chainkit_jobs.reconcile.outputs import write_outputs

        summary = write_outputs(out, result)
        stopped.result()
    # The name of a kept audit covers the manifests, and not a folder's fault.
    if kept and not summary["set_aside"]:
        kept.keep(name, out)
    return summary


def _parse_node(argument: str) -> tuple[int | None, Path]:
    """Take ``ID=DIR`` apart; a folder whose name holds no id before ``=`` is a folder."""
    identity, separator, directory = argument.partition("=")
    if separator and identity.isdecimal():
        return int(identity), Path(directory)
    return None, Path(argument)


def _echo_summary(summary: Mapping[str, Any], out: Path) -> None:
    chain = summary["chain"]
    click.echo("\n".join(textwrap.wrap(summary["verdict"], LINE_WIDTH)))
    click.echo(
        f"{chain['payloads']} payloads ({chain['quarantined']} malformed) in blocks "
        f"{chain['from_block']} to {chain['to_block']}\n"
    )
    click.echo(f"{'node':>6}  {'status':<9}{'expected':>9}{'served':>9}{'matched':>9}  findings")
    for node in summary["nodes"]:
        status = "enabled" if node["is_enabled"] else "disabled"
        codes = ", ".join(f"{code} {count}" for code, count in node["findings"].items()) or "none"
        if node["undecided"]:
            codes += f", undecided {node['undecided']}"
        counts = [node["expected"], node["served"], node["matched"]]
        if not node["compared"]:
            counts, codes = ["-"] * 3, "not compared"
        numbers = "".join(f"{count:>9}" for count in counts)
        click.echo(f"{node['node_id']:>6}  {status:<9}{numbers}  {codes}")
    for export in summary["refused"]:
        name = "-" if export["node_id"] is None else export["node_id"]
        numbers = f"{'-':>9}" * 3
        click.echo(f"{name:>6}  {'-':<9}{numbers}  not compared: {_end_of(export['folder'])}")
    if summary["with_tables"]:
        words = f"compared beside the envelopes: {tables_compared(summary['tables_compared'])}"
        click.echo("\n".join(textwrap.wrap(words, LINE_WIDTH)))
    for sentence in summary["not_compared"]:
        click.echo(f"not compared: {sentence}")
    findings = counted(summary["findings_total"], "finding")
    click.echo(f"\n{findings}; see {out / 'report.html'}")


def _end_of(folder: str) -> str:
    """Return the end of a folder's name that fits its row; a sentence below has the whole name."""
    return folder if len(folder) <= _FOLDER_WIDTH else f"...{folder[3 - _FOLDER_WIDTH :]}"

"""``node payer-reports``: payers' debts, listed, exported for a settlement, and proved to a payer.

The commands read the database alone, also beside a running node.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import click
from sqlalchemy import Connection

from chainkit.documents.files import moved_into_place
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.protocol.charges import ADDRESS_LENGTH
from chainkit.protocol.payer_reports import PayerReport, PayerTotal, stored_report, verify_total
from chainkit.terminal.command import CompleteCommand, SuggestingGroup
from chainkit.terminal.options import echo_json, json_option
from chainkit.text.counting import counted
from chainkit.text.hexadecimal import hex0x, parse_bytes
from chainkit_indexer.service.opening import existing
from chainkit_indexer.service.options import database_option
from chainkit_node.storage.payer_reports import (
    StoredPayerReport,
    read_attestations,
    read_refused_reports,
    read_report_at,
    read_reporters,
    read_reports_behind,
)

_COLUMNS: Final = {
    "originator_id": "int64",
    "first_id": "int64",
    "last_id": "int64",
    "is_attested": "bool",
    "payer": "string",
    "messages": "int64",
    "bytes": "int64",
    "byte_days": "int64",
}
"""The columns of an export in Parquet, a row for each payer of a report."""

_NODE = click.IntRange(min=1)
_only_option = click.option(
    "--originator", "originator_id", type=_NODE, metavar="NODE", help="Only reports of this node."
)
_originator_option = click.option(
    "--originator",
    "originator_id",
    type=_NODE,
    metavar="NODE",
    required=True,
    help="The node whose envelopes the report is about.",
)
_id_option = click.option(
    "--id",
    "sequence_id",
    type=click.IntRange(min=1),
    metavar="ID",
    required=True,
    help="A sequence id that the report covers.",
)


@click.group(cls=SuggestingGroup)
def payer_reports_command() -> None:
    """Show the payer reports that this node holds, export them, and prove a payer's total.

    \b
    Example:
      chainkit node payer-reports list --database node.db
    """


@payer_reports_command.command("list", cls=CompleteCommand)
@database_option
@_only_option
@click.option("--refused", "is_refused", is_flag=True, help="List those that this node refused.")
@json_option
def list_command(database: str, originator_id: int | None, is_refused: bool, as_json: bool) -> None:
    """List the reports by originator and range, with their sums and who has signed them.

    \b
    Example:
      chainkit node payer-reports list --database node.db
    """
    with existing(database) as store, store.reading() as connection:
        if is_refused:
            found = list(_refused(connection, originator_id))
        else:
            found = [_summary(connection, each) for each in _stored(connection, originator_id)]
    if as_json:
        echo_json(found)
        return
    for each in found:
        click.echo(_line(each))
    if not found:
        click.echo("no payer reports")


@payer_reports_command.command("show", cls=CompleteCommand)
@database_option
@_originator_option
@_id_option
@json_option
def show_command(database: str, originator_id: int, sequence_id: int, as_json: bool) -> None:
    """Show the totals of the report that covers a sequence id.

    \b
    Example:
      chainkit node payer-reports show --database node.db --originator 100 --id 1
    """
    with existing(database) as store, store.reading() as connection:
        row = _covering(connection, originator_id, sequence_id)
        found = _whole(connection, row)
    if as_json:
        echo_json(found)
        return
    click.echo(_line(found))
    for each in found["totals"]:
        click.echo(f"payer {each['payer']}: {_sums(each)}")


@payer_reports_command.command("export", cls=CompleteCommand)
@database_option
@_only_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "parquet"]),
    default="json",
    show_default=True,
    help="JSON lines, one for each report with its signatures; or a row for each payer.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="A new file.",
)
def export_command(database: str, originator_id: int | None, form: str, output: Path) -> None:
    """Write all reports to a file that a settlement reads.

    \b
    Example:
      chainkit node payer-reports export --database node.db --output reports.json
    """
    write = _write_json if form == "json" else _write_parquet
    with _new_file(output) as file, existing(database) as store, store.reading() as connection:
        count = write(file, connection, _stored(connection, originator_id))
    click.echo(f"{output}: {counted(count, 'payer report')}")


@payer_reports_command.command("prove", cls=CompleteCommand)
@click.argument("payer")
@database_option
@_originator_option
@_id_option
def prove_command(payer: str, database: str, originator_id: int, sequence_id: int) -> None:
    """Print a payer's total of one report, in JSON, with the proof that the report has it.

    The proof is the one that the network's settlement contract takes: the number of leaves, and the
    neighbours from the leaf to the root. PAYER is an address.

    \b
    Example:
      chainkit node payer-reports prove 0x06012c8cf97bead5deae237070f9587f8e7a266d \\
        --database node.db --originator 100 --id 1
    """
    address = _address(payer)
    with existing(database) as store, store.reading() as connection:
        row = _covering(connection, originator_id, sequence_id)
        found = _summary(connection, row)
    report = stored_report(row.report, row.payers)
    index, proof = report.proof(address)
    total = report.totals[index]
    verify_total(row.report, index, total, proof)
    signed = {"unsigned_payer_report": hex0x(row.report), "signature": hex0x(row.signature)}
    shown = {"total": _described(total), "index": index, "proof": [hex0x(each) for each in proof]}
    echo_json(found | signed | shown)


def _stored(connection: Connection, originator_id: int | None) -> Iterator[StoredPayerReport]:
    """Yield reports by originator and range; one is in memory at a time."""
    known = read_reporters(connection)
    for each in known if originator_id is None else [originator_id]:
        after = 0
        while rows := read_reports_behind(connection, each, after, 1):
            yield rows[0]
            after = rows[0].last_id


def _refused(connection: Connection, originator_id: int | None) -> Iterator[dict[str, Any]]:
    for row in read_refused_reports(connection):
        if originator_id in (None, row.originator_id):
            yield {
                "originator_id": row.originator_id,
                "first_id": row.first_id,
                "last_id": row.last_id,
                "refused_ns": row.refused_ns,
                "reason": row.reason,
                "signed_payer_report": hex0x(row.report),
            }


def _covering(connection: Connection, originator_id: int, sequence_id: int) -> StoredPayerReport:
    row = read_report_at(connection, originator_id, sequence_id)
    if row is None:
        subject = f"id {sequence_id} of originator {originator_id}"
        raise MalformedData(subject, "one that a payer report covers", "none")
    return row


def _summary(connection: Connection, row: StoredPayerReport) -> dict[str, Any]:
    report = stored_report(row.report, row.payers)
    attesters = read_attestations(connection, row.originator_id, row.first_id)
    return {
        "originator_id": row.originator_id,
        "first_id": row.first_id,
        "last_id": row.last_id,
        "is_attested": row.attested_ns is not None,
        "signers": sorted({row.originator_id, *attesters}),
        "payers": len(report.totals),
        "messages": sum(each.messages for each in report.totals),
        "bytes": sum(each.bytes for each in report.totals),
        "byte_days": sum(each.byte_days for each in report.totals),
        "billed_to_nobody": report.billed_to_nobody,
        "missing": sum(map(len, report.missing)),
    }


def _whole(connection: Connection, row: StoredPayerReport) -> dict[str, Any]:
    report = stored_report(row.report, row.payers)
    return _summary(connection, row) | {"totals": list(map(_described, report.totals))}


def _described(total: PayerTotal) -> dict[str, Any]:
    return total._asdict() | {"payer": hex0x(total.payer)}


def _line(each: dict[str, Any]) -> str:
    place = f"node {each['originator_id']} ids {each['first_id']} to {each['last_id']}"
    if "reason" in each:
        return f"{place} refused: {each['reason']}"
    state = "attested" if each["is_attested"] else "not attested yet"
    signers = ", ".join(map(str, each["signers"]))
    payers = counted(each["payers"], "payer")
    return f"{place} {state}, by {signers}: {payers}, {_sums(each)}"


def _sums(each: dict[str, Any]) -> str:
    messages = counted(each["messages"], "message")
    return f"{messages}, {each['bytes']} bytes, {each['byte_days']} byte-days"


@contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears once all is written. Raises ConfigurationError."""
    if path.exists():
        raise ConfigurationError("--output", "a new file", "one that exists", str(path))
    try:
        with moved_into_place(path) as partial, partial.open("xb") as file:
            yield file
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError("--output", "a file to write", reason, str(path)) from error


def _write_json(file: BinaryIO, connection: Connection, rows: Iterator[StoredPayerReport]) -> int:
    count = 0
    for row in rows:
        attesters = read_attestations(connection, row.originator_id, row.first_id)
        signed = {
            "unsigned_payer_report": hex0x(row.report),
            "signature": hex0x(row.signature),
            "attestations": {str(each): hex0x(sign) for each, sign in attesters.items()},
        }
        file.write(json.dumps(_whole(connection, row) | signed).encode() + b"\n")
        count += 1
    return count


def _write_parquet(
    file: BinaryIO, connection: Connection, rows: Iterator[StoredPayerReport]
) -> int:
    # Loaded only for this format: it takes a quarter of a second.
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in _COLUMNS.items()])
    count = 0
    with pq.ParquetWriter(file, schema) as writer:
        for row in rows:
            report = stored_report(row.report, row.payers)
            writer.write_table(pa.Table.from_pylist(_payer_rows(row, report), schema))
            count += 1
    return count


def _payer_rows(row: StoredPayerReport, report: PayerReport) -> list[dict[str, Any]]:
    place = {
        "originator_id": row.originator_id,
        "first_id": row.first_id,
        "last_id": row.last_id,
        "is_attested": row.attested_ns is not None,
    }
    return [place | _described(each) for each in report.totals]


def _address(text: str) -> bytes:
    try:
        return parse_bytes(text.lower(), ADDRESS_LENGTH)
    except ValueError as error:
        raise ConfigurationError("PAYER", "an address of 20 bytes", text) from error

"""``chainkit audit import-chain``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from chainkit.contracts.followed import read_recorded_deployment
from chainkit.errors import ConfigurationError
from chainkit.exports import count_rows
from chainkit.exports.tables import CHAIN_TABLES
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import (
    deployment_option,
    echo_json,
    height_option,
    json_option,
    path_option,
)
from chainkit.text.counting import counted
from chainkit_jobs.adapters.faults import Fault
from chainkit_jobs.adapters.importing import Imported, check_new_export, import_chain
from chainkit_jobs.adapters.registry import ADAPTERS
from chainkit_jobs.chain_export.limits import DEFAULT_RANGE_BLOCKS
from chainkit_jobs.cli.options import EXIT_FINDINGS, master_option
from chainkit_jobs.spark.session import spark_session

FORMATS: Final = ("aws", "bigquery", "cryo", "ethereum-etl")


@click.command("import-chain", cls=CompleteCommand)
@click.option(
    "--format",
    "format_name",
    required=True,
    type=click.Choice(FORMATS),
    help="The tool that wrote the files.",
)
@path_option("--source", "source", "DIR", "Folder with the files.", required=True)
@deployment_option
@height_option("--from-block", "from_block", "First block [the deployment's].")
@height_option("--to-block", "to_block", "Last block [the source's].")
@path_option("--out", "out", "DIR", "Folder of the export; it must hold none yet.", required=True)
@click.option(
    "--range-blocks",
    type=click.IntRange(min=1),
    default=DEFAULT_RANGE_BLOCKS,
    show_default=True,
    metavar="N",
    help="Blocks per file.",
)
@master_option
@json_option
def import_chain_command(
    format_name: str,
    source: Path,
    deployment_path: Path,
    from_block: int | None,
    to_block: int | None,
    out: Path,
    range_blocks: int,
    master: str,
    as_json: bool,
) -> None:
    """Make a chain export of files that another tool wrote, if nothing is wrong with them.

    Duplicates, missing or half-written blocks, broken links, rows of other chains or forks, bad
    encodings and the like are named and counted; then nothing is written. Exits 0 if an export was
    written, 1 with faults, 2 if the files could not be read.

    No import can be proved from a block hash (`verify-chain`, `reconcile --trust`). All these files
    lack the header's mix_hash and newer fields, and transactions' signatures; cryo's and AWS's lack
    the difficulty, and cryo's also uncles, nonce and gas limit. The export lacks the ends of the
    contracts' counters, too. An audit of it says so, and calls nothing clean. For evidence, use
    `export-chain`.

    \b
    Example:
      chainkit audit import-chain --format cryo --source cryo/ --deployment record.json \\
        --out chain/
    """
    record = read_recorded_deployment(deployment_path)
    if not source.is_dir():
        expected = f"a folder with files of {format_name}"
        raise ConfigurationError(f"source {source}", expected, "none")
    check_new_export(out)
    # Spark takes seconds to start, and reports a bad file in Java's words.
    ADAPTERS[format_name].check(source.resolve())
    with spark_session(master) as spark:
        imported = import_chain(
            spark,
            ADAPTERS[format_name],
            source,
            record,
            out,
            range_blocks,
            from_block,
            to_block,
        )
    if as_json:
        echo_json(_as_json(imported))
    elif imported.manifest is not None:
        counts = ", ".join(
            f"{count} {name}" for name, count in count_rows(imported.manifest, CHAIN_TABLES).items()
        )
        last = f"{imported.manifest.to_block} ({imported.manifest.to_block_hash})"
        click.echo(f"{out}: {counts}, up to block {last}")
    else:
        _echo_faults(imported.faults)
    if imported.faults:
        sys.exit(EXIT_FINDINGS)


def _echo_faults(faults: tuple[Fault, ...]) -> None:
    click.echo(f"{'code':<19}{'table':<14}{'count':>9}  first place")
    for fault in faults:
        click.echo(f"{fault.code:<19}{fault.table:<14}{fault.count:>9}  {fault.place}")
        click.echo(f"{'':<19}expected {fault.expected}, got {fault.got}")
    click.echo(f"\n{counted(len(faults), 'kind')} of fault; nothing was written")


def _as_json(imported: Imported) -> dict[str, Any]:
    manifest = imported.manifest
    written = manifest and {
        "from_block": manifest.from_block,
        "to_block": manifest.to_block,
        "to_block_hash": manifest.to_block_hash,
        "rows": count_rows(manifest, CHAIN_TABLES),
    }
    return {
        "written": written,
        "faults": [
            {name: getattr(fault, name) for name in fault.__slots__} for fault in imported.faults
        ],
    }

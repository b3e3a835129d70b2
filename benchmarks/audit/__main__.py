"""`python -m benchmarks.audit`: makes exports of any size, and measures the audit on them."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.audit.exports.generate import generate
from benchmarks.audit.exports.shape import PAYLOAD_BYTES, Shape
from benchmarks.audit.faults.inject import Injection
from benchmarks.audit.faults.plan import plan_together, write_plan
from benchmarks.audit.measuring import measured_figures
from benchmarks.audit.page import section
from benchmarks.audit.sizes import QUICK, USUAL, Sizes
from benchmarks.audit.table import lines
from benchmarks.command import measuring, write_figures, write_section
from benchmarks.machine import hardware, versions
from chainkit.errors import ChainkitError
from localnet.deployment import PROJECT

RESULT: Final = PROJECT / "build" / "bench" / "audit.json"
_PACKAGES: Final = ("pyspark", "pyarrow", "coincurve", "protobuf", "duckdb", "polars")


@click.group()
def main() -> None:
    """Make exports of any size, and measure the audit on them.

    \b
    Example:
      python -m benchmarks.audit generate --rows 1000000 --out build/exports
    """


@main.command("generate")
@click.option("--rows", type=click.IntRange(min=1), required=True, help="Payloads on the chain.")
@click.option("--nodes", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--rows-per-block", type=click.IntRange(min=1), default=100, show_default=True)
@click.option(
    "--random-bytes",
    type=click.IntRange(0, PAYLOAD_BYTES),
    default=PAYLOAD_BYTES,
    show_default=True,
    help="The most bytes of a payload that differ from others': fewer compress.",
)
@click.option("--signed", is_flag=True, help="Sign with the nodes' keys, not with random bytes.")
@click.option("--faults", type=click.IntRange(min=0), default=0, help="Faults of the nodes.")
@click.option(
    "--chain-faults", type=click.IntRange(min=0), default=0, help="Faults of the chain's export."
)
@click.option("--expected", is_flag=True, help="Also write what the chain demands, into expected/.")
@click.option("--seed", type=click.IntRange(min=0), default=49, show_default=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option("--json", "as_json", is_flag=True, help="Say in JSON what was written.")
def generate_command(
    rows: int,
    nodes: int,
    rows_per_block: int,
    random_bytes: int,
    signed: bool,
    faults: int,
    chain_faults: int,
    expected: bool,
    seed: int,
    out: Path,
    as_json: bool,
) -> None:
    """Write an export of a chain, and of each node that serves it.

    Faults are of all kinds in turn, at random places; faults.jsonl says where, and what an audit
    must find of each. Exits 0 when done, 2 if it could not write.

    \b
    Example:
      python -m benchmarks.audit generate --rows 1000000 --nodes 3 --out build/exports --signed
    """
    shape = Shape(
        rows=rows,
        nodes=nodes,
        rows_per_block=rows_per_block,
        random_bytes=random_bytes,
        is_signed=signed,
        seed=seed,
    )
    try:
        plan = plan_together(shape, faults, chain_faults)
        made = generate(out, shape, Injection(plan) if plan.faults else None, expected)
        if plan.faults:
            write_plan(out / "faults.jsonl", plan)
    except (ChainkitError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    nodes_made = {str(node_id): str(path) for node_id, path in made.nodes.items()}
    if as_json:
        click.echo(json.dumps({"chain": str(made.chain), "nodes": nodes_made}))
        return
    for path in (made.chain, *made.nodes.values()):
        click.echo(path)


@main.command("measure")
@click.option("--quick", is_flag=True, help="Some thousand payloads: does it work at all?")
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    envvar="BENCH_AUDIT_ROWS",
    show_envvar=True,
    help=f"Payloads on the chain, of which each of three nodes has a row.  [default: {USUAL.rows}]",
)
@click.option("--linear", is_flag=True, help="Also ten times the rows: is the cost of each one's?")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Where the exports are written, 1.8 kB for each of the rows.  [default: build/bench]",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=RESULT,
    show_default="build/bench/audit.json",
    help="Where the figures go, as JSON.",
)
@click.option("--write-docs", is_flag=True, help="Write the section of docs/benchmarks.md too.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def measure_command(
    quick: bool,
    rows: int | None,
    linear: bool,
    folder: Path | None,
    output: Path,
    write_docs: bool,
    as_json: bool,
) -> None:
    """Measure the audit beside what it cannot be faster than, and beside other engines.

    Exits 0 when done, 2 if it could not measure.

    \b
    Example:
      python -m benchmarks.audit measure --quick
    """
    if quick and write_docs:
        raise click.UsageError("--quick measures too little for --write-docs")
    sizes = replace(QUICK if quick else USUAL, is_linearity_measured=linear)
    with measuring():
        figures = _measured(replace(sizes, rows=rows) if rows else sizes, folder)
    write_figures(output, figures)
    if write_docs:
        write_section(section(figures))
    for line in [json.dumps(figures, indent=2)] if as_json else lines(figures):
        click.echo(line)


def _measured(sizes: Sizes, folder: Path | None) -> dict[str, Any]:
    parent = folder or RESULT.parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as name:
        figures = measured_figures(sizes, Path(name), _tell)
    return figures | {"machine": hardware() | versions(_PACKAGES)}


def _tell(step: str) -> None:
    click.echo(step, err=True)


if __name__ == "__main__":
    main()

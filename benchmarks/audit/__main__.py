"""`python -m benchmarks.audit`: makes exports of any size, and measures the audit on them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.audit.exports.generate import generate
from benchmarks.audit.exports.shape import PAYLOAD_BYTES, Shape
from benchmarks.audit.faults.inject import Injection
from benchmarks.audit.faults.plan import plan_together, write_plan
from benchmarks.audit.measuring import measured_figures
from benchmarks.audit.page import page
from benchmarks.audit.sizes import QUICK, USUAL
from benchmarks.harness import FOLDER, Benchmark, disk_folder
from benchmarks.machine import machine
from chainkit.errors import ChainkitError

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
@click.option(
    "--signed", "is_signed", is_flag=True, help="Sign with the nodes' keys, not with random bytes."
)
@click.option("--faults", type=click.IntRange(min=0), default=0, help="Faults of the nodes.")
@click.option(
    "--chain-faults", type=click.IntRange(min=0), default=0, help="Faults of the chain's export."
)
@click.option("--expected", is_flag=True, help="Also write what the chain demands, into expected/.")
@click.option("--seed", type=click.IntRange(min=0), default=49, show_default=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option("--json", "as_json", is_flag=True, help="Say in JSON what was written.")
def generate_command(
    faults: int, chain_faults: int, expected: bool, out: Path, as_json: bool, **options: Any
) -> None:
    """Write an export of a chain, and of each node that serves it.

    Faults are of all kinds in turn, at random places; faults.jsonl says where, and what an audit
    must find of each. Exits 0 when done, 2 if it could not write.

    \b
    Example:
      python -m benchmarks.audit generate --rows 1000000 --nodes 3 --out build/exports --signed
    """
    shape = Shape(**options)
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


def measure(quick: bool, rows: int | None, linear: bool, folder: Path | None) -> dict[str, Any]:
    """Measure the audit beside what it cannot be faster than, and beside other engines."""
    sizes = QUICK if quick else USUAL
    if rows:
        sizes = replace(sizes, rows=rows)
    with disk_folder(folder or FOLDER) as exports:
        figures = measured_figures(sizes, linear, exports, lambda step: click.echo(step, err=True))
    return figures | {"machine": machine(_PACKAGES)}


BENCHMARK: Final = Benchmark(
    "audit measure", "How fast the audit is", "Some thousand payloads", measure, page
)
main.add_command(
    BENCHMARK.command(
        click.option(
            "--rows",
            type=click.IntRange(min=1),
            envvar="BENCH_AUDIT_ROWS",
            show_envvar=True,
            help="Payloads on the chain, of which each of three nodes has a row.  "
            f"[default: {USUAL.rows}]",
        ),
        click.option(
            "--linear", is_flag=True, help="Also ten times the rows: is the cost of each one's?"
        ),
        click.option(
            "--folder",
            type=click.Path(file_okay=False, exists=True, path_type=Path),
            help="Where the exports are written, 1.8 kB for each of the rows.  "
            "[default: build/bench]",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON."),
    ),
    "measure",
)

if __name__ == "__main__":
    main()

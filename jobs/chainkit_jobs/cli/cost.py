"""``chainkit audit cost``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, json_option
from chainkit_jobs.cli.options import chain_option, check_export_folder, master_option, out_option
from chainkit_jobs.cost.job import cost_tables, read_chain
from chainkit_jobs.cost.outputs import write_costs
from chainkit_jobs.cost.terminal import cost_lines
from chainkit_jobs.cost.writing import json_text
from chainkit_jobs.output_folder import check_free
from chainkit_jobs.spark.session import spark_session


@click.command("cost", cls=CompleteCommand)
@chain_option
@out_option("Folder")
@master_option
@json_option
def cost_command(chain_path: Path, out: Path, master: str, as_json: bool) -> None:
    """Say what a chain cost, by contract, function, payer, hour, day and payload size.

    Exits 0, or 2 if the export cannot be read.

    \b
    Example:
      chainkit audit cost --chain chain/ --out cost/
    """
    check_free(out)
    check_export_folder(chain_path)
    chain = read_chain(chain_path)
    with spark_session(master) as spark, cost_tables(spark, chain) as costs:
        summary = write_costs(out, costs)
    if as_json:
        echo_json(json.loads(json_text(summary)))
        return
    for line in cost_lines(summary):
        click.echo(line)
    click.echo(
        f"\n{sum(summary['rows'].values())} rows in {len(summary['rows'])} tables; see {out}"
    )

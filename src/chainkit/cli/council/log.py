"""``chainkit council log``: the council's acts, and acts without the council, from the chain."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from chainkit.chain import Endpoint
from chainkit.cli.change.proposal_options import council_option
from chainkit.cli.council.log_output import echo_trail, trail_json
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.council.log.proposals import KeptProposals, read_kept
from chainkit.council.log.trail import read_trail
from chainkit.council.proposal import AddressBook, read_council
from chainkit.errors import ConfigurationError
from chainkit.terminal.bar import progress_bar
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.connection import open_chain
from chainkit.terminal.options import (
    deployment_option,
    echo_json,
    height_option,
    json_option,
    rpc_option,
)
from chainkit.types import BlockHeader, BlockReference


@click.command("log", cls=CompleteCommand)
@rpc_option
@deployment_option
@council_option
@height_option(
    "--from-block",
    "first_block",
    "Height to begin at; the first contract's block where it is not given.",
)
@height_option("--block", "last_block", "Height to end at; the newest block where it is not given.")
@click.option(
    "--proposals",
    "proposals_path",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of proposal files: of those that were executed, reason and evidence are shown.",
)
@json_option
def log(
    rpc_url: str,
    deployment_path: Path,
    council_path: Path,
    first_block: int | None,
    last_block: int | None,
    proposals_path: Path | None,
    as_json: bool,
) -> None:
    """Show the acts of the council's account, their signers and senders, and acts without it.

    Exits 0 if all is the council's, its operators' or the deployment's own doing. Exits 1 after
    a change of the contracts by another account (one before the council took over, too: begin
    behind it with --from-block), an act or a change of the Safe without its owners, such as by a
    module, foreign code that the Safe ran, or signs of hidden events. Changes of the Safe by its
    owners are warned of. Exits 2 if the chain could not be read. Transactions that reverted left no
    event and are not listed.

    \b
    Example:
      chainkit council log --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --council council.json --proposals proposals
    """
    council = read_council(council_path)
    endpoint, record, head = open_chain(rpc_url, deployment_path)
    if council.chain_id != record.chain_id:
        expected = f"chain id {record.chain_id}, as the deployment record has it"
        raise ConfigurationError("council file", expected, council.chain_id)
    kept = read_kept(proposals_path, record, council) if proposals_path else KeptProposals()
    block = _last(endpoint, head, last_block)
    first = _first(record, block, first_block)
    trail = read_trail(endpoint, record, council, kept, first, block, progress_bar)
    if as_json:
        echo_json(trail_json(trail, council, kept))
    else:
        echo_trail(trail, AddressBook(record, council), council, kept)
    if not trail.is_clean:
        sys.exit(1)


def _last(endpoint: Endpoint, head: BlockHeader, number: int | None) -> BlockReference:
    if number is None:
        return head.reference
    if number > head.number:
        raise ConfigurationError("--block", f"a height up to {head.number} (the head)", number)
    return endpoint.header(number).reference


def _first(record: DeploymentRecord, block: BlockReference, number: int | None) -> int:
    first = record.first_block if number is None else number
    if first > block.number:
        expected = f"a height up to {block.number}, where the log ends"
        raise ConfigurationError("--from-block", expected, first)
    return first

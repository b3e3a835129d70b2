"""``chainkit council init``: a member's own file, read once from the chain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from chainkit.cli.change.proposal_options import council_option_for
from chainkit.cli.change.typed_addresses import typed_account
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.state import ContractState
from chainkit.council.calls.cautions import threshold_cautions
from chainkit.council.proposal import AddressBook, council_content, write_council
from chainkit.council.proposal.account_state import AccountState, find_account_state
from chainkit.council.proposal.roles import has_role
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.connection import open_chain
from chainkit.terminal.facts import echo_fact
from chainkit.terminal.options import (
    deployment_option,
    echo_json,
    json_option,
    rpc_option,
)


@click.command("init", cls=CompleteCommand)
@click.argument("account", metavar="ADDRESS")
@council_option_for("The file to write; it must not exist.", required=True)
@rpc_option
@deployment_option
@json_option
def init(
    account: str, council_path: Path, rpc_url: str, deployment_path: Path, as_json: bool
) -> None:
    """Write your council file: the account, its Safe's release, its owners under plain names.

    ADDRESS is the council's Safe, or its plain account, from a source that you trust. Read the
    file, give the owners their names, and keep it: proposals are compared with it.

    \b
    Example:
      chainkit council init 0x5FbDB2315678afecb367f032d93F642f64180aa3 --council council.json \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    address = bytes.fromhex(typed_account(account, "ADDRESS")[2:])
    endpoint, record, head = open_chain(rpc_url, deployment_path)
    state = ContractState(endpoint, head.reference)
    found = find_account_state(state, record.chain_id, address)
    council, cautions = found.council, (*found.cautions, *_doubts(found, record))
    write_council(council_path, council)
    if as_json:
        echo_json(council_content(council) | {"cautions": list(cautions)})
        return
    address_book = AddressBook(record, council)
    kind = f"Safe {council.safe.release}" if council.safe else "an account with a key"
    echo_fact("account", f"{council.address} ({kind})")
    echo_fact("chain id", str(record.chain_id))
    echo_fact("read at", f"block {head.reference}")
    if council.safe:
        echo_fact("signatures", f"{found.threshold} of {len(found.owners)} owners")
    for owner in found.owners if council.safe else ():
        echo_fact("", address_book.described(owner))
    for caution in cautions:
        echo_fact("caution", caution)
    echo_fact("written to", f"{council_path}; compare the addresses, then name the owners in it")


def _doubts(found: AccountState, record: DeploymentRecord) -> Iterator[str]:
    """Return signs of a mistyped or another chain's address, and the risks of a single key."""
    if found.safe is not None:
        yield from threshold_cautions(len(found.owners), found.threshold)
    again = "compare it with its source again"
    if found.safe is None and found.nonce == 0:
        yield f"this account has no code and has never acted on chain {record.chain_id}: {again}"
    if not has_role(found.contracts, record, found.council.address):
        words = "neither owns the registry, nor is offered it, nor administers a log"
        yield f"this account {words}: {again}, or hand over to it first"

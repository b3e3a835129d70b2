"""``chainkit council`` with an endpoint: a proposal's status, approval and execution."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from eth_utils.address import to_checksum_address

from chainkit.cli.change.proposal_options import (
    MemberFiles,
    Reading,
    no_tracing_option,
    proposal_argument,
    reading_options,
)
from chainkit.cli.change.proposal_output import (
    echo_cautions,
    echo_proposal,
    echo_slots,
    echo_status,
    proposal_json,
    status_json,
)
from chainkit.cli.change.proposal_simulation import simulated
from chainkit.cli.change.screen import Screen
from chainkit.cli.change.sending import (
    NOT_SENT,
    SendingOptions,
    broadcast_option,
    sent_json,
    signing_options,
)
from chainkit.cli.council.confirming import check_expiry, confirm, digits_option
from chainkit.contracts.state import ContractState
from chainkit.council.proposal.account_state import read_account_state
from chainkit.council.proposal.account_transaction import AccountTransaction
from chainkit.council.proposal.agreement import approval_call, send_approval, sign_approval
from chainkit.council.proposal.execution import execute, prepare, require_executable, sign_execution
from chainkit.council.proposal.nonce_use import NonceUse
from chainkit.council.proposal.status import ProposalStatus, read_status
from chainkit.council.proposal.transaction_builder import approval_file
from chainkit.documents.files import write_new
from chainkit.errors import AccessRefused, ConfigurationError, RefusedRequest, UndecodedState
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.connection import open_chain
from chainkit.terminal.facts import echo_fact, shown_to_people
from chainkit.terminal.options import (
    echo_json,
    gathered,
    json_option,
    rpc_option,
    several,
)
from chainkit.text.hexadecimal import hex0x

_status_options = several(proposal_argument, rpc_option, reading_options, no_tracing_option)


@click.command("status", cls=CompleteCommand)
@_status_options
@json_option
def status(
    proposal_path: Path,
    rpc_url: str,
    files: MemberFiles,
    no_tracing: bool,
    as_json: bool,
) -> None:
    """Check a proposal against the newest block: its signers, its changes, its obstacles.

    Exits 0 if it can be executed now, 1 if not yet or no longer.

    \b
    Example:
      chainkit council status disable-300.json --rpc http://127.0.0.1:8545 \\
        --deployment deployment.json --council council.json
    """
    reading = Reading.open(proposal_path, files)
    status = _read_status_of(reading, rpc_url, files)
    status, slots = _tried(reading, status, no_tracing)
    if as_json:
        echo_json(_content(reading, status, slots))
    elif status.nonce_use is not None and status.nonce_use.is_own:
        _echo_past(status.nonce_use)
    else:
        _echo(reading, status, slots)
        for obstacle in status.obstacles:
            echo_fact("in the way", obstacle)
        if status.is_executable:
            click.echo("it can be executed: chainkit council execute")
    if not status.is_executable:
        sys.exit(1)


@click.command("approve", cls=CompleteCommand)
@_status_options
@broadcast_option
@signing_options("an owner")
@click.option(
    "--export",
    "batch_path",
    metavar="BATCH",
    type=click.Path(path_type=Path),
    help="Write the approval for an owner that is a Safe, as its Transaction Builder takes it.",
)
@digits_option
@json_option
@gathered(SendingOptions, "sending")
def approve(
    proposal_path: Path,
    rpc_url: str,
    files: MemberFiles,
    no_tracing: bool,
    sending: SendingOptions,
    batch_path: Path | None,
    takes_pipe: bool,
    as_json: bool,
) -> None:
    """Approve a Safe's proposal on the chain, in place of a signature in its file.

    With --broadcast an owner with a key approves, after the question that `council sign` asks. An
    owner that is a contract, such as another Safe, must itself call the Safe: the call is shown,
    and --export BATCH writes it for Safe's interface.

    \b
    Example:
      chainkit council approve disable-300.json --rpc http://127.0.0.1:8545 \\
        --deployment deployment.json --council council.json --export approval.json
    """
    if sending.broadcast:
        sending.signing.require("--broadcast")
    reading = Reading.open(proposal_path, files)
    transaction = reading.proposal.transaction
    if isinstance(transaction, AccountTransaction):
        raise ConfigurationError("proposal", "one of a Safe, whose owners approve", "a plain one")
    check_expiry(reading.proposal)
    status = _read_status_of(reading, rpc_url, files)
    if status.nonce_use is not None:
        raise ConfigurationError("proposal", "one whose nonce is unused", str(status.nonce_use))
    status, slots = _tried(reading, status, no_tracing)
    with shown_to_people(as_json):
        # A person who is asked must see the proposal, also where a script reads the output.
        _echo(reading, status, slots)
    call = approval_call(transaction)
    approval = {"to": to_checksum_address(call.target), "data": hex0x(call.calldata)}
    if batch_path is not None:
        batch = approval_file(reading.proposal, call, int(time.time() * 1000))
        write_new(batch_path, (json.dumps(batch, indent=2) + "\n").encode(), f"file {batch_path}")
    receipt = None
    if sending.broadcast:
        confirm(reading.proposal, takes_pipe, "approve")
        signer = sending.signing.open(reading.record.chain_id)
        opened = sending.open(status.account.contracts.endpoint, as_json)
        signed = sign_approval(transaction, status.account, opened, signer)
        receipt = send_approval(transaction, signer.address, opened, signed)
    if as_json:
        echo_json(_content(reading, status, slots) | {"approval": approval} | sent_json(receipt))
    elif receipt is None:
        echo_fact("approved by", f"a call of {approval['to']} by the owner, with the calldata")
        click.echo(approval["data"])
        if batch_path is not None:
            echo_fact("written to", str(batch_path))
        click.echo(NOT_SENT)
    else:
        echo_fact("done", f"in block {receipt.block.reference}: approved, and read back")


@click.command("execute", cls=CompleteCommand)
@_status_options
@broadcast_option
@signing_options("the account that pays for the transaction")
@json_option
@gathered(SendingOptions, "sending")
def execute_proposal(
    proposal_path: Path,
    rpc_url: str,
    files: MemberFiles,
    no_tracing: bool,
    sending: SendingOptions,
    as_json: bool,
) -> None:
    """Simulate a proposal that enough owners signed, and send it with --broadcast.

    Any account can execute a Safe's proposal: it pays, and gets no power by it. A plain account's
    proposal holds a signed transaction, and needs no key to be sent.

    \b
    Example:
      chainkit council execute disable-300.json --rpc http://127.0.0.1:8545 \\
        --deployment deployment.json --council council.json --broadcast --keystore payer.json
    """
    reading = Reading.open(proposal_path, files)
    needs_payer = sending.broadcast and reading.proposal.fees is None
    if needs_payer:
        sending.signing.require("--broadcast of a Safe's proposal")
    status = _read_status_of(reading, rpc_url, files)
    slots = None
    try:
        slots = _changed(reading, status, no_tracing)
    finally:
        # Also where the proposal cannot be executed: a person then reads what is in the way.
        if not as_json:
            _echo(reading, status, slots)
    read_status_again = partial(_read_status_again, reading, rpc_url, files, no_tracing, slots)
    payer = sending.signing.open(reading.record.chain_id) if needs_payer else None
    if payer:
        status = read_status_again()
    account = status.account
    execution = prepare(reading.proposal, status, payer.address if payer else account.owners[0])
    receipt = None
    if sending.broadcast:
        opened = sending.open(account.contracts.endpoint, as_json)
        signed = sign_execution(execution, opened, payer)
        read_status_again()
        receipt = execute(execution, opened, signed)
    if as_json:
        content = _content(reading, status, slots) | {"gas": execution.gas}
        echo_json(content | sent_json(receipt))
    elif receipt is None:
        echo_fact("gas", f"{execution.gas:,} (estimated)")
        click.echo(NOT_SENT)
    else:
        echo_fact("done", f"in block {receipt.block.reference}, and read back as proposed")


def _read_status_of(reading: Reading, rpc_url: str, files: MemberFiles) -> ProposalStatus:
    endpoint, record, head = open_chain(rpc_url, files.deployment_path)
    account = read_account_state(ContractState(endpoint, head.reference), reading.council)
    return read_status(reading.proposal, account, record, head)


def _read_status_again(
    reading: Reading,
    rpc_url: str,
    files: MemberFiles,
    no_tracing: bool,
    shown: tuple[str, ...],
) -> ProposalStatus:
    """Read the status of a proposal after a person typed a password, or looked at a wallet.

    The chain went on meanwhile: raises ConfigurationError unless the proposal can be executed at
    the newest block, and changes there what was shown.
    """
    status = _read_status_of(reading, rpc_url, files)
    slots = _changed(reading, status, no_tracing)
    if slots != shown:
        expected, got = ("; ".join(lines) for lines in (shown, slots))
        place = f"block {status.block}"
        raise ConfigurationError("storage that changes", f"as shown: {expected}", got, place)
    return status


def _changed(reading: Reading, status: ProposalStatus, no_tracing: bool) -> tuple[str, ...]:
    """Return the changed slots. Raises ConfigurationError unless it can be executed now."""
    require_executable(status)
    return simulated(reading, status.account, no_tracing)


def _tried(
    reading: Reading, status: ProposalStatus, no_tracing: bool
) -> tuple[ProposalStatus, tuple[str, ...]]:
    """Try a proposal as ``execute`` would, and return its status and its changes.

    A failure is one more obstacle beside those that were read: another contract, such as a guard,
    may cause it. Raises NoTracing as ``simulated``.
    """
    slots: tuple[str, ...] = ()
    if status.change is None or status.nonce_use is not None:
        return status, slots
    try:
        slots = simulated(reading, status.account, no_tracing)
        if status.is_executable:
            prepare(reading.proposal, status, status.account.owners[0])
    except AccessRefused:
        raise
    except (RefusedRequest, UndecodedState) as error:
        status = replace(status, obstacles=(*status.obstacles, str(error)))
    return status, slots


def _echo_past(use: NonceUse) -> None:
    transaction = f"transaction {hex0x(use.transaction_hash)}" if use.transaction_hash else "one"
    failed = "" if use.outcome == "success" else "; it failed, and changed nothing"
    echo_fact("executed", f"in block {use.block} by {transaction}{failed}")


def _echo(reading: Reading, status: ProposalStatus, slots: tuple[str, ...] | None) -> None:
    """Print a proposal's status and its changes; None where it was not simulated."""
    screen = Screen(reading, status.cautions)
    with screen.counted():
        echo_cautions(status.cautions)
        echo_proposal(reading.proposal, reading.address_book)
        echo_status(status, reading.address_book)
        if slots is not None:
            echo_slots(slots)
    if slots is not None:
        screen.end()


def _content(reading: Reading, status: ProposalStatus, slots: tuple[str, ...]) -> dict[str, Any]:
    content = proposal_json(reading.proposal)
    return content | {"standing": status_json(status), "storage": list(slots)}

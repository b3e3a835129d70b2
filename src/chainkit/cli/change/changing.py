"""A change of our contracts from the command line: shown, then sent or proposed if asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from chainkit.chain.sending import Sending, SignedTransaction
from chainkit.cli.change.proposal_output import echo_cautions
from chainkit.cli.change.proposing import TermsOptions, propose_option, write_proposal
from chainkit.cli.change.sending import (
    NOT_SENT,
    SendingOptions,
    broadcast_option,
    sent_json,
    signing_options,
)
from chainkit.cli.change.signers import SignerOptions
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.interface import render
from chainkit.contracts.state import ContractState
from chainkit.council.calls import Call
from chainkit.council.changes import (
    Effects,
    Plan,
    execute_change,
    plan_again,
    plan_change,
    sign_change,
)
from chainkit.council.signing import Signer
from chainkit.errors import ConfigurationError
from chainkit.signatures import keccak256
from chainkit.terminal.connection import open_chain
from chainkit.terminal.facts import echo_fact, shown_to_people
from chainkit.terminal.options import (
    Option,
    deployment_option,
    echo_json,
    gathered,
    json_option,
    rpc_option,
    several,
)
from chainkit.text.hexadecimal import hex0x
from chainkit.text.json_values import reference_as_json
from chainkit.types import Receipt

MakeCalls = Callable[[ContractState, DeploymentRecord], Sequence[Call]]
"""Builds the calls from the chain's state at the block of the plan."""

ReceiptFacts = Callable[[Receipt], dict[str, int]]

NOT_PROPOSED: Final = "nothing was sent; the sender is a contract: add --propose FILE to draft it"
SEVERAL: Final = "nothing was sent; add --propose FILE to draft one proposal of all calls"
ONE_BY_ONE: Final = "an account with a key makes one call at a time: draft or send each by itself"


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """The options of every command that changes something on the chain."""

    rpc_url: str
    deployment_path: Path
    propose_path: Path | None
    terms: TermsOptions
    sending: SendingOptions
    as_json: bool

    @property
    def broadcast(self) -> bool:
        """Whether the change is sent."""
        return self.sending.broadcast

    def write_proposal(
        self, state: ContractState, record: DeploymentRecord, calls: Sequence[Call], path: Path
    ) -> None:
        """Draft the change as ``write_proposal`` does, and show the proposal to people only."""
        max_cost, is_quiet = self.sending.max_cost, self.as_json
        write_proposal(state, record, calls, path, self.terms, max_cost=max_cost, is_quiet=is_quiet)


gathered_change = several(gathered(SendingOptions, "sending"), gathered(ChangeOptions, "options"))
"""Decorator, below those of the single options: the command takes ``options``, a ChangeOptions."""


def change_options(whose: str) -> Option:
    """Return a decorator that adds options; the command takes ``options``, a ChangeOptions.

    ``whose`` key signs, in words: ``the registry's owner``.
    """
    return several(
        rpc_option,
        deployment_option,
        propose_option,
        broadcast_option,
        signing_options(whose),
        json_option,
        gathered_change,
    )


def change(
    make_calls: MakeCalls,
    effects: Effects,
    whose: str,
    options: ChangeOptions,
    facts_of: ReceiptFacts = lambda _: {},
) -> None:
    """Show what calls would change; send one with --broadcast, or draft a proposal of them.

    The options are those of ``change_options(whose)``; ``facts_of`` returns, by name, what only the
    receipt of a call shows. Raises as ``plan_change``; UsageError for options that do not go
    together; ConfigurationError where the account of the key may not make the calls, or only
    contracts may.
    """
    _check_options(options)

    broadcast, propose_path, as_json = options.broadcast, options.propose_path, options.as_json
    endpoint, record, head = open_chain(options.rpc_url, options.deployment_path)
    state = ContractState(endpoint, head.reference)
    plan = plan_change(effects, state, record, make_calls(state, record))
    if broadcast:
        _check_sendable(plan, whose)
    if broadcast or not (as_json or propose_path):
        # A proposal prints itself. A script gets the same text as people, once something is sent.
        with shown_to_people(as_json):
            echo_plan(plan, record, whose)
    if propose_path is not None:
        options.write_proposal(state, record, plan.calls, propose_path)
    receipt = None
    if broadcast:
        signer = _open_signer(plan, record, whose, options.sending.signing)
        sending = options.sending.open(endpoint, as_json)
        signed, plan = _sign(effects, sending, record, plan, signer)
        receipt = execute_change(effects, sending, plan, signed)
    if as_json:
        proposed = {"proposal": propose_path and str(propose_path)}
        facts = facts_of(receipt) if receipt else {}
        echo_json(plan_json(plan, record) | sent_json(receipt) | proposed | facts)
    elif propose_path is None:
        _echo_end(plan, receipt, facts_of)


def echo_plan(plan: Plan, record: DeploymentRecord, whose: str) -> None:
    """Print the calls, their sender, and their changes; warnings stand above."""
    echo_cautions(plan.cautions)
    for call, gas in zip(plan.calls, plan.gas, strict=True):
        _echo_call(call, gas)
    _echo_senders(plan, whose)
    echo_fact("chain id", str(record.chain_id))
    echo_fact("read at", f"block {plan.block}")
    for line in plan.change.difference:
        echo_fact("changes", line)


def plan_json(plan: Plan, record: DeploymentRecord) -> dict[str, Any]:
    """Return the same for a script."""
    return {
        "chain_id": record.chain_id,
        "block": reference_as_json(plan.block),
        "sender": plan.sender,
        "senders": list(plan.senders),
        "calls": [
            _call_json(call) | {"gas": gas} for call, gas in zip(plan.calls, plan.gas, strict=True)
        ],
        "before": dict(plan.change.before),
        "after": dict(plan.change.after),
        "difference": list(plan.change.difference),
        "cautions": list(plan.cautions),
    }


def _check_options(options: ChangeOptions) -> None:
    if options.broadcast and options.propose_path is not None:
        raise click.UsageError("--broadcast sends and --propose drafts: give one of them")
    if options.broadcast:
        options.sending.signing.require("--broadcast")


def _check_sendable(plan: Plan, whose: str) -> None:
    if len(plan.calls) > 1:
        got = f"{len(plan.calls)} calls: {'use --propose FILE' if _has_safe(plan) else ONE_BY_ONE}"
        raise ConfigurationError("--broadcast", "one call", got)
    if not plan.accounts:
        got = f"{' and '.join(plan.senders)}, a contract: use --propose FILE"
        raise ConfigurationError("--broadcast", f"{whose} to have a key", got)


def _has_safe(plan: Plan) -> bool:
    """Return whether a contract may make the calls: only a Safe's proposal holds several."""
    return len(plan.accounts) < len(plan.senders)


def _open_signer(
    plan: Plan, record: DeploymentRecord, whose: str, signing: SignerOptions
) -> Signer:
    signer = signing.open(record.chain_id)
    if signer.address not in plan.senders:
        expected = f"{whose} {' or '.join(plan.senders)}"
        raise ConfigurationError(signer.label, expected, signer.address)
    return signer


def _sign(
    effects: Effects, sending: Sending, record: DeploymentRecord, shown: Plan, signer: Signer
) -> tuple[SignedTransaction, Plan]:
    plan = plan_again(effects, sending.endpoint, record, shown, signer.address)
    return sign_change(sending, record, plan, signer), plan


def _echo_call(call: Call, gas: int) -> None:
    echo_fact("call", f"{call.function} of {call.contract} {call.target_address}")
    for name, value in call.arguments.items():
        echo_fact(f"  {name}", render(value))
    echo_fact("  gas", f"{gas:,} (estimated)")
    echo_fact("  calldata", f"{len(call.calldata)} bytes")
    echo_fact("  keccak256", hex0x(keccak256(call.calldata)))


def _echo_senders(plan: Plan, whose: str) -> None:
    others = [address for address in plan.senders if address != plan.sender]
    for label, address in [("from", plan.sender), *(("  or", other) for other in others)]:
        kind = "" if address in plan.accounts else ", a contract"
        echo_fact(label, f"{address} ({whose}{kind})")


def _echo_end(plan: Plan, receipt: Receipt | None, facts_of: ReceiptFacts) -> None:
    if receipt is not None:
        for name, value in facts_of(receipt).items():
            echo_fact(name.replace("_", " "), str(value))
        echo_fact("done", f"in block {receipt.block.reference}, and read back as planned")
    elif len(plan.calls) > 1:
        click.echo(SEVERAL if _has_safe(plan) else f"nothing was sent; {ONE_BY_ONE}")
    else:
        click.echo(NOT_SENT if plan.accounts else NOT_PROPOSED)


def _call_json(call: Call) -> dict[str, Any]:
    return {
        "contract": call.contract,
        "target": call.target_address,
        "function": call.function,
        "arguments": {
            name: hex0x(value) if isinstance(value, bytes) else value
            for name, value in call.arguments.items()
        },
        "calldata": hex0x(call.calldata),
        "calldata_keccak256": hex0x(keccak256(call.calldata)),
    }

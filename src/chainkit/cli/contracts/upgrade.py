"""``chainkit contracts upgrade``: shown, simulated, and sent only if asked for."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from chainkit.chain import Endpoint
from chainkit.chain.sending import Sending
from chainkit.cli.change.changing import ChangeOptions, gathered_change
from chainkit.cli.change.proposing import propose_option
from chainkit.cli.change.sending import NOT_SENT, broadcast_option, signing_options
from chainkit.cli.contracts.administration import ADMINISTRATOR
from chainkit.cli.contracts.upgrade_output import echo_plan, plan_json
from chainkit.contracts.checks import check_account
from chainkit.contracts.comparison import code_words
from chainkit.contracts.deployment import (
    DeployedContract,
    DeploymentRecord,
    implementation_content,
    record_subject,
    replace_implementation,
)
from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.contracts.state import ContractState
from chainkit.council.calls import Call
from chainkit.council.signing import Signer
from chainkit.council.upgrade.upgrade import (
    UpgradePlan,
    check_administrator,
    deploy_implementation,
    execute_upgrade,
    plan_upgrade,
)
from chainkit.documents.files import check_replaceable
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.connection import open_chain
from chainkit.terminal.facts import echo_fact, echo_notice, shown_to_people
from chainkit.terminal.options import (
    deployment_option,
    echo_json,
    json_option,
    rpc_option,
    several,
)
from chainkit.text.hexadecimal import hex0x
from chainkit.types import Receipt

_upgrade_options = several(
    click.option(
        "--implementation",
        metavar="ADDRESS",
        help="Where this package's code stands already; else it is deployed first.",
    ),
    rpc_option,
    deployment_option,
    click.option(
        "--accept-unknown",
        is_flag=True,
        help="Replace code of no known release, whose storage cannot be compared.",
    ),
    propose_option,
    broadcast_option,
    click.option(
        "--implementation-only",
        is_flag=True,
        help="Deploy the new code, which any account may, and leave the upgrade to a multisig.",
    ),
    signing_options(ADMINISTRATOR),
    json_option,
    gathered_change,
)

_UNSENT: Final = "nothing was sent; the administrator is a contract"


@click.command("upgrade", cls=CompleteCommand, short_help="Upgrade a log to this package's code.")
@click.argument("name", metavar="CONTRACT", type=click.Choice(SEQUENCED_LOGS))
@_upgrade_options
def upgrade(
    name: str,
    implementation: str | None,
    accept_unknown: bool,
    implementation_only: bool,
    options: ChangeOptions,
) -> None:
    """Upgrade GroupMessages or IdentityUpdates to this package's code; a dry run until --broadcast.

    Shows first how code and storage differ, and simulates the upgrade. Exits 1, and upgrades
    nothing, where stored values would change their meaning, the deployed code is unknown, or the
    proxy's code or administrators change while the new code is deployed. A Safe takes two steps:
    --implementation-only, then --implementation with --propose.

    \b
    Example:
      chainkit contracts upgrade GroupMessages --rpc http://127.0.0.1:8545 \\
        --deployment deployment.json
    """
    _check_options(options, implementation, implementation_only)
    broadcast, propose_path, as_json = options.broadcast, options.propose_path, options.as_json
    address = None
    if implementation:
        address = bytes.fromhex(check_account(implementation, "--implementation")[2:])
    endpoint, record, head = open_chain(options.rpc_url, options.deployment_path)
    must_simulate = not implementation_only
    plan = plan_upgrade(endpoint, record, name, head.reference, address, must_simulate)
    refusal = _refusal(plan, accept_unknown)
    # A script is shown the same as people, once something is going to be sent.
    if not as_json or (broadcast and not refusal):
        _show(plan, record, as_json)
    if broadcast and not refusal:
        signer = options.sending.signing.open(record.chain_id)
        sending, path = options.sending.open(endpoint, as_json), options.deployment_path
        upgrading = _Upgrading(sending, record, path, signer, accept_unknown, as_json)
        upgrading.send(plan, implementation_only)
        return
    if propose_path and not refusal:
        call = Call.read(record, plan.proxy, plan.calldata or b"")
        state = ContractState(endpoint, plan.block)
        options.write_proposal(state, record, [call], propose_path)
    hint = _hint(endpoint, plan) if propose_path is None else ""
    _echo_unsent(plan, record, refusal, hint, propose_path, as_json)


def _check_options(
    options: ChangeOptions, implementation: str | None, implementation_only: bool
) -> None:
    propose_path = options.propose_path
    if options.broadcast:
        options.sending.signing.require("--broadcast")
    if options.broadcast and propose_path:
        raise click.UsageError("--broadcast sends and --propose drafts: give one of them")
    if implementation_only and (implementation or propose_path):
        raise click.UsageError("--implementation-only deploys what --implementation names")
    if propose_path and not implementation:
        deploy = "which --implementation-only --broadcast deploys"
        raise click.UsageError(f"--propose needs --implementation ADDRESS, {deploy}")


def _show(plan: UpgradePlan, record: DeploymentRecord, as_json: bool) -> None:
    """Print a plan for people; on standard error where standard output is a script's."""
    with shown_to_people(as_json):
        echo_plan(plan, record.chain_id)


def _refusal(plan: UpgradePlan, accept_unknown: bool) -> str:
    """Return why a plan must not be sent, or nothing."""
    if not plan.keeps_storage:
        return "stored values would change their meaning"
    if plan.release is None and not accept_unknown:
        return "the deployed code is no known release; --accept-unknown replaces it all the same"
    return ""


def _change(shown: UpgradePlan, plan: UpgradePlan) -> str:
    """Return the change of the deployed code since it was shown, or nothing."""
    if (shown.current, shown.current_code) != (plan.current, plan.current_code):
        return f"what is deployed changed meanwhile: it was {code_words(shown.current_code)}"
    if shown.administrators != plan.administrators:
        return f"the administrators changed meanwhile: they were {', '.join(shown.administrators)}"
    return ""


def _hint(endpoint: Endpoint, plan: UpgradePlan) -> str:
    """Return how to go on from a dry run."""
    state = ContractState(endpoint, plan.block)
    if not all(state.is_contract(bytes.fromhex(each[2:])) for each in plan.administrators):
        return NOT_SENT
    if plan.implementation is None:
        return f"{_UNSENT}: first --implementation-only --broadcast"
    return f"{_UNSENT}: add --propose FILE to draft it"


def _echo_unsent(
    plan: UpgradePlan,
    record: DeploymentRecord,
    refusal: str,
    hint: str,
    propose_path: Path | None,
    as_json: bool,
) -> None:
    if as_json:
        result = {"refused": refusal or None, "sent": False}
        proposal = str(propose_path) if propose_path and not refusal else None
        echo_json(plan_json(plan, record.chain_id) | result | {"proposal": proposal})
    elif refusal:
        echo_fact("refused", refusal)
    elif hint:
        click.echo(hint)
    if refusal:
        sys.exit(1)


@dataclass(frozen=True, slots=True)
class _Upgrading:
    """The transactions of one upgrade, and the lines that are printed about them."""

    sending: Sending
    record: DeploymentRecord
    record_path: Path
    signer: Signer
    accept_unknown: bool
    as_json: bool

    def send(self, plan: UpgradePlan, implementation_only: bool) -> None:
        if not implementation_only:
            check_administrator(plan, self.signer)
            # The record is written after all transactions, too late to find that it cannot be
            # written.
            check_replaceable(self.record_path, record_subject(self.record_path))
        deployed, receipt, refusal = None, None, ""
        if plan.implementation is None:
            deployed, shown = self._deploy(plan.name), plan
            endpoint, address = self.sending.endpoint, deployed.address
            block = endpoint.head().reference
            plan = plan_upgrade(endpoint, self.record, plan.name, block, address)
            _show(plan, self.record, self.as_json)
            refusal = _refusal(plan, self.accept_unknown) or _change(shown, plan)
        if not refusal and not implementation_only:
            receipt = execute_upgrade(self.sending, self.record, plan, self.signer)
        self._end(plan, deployed, receipt, refusal)
        if deployed and receipt:
            replace_implementation(self.record_path, plan.name, deployed)
            echo_notice(f"wrote the new implementation into {self.record_path}")
        if refusal:
            sys.exit(1)

    def _deploy(self, name: str) -> DeployedContract:
        deployed = deploy_implementation(self.sending, self.record, name, self.signer)
        # Printed on standard error: the address must not be lost, whatever fails from here on.
        content = implementation_content(deployed)
        text = f"{content['address']}, block {content['block']}, {content['transaction']}"
        echo_notice(f"deployed the implementation of {name}: {text}")
        return deployed

    def _end(
        self,
        plan: UpgradePlan,
        deployed: DeployedContract | None,
        receipt: Receipt | None,
        refusal: str,
    ) -> None:
        if self.as_json:
            sent = receipt and hex0x(receipt.transaction_hash)
            content = deployed and implementation_content(deployed)
            result = {"refused": refusal or None, "sent": bool(receipt), "transaction_hash": sent}
            echo_json(
                plan_json(plan, self.record.chain_id) | result | {"new_implementation": content}
            )
            return
        if receipt:
            block = receipt.block.reference
            echo_fact("done", f"in block {block}; all but the code read back as it was")
        if deployed is None:
            echo_fact("record", f"needs the new implementation of {plan.name}, with its deployment")
        elif receipt is None:
            _echo_not_upgraded(deployed, refusal)


def _echo_not_upgraded(deployed: DeployedContract, refusal: str) -> None:
    if refusal:
        echo_fact("refused", refusal)
        echo_fact("not upgraded", "the new code stands, unused, and --implementation can name it")
    else:
        echo_fact("not upgraded", "an administrator still has to send the calldata above")
    echo_fact("record", "after the upgrade it needs, as this contract's implementation:")
    echo_json(implementation_content(deployed))

"""``chainkit contracts``: the acts of administrators of the two logs, except upgrades."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from chainkit.cli.change.changing import ChangeOptions, change, change_options
from chainkit.cli.change.typed_addresses import typed_account
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.parameters import PAYLOAD_SIZE_CAP, SEQUENCED_LOGS
from chainkit.contracts.state import DEFAULT_ADMIN_ROLE, ContractState
from chainkit.council.calls import Call
from chainkit.council.calls.log_effects import LOG_EFFECTS
from chainkit.terminal.command import CompleteCommand

ADMINISTRATOR: Final = "an administrator"
"""The account whose key signs, in the words of the screens."""

_ALL: Final = "all"
_CONTRACTS: Final = click.Choice((*SEQUENCED_LOGS, _ALL))

_contract = click.argument("contract", metavar="CONTRACT", type=_CONTRACTS)
_account = click.argument("account", metavar="ADDRESS")
_size: Final = click.IntRange(0, PAYLOAD_SIZE_CAP)


@click.command("pause", cls=CompleteCommand, short_help="Stop new payloads of a log.")
@_contract
@change_options(ADMINISTRATOR)
def pause(contract: str, options: ChangeOptions) -> None:
    """Stop new payloads of GroupMessages, IdentityUpdates or `all`; a dry run until --broadcast.

    Nothing else stops: administrators keep their functions, and reading goes on. Both logs at once
    are two calls, which one proposal makes together.

    \b
    Example:
      chainkit contracts pause GroupMessages --rpc http://127.0.0.1:8545 \\
        --deployment deployment.json
    """
    _change(contract, "pause", (), options)


@click.command("unpause", cls=CompleteCommand, short_help="Accept new payloads of a log again.")
@_contract
@change_options(ADMINISTRATOR)
def unpause(contract: str, options: ChangeOptions) -> None:
    """Accept new payloads of a paused log, or of `all`, again; a dry run until --broadcast.

    \b
    Example:
      chainkit contracts unpause all --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    _change(contract, "unpause", (), options)


@click.command("grant-admin", cls=CompleteCommand, short_help="Name one more administrator.")
@_contract
@_account
@change_options(ADMINISTRATOR)
def grant_admin(contract: str, account: str, options: ChangeOptions) -> None:
    """Name one more administrator of a log, or of `all`; a dry run until --broadcast.

    All administrators are equal, so the least protected one counts. To hand over: name the new one,
    see it act, and only then remove the old one with revoke-admin.

    \b
    Example:
      chainkit contracts grant-admin GroupMessages 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    _change_role(contract, "grantRole", account, options)


@click.command("revoke-admin", cls=CompleteCommand, short_help="Remove an administrator.")
@_contract
@_account
@change_options(ADMINISTRATOR)
def revoke_admin(contract: str, account: str, options: ChangeOptions) -> None:
    """Remove an administrator of a log, or of `all`; a dry run until --broadcast.

    The last one cannot be removed. The chain does not show whether another one can still act: see
    that it has acted before.

    \b
    Example:
      chainkit contracts revoke-admin GroupMessages 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    _change_role(contract, "revokeRole", account, options)


@click.command("set-bounds", cls=CompleteCommand, short_help="Set the sizes a payload may have.")
@_contract
@click.option(
    "--minimum", required=True, type=_size, metavar="BYTES", help="Least size of a payload."
)
@click.option(
    "--maximum", required=True, type=_size, metavar="BYTES", help="Greatest size of a payload."
)
@change_options(ADMINISTRATOR)
def set_bounds(contract: str, minimum: int, maximum: int, options: ChangeOptions) -> None:
    """Set the sizes that a payload of a log, or of `all`, may have; a dry run until --broadcast.

    Both ends included. Payloads that were published before stay. The contracts take up to 1 MiB,
    chains less: a transaction, which is some 250 bytes longer than its payload, has at most 131,072
    bytes for geth's pool, and 95,000 for Arbitrum Nitro's sequencer unless its operator set another
    limit.

    \b
    Example:
      chainkit contracts set-bounds GroupMessages --minimum 1 --maximum 60000 \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    _change(contract, "setPayloadBounds", (minimum, maximum), options)


def _change_role(contract: str, function: str, account: str, options: ChangeOptions) -> None:
    address = typed_account(account, "ADDRESS")
    _change(contract, function, (DEFAULT_ADMIN_ROLE, address), options)


def _change(
    contract: str, function: str, arguments: Sequence[object], options: ChangeOptions
) -> None:
    names = SEQUENCED_LOGS if contract == _ALL else (contract,)

    def make_calls(state: ContractState, record: DeploymentRecord) -> list[Call]:
        return [Call.make(record, name, function, *arguments) for name in names]

    change(make_calls, LOG_EFFECTS, ADMINISTRATOR, options)

"""``chainkit council owners``: proposals that change the Safe itself, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from chainkit.cli.change.proposing import TermsOptions, terms_options, write_proposal
from chainkit.cli.change.typed_addresses import typed_account
from chainkit.contracts.state import ContractState
from chainkit.council.calls import Call
from chainkit.council.calls.owner_effects import preceding
from chainkit.council.proposal import read_council
from chainkit.council.safe.account import read_account
from chainkit.errors import ConfigurationError
from chainkit.terminal.command import CompleteGroup
from chainkit.terminal.connection import open_chain
from chainkit.terminal.options import (
    deployment_option,
    echo_json,
    gathered,
    json_option,
    rpc_option,
    several,
)

_threshold = click.option(
    "--signatures",
    "threshold",
    type=click.IntRange(min=1),
    metavar="N",
    help="Owners that must sign from then on; as many as now where it is not given.",
)


@dataclass(frozen=True, slots=True)
class _DraftOptions:
    rpc_url: str
    deployment_path: Path
    proposal_path: Path
    terms: TermsOptions
    as_json: bool


_options = several(
    rpc_option,
    deployment_option,
    click.option(
        "--propose",
        "proposal_path",
        required=True,
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="The proposal to write; nothing is sent.",
    ),
    terms_options,
    json_option,
    gathered(_DraftOptions, "options"),
)


@click.group(cls=CompleteGroup)
def owners() -> None:
    """Draft a change of the Safe's own owners; its proposal is read with --owners only.

    \b
    Example:
      chainkit council owners swap 0x90F7… 0x976E… --propose swap.json --reason "new laptop" \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json --council council.json
    """


@owners.command("add")
@click.argument("owner")
@_threshold
@_options
def add(owner: str, threshold: int | None, options: _DraftOptions) -> None:
    """Draft one more owner.

    \b
    Example:
      chainkit council owners add 0x976EA74026E726554dB657fA54763abd0C3a0aa9 --signatures 3 \\
        --propose add.json --reason "a fourth member" --rpc http://127.0.0.1:8545 \\
        --deployment deployment.json --council council.json
    """
    _propose(
        lambda safe: safe.call(
            "addOwnerWithThreshold", safe.new(owner), threshold or safe.threshold
        ),
        options,
    )


@owners.command("remove")
@click.argument("owner")
@_threshold
@_options
def remove(owner: str, threshold: int | None, options: _DraftOptions) -> None:
    """Draft that an owner is none any more.

    \b
    Example:
      chainkit council owners remove 0x976EA74026E726554dB657fA54763abd0C3a0aa9 --signatures 2 \\
        --propose remove.json --reason "left the council" --rpc http://127.0.0.1:8545 \\
        --deployment deployment.json --council council.json
    """
    _propose(
        lambda safe: safe.call("removeOwner", *safe.linked(owner), threshold or safe.threshold),
        options,
    )


@owners.command("swap")
@click.argument("owner")
@click.argument("successor")
@_options
def swap(owner: str, successor: str, options: _DraftOptions) -> None:
    """Draft that an account takes an owner's place.

    \b
    Example:
      chainkit council owners swap 0x90F79bf6EB2c4f870365E785982E1f101E93b906 \\
        0x976EA74026E726554dB657fA54763abd0C3a0aa9 --propose swap.json --reason "new laptop" \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json --council council.json
    """
    _propose(lambda safe: safe.call("swapOwner", *safe.linked(owner), safe.new(successor)), options)


@owners.command("threshold")
@click.argument("threshold", metavar="N", type=click.IntRange(min=1))
@_options
def change_threshold(threshold: int, options: _DraftOptions) -> None:
    """Draft that N owners must sign.

    \b
    Example:
      chainkit council owners threshold 3 --propose threshold.json --reason "one more signature" \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json --council council.json
    """
    _propose(lambda safe: safe.call("changeThreshold", threshold), options)


class _Safe:
    """The council's Safe at a block, for the calls."""

    def __init__(self, state: ContractState, address: bytes) -> None:
        account = read_account(state, address)
        self._address = address
        self._owners = account.owners
        self.threshold = account.threshold

    def call(self, function: str, *arguments: Any) -> Call:
        return Call.make_of_safe(self._address, function, *arguments)

    def linked(self, text: str) -> tuple[str, str]:
        """Return the predecessor of an owner in the Safe's list, and the owner."""
        owner = typed_account(text, "owner")
        return preceding(self._owners, owner), owner

    def new(self, text: str) -> str:
        return typed_account(text, "new owner")


def _propose(make_call: Callable[[_Safe], Call], options: _DraftOptions) -> None:
    if options.terms.council_path is None:
        raise click.UsageError("missing --council, for a proposal")
    council = read_council(options.terms.council_path)
    if council.safe is None:
        raise ConfigurationError("council file", "a Safe, which has owners", "a plain account")
    endpoint, record, head = open_chain(options.rpc_url, options.deployment_path)
    state, path = ContractState(endpoint, head.reference), options.proposal_path
    call = make_call(_Safe(state, council.account))
    write_proposal(state, record, [call], path, options.terms, is_quiet=options.as_json)
    if options.as_json:
        echo_json({"proposal": str(path)})

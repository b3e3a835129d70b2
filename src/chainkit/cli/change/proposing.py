"""``--propose FILE``: calls as a proposal of the council's account, for its owners to sign."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click

from chainkit.cli.change.evidence import Exhibit, evidence_cautions, read_exhibit
from chainkit.cli.change.proposal_options import Reading, council_option_for, no_tracing_option
from chainkit.cli.change.proposal_output import echo_cautions, echo_proposal, echo_slots
from chainkit.cli.change.proposal_simulation import simulated
from chainkit.cli.change.screen import Screen
from chainkit.cli.change.sending import max_cost_option
from chainkit.cli.change.typed_addresses import caution_of_addresses_in
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.state import ContractState
from chainkit.council.calls import Call
from chainkit.council.proposal import (
    LONGEST_DAYS,
    Council,
    read_council,
    write_proposal_file,
)
from chainkit.council.proposal.account_state import read_account_state
from chainkit.council.proposal.calls_file import read_calls_file
from chainkit.council.proposal.cautions import cautions_at
from chainkit.council.proposal.drafting import Terms, draft
from chainkit.council.proposal.grounds import MOST_EVIDENCE
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.connection import open_chain
from chainkit.terminal.facts import echo_fact, shown_to_people
from chainkit.terminal.options import (
    deployment_option,
    echo_json,
    gathered,
    is_on_command_line,
    json_option,
    rpc_option,
    several,
)
from chainkit.text.ether import MAX_COST

DEFAULT_DAYS: Final = 7

_TERMS: Final = ("reason", "evidence_paths", "days", "nonce")
"""Parameters of ``terms_options`` that nothing but a proposal has a use for."""


@dataclass(frozen=True, slots=True)
class TermsOptions:
    """The drafter's choices beside the calls."""

    council_path: Path | None
    reason: str | None
    evidence_paths: tuple[Path, ...]
    days: int
    nonce: int | None
    no_tracing: bool


terms_options = several(
    council_option_for("Your own council file, for --propose."),
    click.option("--reason", metavar="TEXT", help="Why, in one line of ASCII, for --propose."),
    click.option(
        "--evidence",
        "evidence_paths",
        multiple=True,
        metavar="PATH",
        type=click.Path(path_type=Path),
        help="Bundle or report that the proposal rests on; may be given again.",
    ),
    click.option(
        "--expires-in",
        "days",
        type=click.IntRange(1, LONGEST_DAYS),
        default=DEFAULT_DAYS,
        show_default=True,
        metavar="DAYS",
        help="How long the proposal may be signed and executed.",
    ),
    click.option(
        "--nonce",
        type=click.IntRange(min=0),
        metavar="N",
        help="The account's nonce to use; its next one where it is not given.",
    ),
    no_tracing_option,
    gathered(TermsOptions, "terms"),
)
"""Decorator: a proposal's options beside its calls; the command takes ``terms``, a TermsOptions."""


def _refuse_terms_alone(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a command of ``--propose`` that refuses the terms of no proposal."""

    @wraps(command)
    def checked(*arguments: Any, **options: Any) -> Any:
        parameters = click.get_current_context().command.params
        given = [
            each.opts[0]
            for each in parameters
            if each.name in _TERMS and is_on_command_line(each.name)
        ]
        if given and options["propose_path"] is None:
            raise click.UsageError(f"{' and '.join(given)}: only with --propose FILE")
        return command(*arguments, **options)

    return checked


propose_option = several(
    click.option(
        "--propose",
        "propose_path",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Write a proposal for the council's owners to sign; nothing is sent.",
    ),
    terms_options,
    _refuse_terms_alone,
)
"""Decorator: ``--propose FILE`` with the options that go with it, and only with it."""


def write_proposal(
    state: ContractState,
    record: DeploymentRecord,
    calls: Sequence[Call],
    path: Path,
    options: TermsOptions,
    *,
    max_cost: int = MAX_COST,
    is_quiet: bool = False,
) -> None:
    """Draft a proposal of calls at the state's block, simulate it, show it and write its file.

    Raises UsageError where an option is missing that a proposal needs, else as ``draft`` and
    ``simulated``.
    """
    council, terms, exhibits = _read_terms(options, max_cost)
    account = read_account_state(state, council)
    proposal = draft(account, record, state.endpoint.header(state.block.number), calls, terms)
    reading = Reading(proposal, record, council)
    slots = simulated(reading, account, options.no_tracing)
    cautions = [
        *cautions_at(account, proposal.calls, proposal.grounds.after),
        *evidence_cautions(exhibits, calls, record, state),
    ]
    write_proposal_file(path, proposal, is_new=True)
    with shown_to_people(is_quiet):
        # A script's user too learns what to stop at.
        echo_cautions(cautions)
    if not is_quiet:
        screen = Screen(reading, cautions)
        with screen.counted():
            echo_proposal(proposal, reading.address_book)
            echo_slots(slots)
        screen.end()
        option = " --owners" if proposal.changes_safe else ""
        next_command = f"chainkit council sign{option} {path}"
        echo_fact("written to", f"{path}; nothing was sent")
        click.echo(f"next: {next_command}")


def _read_terms(options: TermsOptions, max_cost: int) -> tuple[Council, Terms, tuple[Exhibit, ...]]:
    if options.council_path is None or not options.reason:
        given = {"--council": options.council_path, "--reason": options.reason}
        missing = " and ".join(name for name, value in given.items() if not value)
        raise click.UsageError(f"missing {missing}, for a proposal")
    council, paths = read_council(options.council_path), options.evidence_paths
    if len(paths) > MOST_EVIDENCE:
        raise click.UsageError(f"a proposal names up to {MOST_EVIDENCE} pieces of --evidence")
    exhibits = tuple(map(read_exhibit, paths))
    evidence = tuple(exhibit.evidence for exhibit in exhibits)
    terms = Terms(options.reason, evidence, options.days, options.nonce, max_cost)
    return council, terms, exhibits


@click.command("propose", cls=CompleteCommand)
@click.argument("calls_path", metavar="CALLS", type=click.Path(path_type=Path))
@click.argument("proposal_path", metavar="FILE", type=click.Path(path_type=Path))
@rpc_option
@deployment_option
@terms_options
@max_cost_option
@json_option
def propose(
    calls_path: Path,
    proposal_path: Path,
    rpc_url: str,
    deployment_path: Path,
    terms: TermsOptions,
    max_cost: int,
    as_json: bool,
) -> None:
    """Draft a proposal of several calls by name; nothing is sent.

    CALLS is a YAML file: a list of Contract.function, each with its arguments by name. For one kind
    of change, `chainkit registry …` and `chainkit contracts …` draft by themselves with --propose.

    \b
    Example of CALLS:
      - NodeRegistry.updateHealth: {tokenId: 300, isHealthy: false}
      - GroupMessages.pause: {}
    \b
    Example:
      chainkit council propose calls.yaml proposal.json --reason "node 300 forked its log" \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json --council council.json
    """
    endpoint, record, head = open_chain(rpc_url, deployment_path)
    calls = read_calls_file(calls_path, record)
    caution_of_addresses_in(calls_path)
    state = ContractState(endpoint, head.reference)
    write_proposal(state, record, calls, proposal_path, terms, max_cost=max_cost, is_quiet=as_json)
    if as_json:
        echo_json({"proposal": str(proposal_path)})

"""``chainkit council triage``: checks a folder of evidence, and names nodes to disable."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import click

from chainkit.cli.change.proposing import TermsOptions, propose_option, write_proposal
from chainkit.cli.council.triage_output import default_reason, echo_ranking, ranking_json
from chainkit.contracts.deployment import DeploymentRecord, read_deployment_record
from chainkit.contracts.followed import (
    FollowedDeployment,
    node_registry_of,
    read_recorded_deployment,
)
from chainkit.contracts.registry import Registry
from chainkit.contracts.state import ContractState
from chainkit.council.calls import Call
from chainkit.council.evidence.report import check_unchanged
from chainkit.council.proposal.grounds import MOST_EVIDENCE
from chainkit.council.triage.checks import Examiner, Witness, work
from chainkit.council.triage.files import find_evidence
from chainkit.council.triage.ranking import rank
from chainkit.council.triage.thresholds import DEFAULT_REPORTERS
from chainkit.council.triage.values import RankedNode, Ranking
from chainkit.errors import ConfigurationError
from chainkit.terminal.bar import progress_bar
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.connection import open_recorded_chain
from chainkit.terminal.facts import echo_notice
from chainkit.terminal.options import (
    block_hash,
    deployment_option,
    echo_json,
    is_on_command_line,
    json_option,
    rpc_option_for,
)
from chainkit.types import NANOSECONDS_PER_SECOND

_DISABLE, _COULD_NOT = 1, 2
"""Exit codes where a node should be disabled, and where that is not known."""


def _block_hashes(
    context: click.Context, parameter: click.Parameter, texts: Iterable[str]
) -> frozenset[bytes]:
    hashes = (block_hash(context, parameter, text) for text in texts)
    return frozenset(each for each in hashes if each is not None)


@click.command("triage", cls=CompleteCommand)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--trust",
    "trusted",
    metavar="HASH",
    multiple=True,
    callback=_block_hashes,
    help="Hash of bundles' last block, from a source that you trust, instead of --rpc; "
    "may be given again.",
)
@rpc_option_for(
    "JSON-RPC endpoint of the chain, for reports, for nodes' status, and for --propose."
)
@deployment_option
@click.option(
    "--reporters",
    "needed",
    type=click.IntRange(min=1),
    default=DEFAULT_REPORTERS,
    show_default=True,
    metavar="N",
    help="How many independent peers must report a failure that nothing proves.",
)
@propose_option
@json_option
def triage(
    directory: Path,
    trusted: frozenset[bytes],
    rpc_url: str | None,
    deployment_path: Path,
    needed: int,
    propose_path: Path | None,
    terms: TermsOptions,
    as_json: bool,
) -> None:
    """Check all reports and bundles in a folder, and report which nodes should be disabled.

    One proof of a safety failure is enough; N peers must report a failure of liveness, or a gap
    in a node's sequence ids, that nothing proves (XIP-49 §3.2.7).
    Exits 1 if a node should be disabled, 0 if none (or the proposal to do so was written), 2 if
    something could not be checked and the rest shows nothing.

    \b
    Example:
      chainkit council triage evidence --rpc http://127.0.0.1:8545 --deployment deployment.json
      chainkit council triage evidence --propose disable.json --council council.json \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    rpc_url = _chosen_endpoint(rpc_url, trusted)
    _check_options(rpc_url, propose_path, terms.council_path)
    # No proposal calls contracts that are not our own.
    own = None if propose_path is None else read_deployment_record(deployment_path)
    result = _triage(directory, trusted, rpc_url, deployment_path, needed)
    block = None if result.witness is None else result.witness.block
    if not as_json:
        echo_ranking(result.ranking, block)
    is_proposed = (
        own is not None
        and propose_path is not None
        and _propose(result, own, directory, propose_path, terms, as_json)
    )
    if as_json:
        proposal = {"proposal": str(propose_path) if is_proposed else None}
        echo_json(ranking_json(result.ranking, block, result.record.chain_id, needed) | proposal)
    sys.exit(_exit_code(result.ranking, is_proposed))


@dataclass(frozen=True, slots=True)
class _Result:
    ranking: Ranking
    record: DeploymentRecord | FollowedDeployment
    witness: Witness | None


def _chosen_endpoint(rpc_url: str | None, trusted: frozenset[bytes]) -> str | None:
    """Return the endpoint to use: an endpoint of the environment does not contradict --trust."""
    if not trusted:
        if rpc_url is None:
            raise click.UsageError("missing --trust, or --rpc (or CHAINKIT_RPC)")
        return rpc_url
    if is_on_command_line("rpc_url"):
        raise click.UsageError("expected one of --trust and --rpc, got both")
    return None


def _check_options(rpc_url: str | None, propose_path: Path | None, council: Path | None) -> None:
    """Refuse before everything is checked what would be refused afterwards."""
    if propose_path is None:
        return
    if rpc_url is None:
        raise click.UsageError("--propose needs --rpc: nodes' status is read from the chain")
    if council is None:
        raise click.UsageError("missing --council, for a proposal")
    if os.path.lexists(propose_path):
        raise ConfigurationError(f"proposal file {propose_path}", "a new file", "one that exists")


def _triage(
    directory: Path,
    trusted: frozenset[bytes],
    rpc_url: str | None,
    deployment_path: Path,
    needed: int,
) -> _Result:
    found = find_evidence(directory)
    record, witness = _opened(rpc_url, deployment_path)
    examiner = Examiner(record, witness, trusted)
    with progress_bar("checking", work(found)) as advance:
        claims, dismissed = examiner.examine(found, advance)
    if witness is not None:
        check_unchanged(witness.endpoint, witness.block)
    registered = None if witness is None else witness.registered
    return _Result(rank(claims, dismissed, registered, needed), record, witness)


def _opened(
    rpc_url: str | None, deployment_path: Path
) -> tuple[DeploymentRecord | FollowedDeployment, Witness | None]:
    if rpc_url is None:
        return read_recorded_deployment(deployment_path), None
    endpoint, record, head = open_recorded_chain(rpc_url, deployment_path)
    block = head.reference
    nodes = Registry(endpoint, node_registry_of(record).address).registered_nodes(block)
    registered = {each.node.node_id: each for each in nodes}
    # A clock that runs behind would have honest nodes live in the future.
    now_ns = max(time.time_ns(), head.timestamp * NANOSECONDS_PER_SECOND)
    return record, Witness(endpoint, block, registered, now_ns)


def _propose(
    result: _Result,
    record: DeploymentRecord,
    directory: Path,
    path: Path,
    terms: TermsOptions,
    is_quiet: bool,
) -> bool:
    """Draft the proposal to disable the recommended nodes; return whether there were any."""
    nodes, witness = result.ranking.to_disable, result.witness
    if not nodes or witness is None:
        if not is_quiet:
            click.echo("nothing to propose: no file was written")
        return False
    named = terms.evidence_paths
    terms = replace(
        terms,
        reason=terms.reason or default_reason(nodes),
        evidence_paths=(*_grounds(directory, nodes, len(named)), *named),
    )
    state = ContractState(witness.endpoint, witness.block)
    calls = [
        Call.make(record, "NodeRegistry", "updateHealth", each.node_id, False) for each in nodes
    ]
    write_proposal(state, record, calls, path, terms, is_quiet=is_quiet)
    return True


def _grounds(directory: Path, nodes: Sequence[RankedNode], others: int) -> list[Path]:
    """Return the evidence that fits into a proposal beside ``others``, some for each node first."""
    # Absolute: a bundle is named after its folder, also where the folder is the current one.
    root = Path(os.path.abspath(directory))
    turns = zip_longest(*(node.grounds for node in nodes))
    sources = list(dict.fromkeys(source for turn in turns for source in turn if source is not None))
    named = sources[: max(MOST_EVIDENCE - others, 0)]
    if len(named) < len(sources):
        words = f"the proposal names {len(named)} of {len(sources)} pieces of evidence"
        echo_notice(f"warning: {words}, as many as one can")
    return [root / source for source in named]


def _exit_code(ranking: Ranking, is_proposed: bool) -> int:
    if ranking.to_disable:
        return 0 if is_proposed else _DISABLE
    return 0 if ranking.is_complete else _COULD_NOT

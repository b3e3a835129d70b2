"""Commands that read a database, also beside a running indexer."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

import click

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import record_subject
from chainkit.contracts.followed import read_followed_deployment
from chainkit.contracts.registry import Registry
from chainkit.contracts.right_chain import check_deployment
from chainkit.errors import (
    ChainkitError,
    RetryableChainError,
    StoreUnavailable,
    WrongChain,
)
from chainkit.service.log_lines import one_line
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, json_option
from chainkit.text.hexadecimal import hex0x
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_indexer.cli.lines import fit, short, shortened
from chainkit_indexer.inspection.history import History, Payload, Retraction, read_history
from chainkit_indexer.inspection.status import RegistryState, Status, as_json, as_text, read_status
from chainkit_indexer.service.opening import existing
from chainkit_indexer.service.options import database_option
from chainkit_indexer.storage.store import Store

originator_option = click.option(
    "--originator",
    "originator_id",
    type=click.IntRange(min=0),
    default=BLOCKCHAIN_ORIGINATOR_ID,
    show_default=True,
    help="The originator of the sequence id.",
)


@click.command("status", cls=CompleteCommand)
@database_option
@click.option("--rpc", "rpc_url", metavar="URL", help="Also say how far behind this chain is.")
@click.option(
    "--deployment",
    "deployment_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="With --rpc, ask the registry of nodes on the chain itself.",
)
@click.option(
    "--watch",
    "watch_seconds",
    type=click.FloatRange(min=0.1),
    is_flag=False,
    flag_value=2.0,
    metavar="[SECONDS]",
    help="Say it again and again, every 2 seconds or as given, until Ctrl-C.",
)
@click.option("--rounds", type=click.IntRange(min=1), help="With --watch, end after so many.")
@json_option
def status_command(
    database: str,
    rpc_url: str | None,
    deployment_path: Path | None,
    watch_seconds: float | None,
    rounds: int | None,
    as_json: bool,
) -> None:
    """Show the cursor, the final block, the stored envelopes, and the reorgs.

    The node's key is shortened; --json has it in full, and gives one line each time with --watch.
    An endpoint or a database that does not answer for a while does not end --watch.

    \b
    Example:
      chainkit index status --database node.db --watch
    """
    if deployment_path is not None and rpc_url is None:
        raise click.UsageError("--deployment needs --rpc URL, to ask the registry")
    if rounds is not None and watch_seconds is None:
        raise click.UsageError("--rounds needs --watch")
    with existing(database) as store:
        if watch_seconds is None:
            _tell(*_ask(store, rpc_url, deployment_path), as_json)
            return
        _watch(
            lambda: _ask(store, rpc_url, deployment_path),
            as_json,
            watch_seconds,
            repeat(None) if rounds is None else range(rounds),
        )


def _watch(
    ask: Callable[[], tuple[Status, int | None]],
    as_json: bool,
    seconds: float,
    rounds: Iterable[object],
) -> None:
    failure: ChainkitError | None = None
    for number, _ in enumerate(rounds):
        if number:
            time.sleep(seconds)
        try:
            found, behind = ask()
        except (RetryableChainError, StoreUnavailable) as error:
            if str(error) != str(failure):
                click.echo(f"retrying: {one_line(str(error))}", err=True)
            failure = error
            continue
        failure = None
        _tell_round(number, found, behind, as_json)
    if failure is not None:
        raise failure


def _tell_round(number: int, found: Status, behind: int | None, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(_as_json(found, behind), sort_keys=True))
    else:
        if sys.stdout.isatty():
            click.clear()
        elif number:
            click.echo()
        _tell(found, behind, as_json=False)
    # A reader of a pipe wants each round at once, not when a buffer is full.
    sys.stdout.flush()


def _ask(
    store: Store, rpc_url: str | None, deployment_path: Path | None
) -> tuple[Status, int | None]:
    found = read_status(store)
    if rpc_url and deployment_path:
        found = _with_registry(rpc_url, deployment_path, found)
    return found, None if rpc_url is None else _blocks_behind(rpc_url, found)


def _as_json(found: Status, behind: int | None) -> dict[str, Any]:
    return as_json(found) | ({} if behind is None else {"blocks_behind": behind})


def _tell(found: Status, behind: int | None, as_json: bool) -> None:
    if as_json:
        echo_json(_as_json(found, behind))
        return
    click.echo(shortened(as_text(found)))
    if behind is not None:
        click.echo(f"behind       {behind} blocks")


def _blocks_behind(rpc_url: str, found: Status) -> int:
    endpoint = Endpoint.connect(rpc_url)
    genesis = endpoint.header(0)
    if genesis.hash != found.identity.genesis_hash:
        expected, got = hex0x(found.identity.genesis_hash), hex0x(genesis.hash)
        raise WrongChain(f"block 0 at {endpoint.name}", expected, got)
    height = found.cursor.number if found.cursor else found.identity.first_block - 1
    return endpoint.head().number - height


def _with_registry(rpc_url: str, deployment_path: Path, found: Status) -> Status:
    """Add which node this database is, and which nodes it is to follow, by the chain itself.

    A record that names no registry leaves the status as the database has it.
    """
    deployment = read_followed_deployment(deployment_path)
    if deployment.registry is None:
        check_deployment(Endpoint.connect(rpc_url), deployment)
        return found
    registry = deployment.registry_here(record_subject(deployment_path))
    endpoint = Endpoint.connect(rpc_url)
    head = check_deployment(endpoint, deployment)
    nodes = Registry(endpoint, registry.address).nodes(head.reference)
    state = RegistryState.of(nodes, found.identity.node_public_key, head.reference)
    return replace(found, registry=state)


@click.command("history", cls=CompleteCommand)
@click.argument("sequence_id", type=click.IntRange(min=0), metavar="SEQUENCE")
@originator_option
@database_option
@json_option
def history_command(sequence_id: int, originator_id: int, database: str, as_json: bool) -> int:
    """Show the history of a sequence id: its payloads, its reorgs, and the envelope served now.

    Ends with 1 where this node never knew it. Hashes are shortened; --json has them in full.

    \b
    Example:
      chainkit index history 42 --database node.db
    """
    with existing(database) as store:
        found = read_history(store, originator_id, sequence_id)
    if as_json:
        echo_json(_history_as_json(found))
    else:
        click.echo(f"envelope {sequence_id} of originator {originator_id}")
        for line in _history_as_text(found):
            click.echo(fit(line, indent="  "))
    return 0 if found.is_known else 1


def _history_as_text(found: History) -> list[str]:
    if not found.is_known:
        return ["this node never knew it"]
    lines = [
        line
        for each in found.retracted
        for line in (_payload_as_text(each.payload), f"  {_retracted_as_text(each)}")
    ]
    lines += [
        f"moved here from {each.payload.sequence_id}, where it stood until reorg {each.reorg_id}: "
        f"transaction {short(each.payload.transaction_hash)}"
        for each in found.arrived
    ]
    if found.current is None:
        return [*lines, "now: nothing"]
    final = "final" if found.is_final else "soft"
    reason = found.current.reason
    more = "" if reason is None else f"; never served: {reason}"
    state = f"{final}, {found.confirmations} confirmations{more}"
    return [*lines, f"now: {_payload_as_text(found.current)}", f"  {state}"]


def _payload_as_text(payload: Payload) -> str:
    state = "served" if payload.is_served else "in quarantine"
    return (
        f"{state} from block {payload.block_number} {short(payload.block_hash)}, "
        f"log {payload.log_index}, transaction {short(payload.transaction_hash)}"
    )


def _retracted_as_text(entry: Retraction) -> str:
    outcome = entry.outcome
    if entry.new_sequence_id is not None:
        outcome = f"moved to {entry.new_sequence_id}"
    return f"taken back by reorg {entry.reorg_id} above block {entry.ancestor_number}: {outcome}"


def _history_as_json(found: History) -> dict[str, Any]:
    current = found.current
    return {
        "originator_id": found.originator_id,
        "sequence_id": found.sequence_id,
        "retracted": [_retraction_as_json(each) for each in found.retracted],
        "arrived": [_retraction_as_json(each) for each in found.arrived],
        "now": current
        and _payload_as_json(current)
        | {"finality": "final" if found.is_final else "soft", "confirmations": found.confirmations},
    }


def _retraction_as_json(entry: Retraction) -> dict[str, Any]:
    return _payload_as_json(entry.payload) | {
        "reorg_id": entry.reorg_id,
        "ancestor_number": entry.ancestor_number,
        "outcome": entry.outcome,
        "new_sequence_id": entry.new_sequence_id,
    }


def _payload_as_json(payload: Payload) -> dict[str, Any]:
    return {
        "sequence_id": payload.sequence_id,
        "state": "served" if payload.is_served else "quarantined",
        "block_number": payload.block_number,
        "block_hash": hex0x(payload.block_hash),
        "transaction_hash": hex0x(payload.transaction_hash),
        "log_index": payload.log_index,
        "envelope": payload.envelope and hex0x(payload.envelope),
        "reason": payload.reason,
    }

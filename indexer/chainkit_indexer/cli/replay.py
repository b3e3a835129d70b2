"""Sends transactions again that reorgs dropped: a dry run without --broadcast."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from chainkit.chain import Endpoint, EndpointPool
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, endpoints_option, json_option
from chainkit.text.hexadecimal import hex0x
from chainkit_indexer.cli.database_chain import connect_to_chain_of
from chainkit_indexer.cli.lines import fit, short
from chainkit_indexer.replay.replay import Fate, Replayed, replay
from chainkit_indexer.service.opening import existing
from chainkit_indexer.service.options import database_option


@click.command("replay", cls=CompleteCommand)
@database_option
@endpoints_option
@click.option(
    "--reorg",
    "reorg_id",
    type=click.IntRange(min=1),
    metavar="ID",
    help="Only what this reorg dropped, as `chainkit index status` numbers them.",
)
@click.option(
    "--broadcast", is_flag=True, help="Send them; without it nothing is sent. Needs no key."
)
@json_option
def replay_command(
    database: str,
    rpc_urls: Sequence[str],
    reorg_id: int | None,
    broadcast: bool,
    as_json: bool,
) -> None:
    """Send transactions that reorgs dropped again, in their original order; a dry run first.

    It exits 1 where one of them cannot be replayed, and says why. The order in which they are mined
    again is not ours to choose. The first of several endpoints that answers is asked for all.

    \b
    Example:
      chainkit index replay --database node.db --rpc http://127.0.0.1:8545
    """
    found: list[Replayed] = []
    with existing(database) as store:
        endpoint = _answering(connect_to_chain_of(store.identity, rpc_urls))
        work = replay(endpoint, store, reorg_id, broadcast)
        try:
            for replayed in work:
                found.append(replayed)
                if not as_json:
                    click.echo(_as_text(replayed))
        finally:
            # Also when an endpoint fails half-way: what was sent is sent.
            counts = Counter(str(replayed.fate) for replayed in found)
            _echo_end(found, counts, broadcast, as_json)
    if counts[Fate.NOT_REPLAYED]:
        sys.exit(1)


def _echo_end(
    found: Sequence[Replayed], counts: Counter[str], broadcast: bool, as_json: bool
) -> None:
    if as_json:
        transactions = [_as_json(replayed) for replayed in found]
        echo_json({"broadcast": broadcast, "counts": counts, "transactions": transactions})
        return
    parts = [f"{count} {fate}" for fate, count in sorted(counts.items())]
    click.echo(f"dropped transactions: {', '.join(parts) or 'none'}")
    if counts[Fate.WOULD_BE_SENT]:
        click.echo("nothing was sent: add --broadcast")


def _answering(pool: EndpointPool) -> Endpoint:
    """Return the first endpoint with a head: only it knows the transactions that it received."""

    def with_head(endpoint: Endpoint) -> Endpoint:
        endpoint.head()
        return endpoint

    return pool.first_answer(with_head)


def _as_text(replayed: Replayed) -> str:
    dropped = replayed.dropped
    place = f"reorg {dropped.reorg_id}, block {dropped.block_number}.{dropped.transaction_index}"
    said = fit(f"{replayed.fate}: {replayed.why}", indent="  ")
    return f"{place}, transaction {short(dropped.transaction_hash)}\n{said}"


def _as_json(replayed: Replayed) -> dict[str, Any]:
    dropped, transaction = replayed.dropped, replayed.transaction
    return {
        "reorg_id": dropped.reorg_id,
        "block_number": dropped.block_number,
        "transaction_index": dropped.transaction_index,
        "transaction_hash": hex0x(dropped.transaction_hash),
        "fate": str(replayed.fate),
        "why": replayed.why,
        "sender": transaction.sender if transaction else None,
        "nonce": transaction.nonce if transaction else None,
    }

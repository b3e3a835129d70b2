"""``node prune``: deletes what has expired and was accounted for, beside a running node."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Any, Final

import click

from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_notice
from chainkit.terminal.options import echo_json, json_option
from chainkit.terminal.waiting import told_while_waiting
from chainkit.text.counting import counted
from chainkit_indexer.service.options import database_option
from chainkit_indexer.storage.store import Store
from chainkit_node.pruning.pruner import BATCH_ENVELOPES, MOST_ENVELOPES, PrunedLog, Pruner
from chainkit_node.storage.pruning import Kept

_REASONS: Final = {
    Kept.PERMANENT: "of a kind that never expires",
    Kept.NEWEST_KEY_PACKAGE: "newest key packages",
    Kept.DISPUTED: "evidence",
    Kept.NOT_ATTESTED: "not attested yet",
    Kept.LAST: "last of the log",
}


@click.command("prune", cls=CompleteCommand)
@database_option
@click.option("--dry-run", "is_dry", is_flag=True, help="Count, and delete nothing.")
@click.option(
    "--batch",
    type=click.IntRange(1, MOST_ENVELOPES),
    default=BATCH_ENVELOPES,
    show_default=True,
    metavar="N",
    help="Most envelopes that one transaction deletes; a node that runs waits for one.",
)
@json_option
def prune_command(database: str, is_dry: bool, batch: int, as_json: bool) -> None:
    """Delete envelopes that have expired and that attested payer reports cover.

    An envelope goes a day after its expiry, and never before most nodes have signed what its payer
    is charged for it. Identity updates, commits and all else of the chain stay for ever, and so do
    each installation's newest key package and the last envelope of each node. Digests stay, too, so
    nodes and clients tell what has expired from what was left out. The node may run. It is safe to
    end this command at any time: what it has deleted was to be deleted. Run it every day.

    \b
    Example:
      chainkit node prune --database node.db --dry-run
    """
    opened = Store.open_existing(database) if is_dry else Store.open_beside(database)
    logs: list[PrunedLog] = []
    done: dict[int, int] = {}

    def progress(log: PrunedLog) -> None:
        done[log.originator_id] = log.envelopes

    with closing(opened) as store:
        pruner = Pruner(store, time.time, time.monotonic, time.sleep, batch, is_dry)
        verb = "found" if is_dry else "deleted"
        try:
            with told_while_waiting(lambda: f"{verb} {counted(sum(done.values()), 'envelope')}"):
                logs.extend(pruner.run(progress))
                given = None if is_dry else pruner.give_back()
        except KeyboardInterrupt:
            echo_notice(f"{verb} {counted(sum(done.values()), 'envelope')}; run it again to go on")
            raise
    if as_json:
        echo_json(_as_json(pruner, logs, given, is_dry))
        return
    for line in _lines(logs, given, is_dry):
        click.echo(line)


def _as_json(
    pruner: Pruner, logs: Sequence[PrunedLog], given: int | None, is_dry: bool
) -> dict[str, Any]:
    return {
        "dry_run": is_dry,
        "expired_before": pruner.cutoff,
        "envelopes": sum(each.envelopes for each in logs),
        "bytes": sum(each.bytes for each in logs),
        "given_back_bytes": given,
        "originators": [
            {
                "originator_id": each.originator_id,
                "covered_through": each.through,
                "kinds": {
                    kind.name.lower(): asdict(tally) for kind, tally in sorted(each.kinds.items())
                },
                "kept": each.kept if is_dry else None,
            }
            for each in logs
        ],
    }


def _lines(logs: Sequence[PrunedLog], given: int | None, is_dry: bool) -> Iterator[str]:
    for each in logs:
        kinds = [
            f"{counted(tally.envelopes, kind.name.lower().replace('_', ' '))} ({tally.bytes} bytes)"
            for kind, tally in sorted(each.kinds.items())
        ]
        covered = f"attested up to id {each.through}" if each.through else "nothing attested yet"
        yield f"originator {each.originator_id}: {', '.join(kinds) or 'nothing'}; {covered}"
        if each.kept:
            kept = [f"{count} {_REASONS[reason]}" for reason, count in each.kept.items()]
            yield f"  expired, and stay: {', '.join(kept)}"
    envelopes, size = sum(each.envelopes for each in logs), sum(each.bytes for each in logs)
    total = f"{counted(envelopes, 'envelope')}, {size} bytes"
    if is_dry:
        yield f"would delete {total}"
        return
    yield f"deleted {total}"
    if given is not None:
        yield f"gave {given} bytes back to the file system"
    elif envelopes:
        yield "the database uses the space again, and does not give it back"

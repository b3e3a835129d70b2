"""``node verify``: whether the database holds what each originator signed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Final

import click

from chainkit.terminal.bar import progress_bar
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, json_option
from chainkit_indexer.service.opening import existing
from chainkit_indexer.service.options import database_option
from chainkit_node.inspection.verify import LogVerifier, StoredFault, VerifiedLog
from chainkit_node.inspection.words import shown

_MOST_IN_TEXT: Final = 20
_MOST_IN_JSON: Final = 1000


@click.command("verify", cls=CompleteCommand)
@database_option
@json_option
def verify_command(database: str, as_json: bool) -> int:
    """Verify the envelopes of all originators that the database holds; ends with 1 for a fault.

    Each signature must be by the registry's key, each row must say what the envelope says, each
    missing id must be a gap that the node knows, and the digests that nodes compare must be those
    of the envelopes. The node may run. Nothing is written and nobody is asked: `index verify`
    compares the envelopes of originator 0 with the chain.

    \b
    Example:
      chainkit node verify --database node.db
    """
    kept: list[StoredFault] = []

    def keep(fault: StoredFault) -> None:
        if len(kept) == (_MOST_IN_JSON if as_json else _MOST_IN_TEXT):
            return
        kept.append(fault)
        if not as_json:
            click.echo(shown(str(fault)))

    with existing(database) as store:
        verifier = LogVerifier(store, keep)
        with progress_bar("verifying", verifier.envelopes) as advance:
            logs = list(verifier.verify(advance))
    faults = sum(each.faults for each in logs)
    if as_json:
        found = {"fault_count": faults, "faults": [asdict(each) for each in kept]}
        echo_json({"originators": [asdict(each) for each in logs], **found})
    else:
        if (more := faults - len(kept)) > 0:
            click.echo(f"… and {more} more (--json lists the first {_MOST_IN_JSON})")
        for line in _lines(logs):
            click.echo(line)
    return 1 if faults else 0


def _lines(logs: Sequence[VerifiedLog]) -> Iterator[str]:
    for each in logs:
        kind = "quarantined" if each.is_of_chain else "missing"
        pruned = f", {each.pruned_ids} pruned" if each.pruned_ids else ""
        verdict = f"{each.faults} faults" if each.faults else "all as signed"
        yield (
            f"originator {each.originator_id}: {each.envelopes} envelopes up to id {each.last_id}, "
            f"{each.missing_ids} {kind}{pruned}, {each.ranges} digests: {verdict}"
        )
    if not logs:
        yield "no envelopes yet"

"""How the followed blocks were established, as runs of consecutive blocks without a gap.

A run and not a column: most databases have one row, and a proof made later changes no envelope.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select, update

from chainkit_indexer.storage.schema import provenance
from chainkit_indexer.types import Provenance, ProvenanceRun


def read_runs(connection: Connection) -> tuple[ProvenanceRun, ...]:
    """Return the runs in rising order; together they cover all blocks that were followed."""
    rows = connection.execute(select(provenance).order_by(provenance.c.first_block))
    return tuple(ProvenanceRun(first, last, Provenance(word)) for first, last, word in rows)


def extend_runs(connection: Connection, run: ProvenanceRun) -> None:
    """Add blocks above all others; those that continue a run of their kind lengthen it."""
    newest = select(provenance).order_by(provenance.c.first_block.desc()).limit(1)
    before = connection.execute(newest).one_or_none()
    if before is not None and before.established == run.provenance:
        of_newest = provenance.c.first_block == before.first_block
        connection.execute(update(provenance).where(of_newest).values(last_block=run.last_block))
    else:
        _insert(connection, run)


def cut_runs(connection: Connection, last_block: int) -> None:
    """Forget the blocks above a height."""
    connection.execute(delete(provenance).where(provenance.c.first_block > last_block))
    above = provenance.c.last_block > last_block
    connection.execute(update(provenance).where(above).values(last_block=last_block))


def raise_run(connection: Connection, proved: ProvenanceRun) -> None:
    """Change how some of the blocks were established."""
    runs = read_runs(connection)
    connection.execute(delete(provenance))
    parts = [part for run in runs for part in _split(run, proved)]
    for merged in _merged(parts):
        _insert(connection, merged)


def _split(run: ProvenanceRun, proved: ProvenanceRun) -> list[ProvenanceRun]:
    """Return the parts of a run below, within and above the blocks that were proved."""
    first = max(run.first_block, proved.first_block)
    last = min(run.last_block, proved.last_block)
    if first > last:
        return [run]
    parts = [
        ProvenanceRun(run.first_block, first - 1, run.provenance),
        ProvenanceRun(first, last, proved.provenance),
        ProvenanceRun(last + 1, run.last_block, run.provenance),
    ]
    return [part for part in parts if part.first_block <= part.last_block]


def _merged(runs: list[ProvenanceRun]) -> list[ProvenanceRun]:
    merged = runs[:1]
    for run in runs[1:]:
        before = merged[-1]
        if before.provenance is run.provenance:
            merged[-1] = ProvenanceRun(before.first_block, run.last_block, run.provenance)
        else:
            merged.append(run)
    return merged


def _insert(connection: Connection, run: ProvenanceRun) -> None:
    first, last, word = run.first_block, run.last_block, str(run.provenance)
    row = {"first_block": first, "last_block": last, "established": word}
    connection.execute(insert(provenance).values(row))

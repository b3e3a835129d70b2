"""`python -m benchmarks.retention.deleting DATABASE HOW`: deletes a log, in its own process."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import Final

from sqlalchemy import delete

from benchmarks.retention.logs import NODE_ID
from chainkit_indexer.storage.schema import envelopes
from chainkit_indexer.storage.store import Store
from chainkit_node.pruning.pruner import BATCH_BYTES, BATCH_ENVELOPES
from chainkit_node.storage.pruning import Pruning
from chainkit_node.storage.schema import charges

DATABASE: Final = "database"
"""The database's own deletion of the same rows, by ranges of ids: it asks nothing, and keeps
nothing of them."""
PRUNE: Final = "prune"
OTHERS: Final = "others"
"""As another node's log: this node signs no heads of its topics, which need entries."""


def main(location: str, how: str) -> None:
    """Print how many envelopes were deleted, and in how many seconds; all but the last."""
    with closing(Store.open_beside(location)) as store:
        pruning = Pruning(NODE_ID, is_own=how != OTHERS, now=int(time.time()))
        with store.reading() as connection:
            last = pruning.through(connection)
        started, deleted, first = time.perf_counter(), 0, 1
        while first <= last:
            count, first = (_delete if how == DATABASE else _prune)(store, pruning, first, last)
            deleted += count
        print(deleted, time.perf_counter() - started)


def _prune(store: Store, pruning: Pruning, first: int, last: int) -> tuple[int, int]:
    with store.reading() as connection:
        ids = range(first, last + 1)
        found = pruning.find(connection, ids, BATCH_ENVELOPES, BATCH_BYTES)
    if not found:
        return 0, last + 1
    with store.writing() as connection:
        deleted = pruning.delete(connection, found, store.insert_rows)
        return len(deleted), found[-1].sequence_id + 1


def _delete(store: Store, pruning: Pruning, first: int, last: int) -> tuple[int, int]:
    end = min(first + BATCH_ENVELOPES - 1, last)
    with store.writing() as connection:
        count = 0
        for table in (charges, envelopes):
            is_of = table.c.originator_id == pruning.originator_id
            within = table.c.sequence_id.between(first, end)
            count = connection.execute(delete(table).where(is_of, within)).rowcount
    return count, end + 1


if __name__ == "__main__":
    main(*sys.argv[1:])

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
from chainkit_node.pruning.pruner import BATCH_ENVELOPES, Pruner
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
        started = time.perf_counter()
        deleted = (_delete if how == DATABASE else _prune)(store, pruning)
        print(deleted, time.perf_counter() - started)


def _prune(store: Store, pruning: Pruning) -> int:
    # No time passes by this timer: batches are as large as they may be, and no pause is made.
    pruner = Pruner(store, time.time, lambda: 0.0, lambda seconds: None)
    return pruner.prune_log(pruning, lambda log: None).envelopes


def _delete(store: Store, pruning: Pruning) -> int:
    with store.reading() as connection:
        last = pruning.through(connection)
    deleted = 0
    for first in range(1, last + 1, BATCH_ENVELOPES):
        end = min(first + BATCH_ENVELOPES - 1, last)
        with store.writing() as connection:
            for table in (charges, envelopes):
                is_of = table.c.originator_id == pruning.originator_id
                within = table.c.sequence_id.between(first, end)
                count = connection.execute(delete(table).where(is_of, within)).rowcount
        deleted += count
    return deleted


if __name__ == "__main__":
    main(*sys.argv[1:])

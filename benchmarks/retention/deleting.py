"""`python -m benchmarks.retention.deleting FILE HOW`: deletes a log, in a process of its own."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import Final

from sqlalchemy import delete

from benchmarks.retention.logs import NODE_ID
from chainkit_indexer.storage.schema import envelopes
from chainkit_indexer.storage.store import Store
from chainkit_node.pruning.pruner import BATCH_ENVELOPES
from chainkit_node.storage.pruning import Pruning

DATABASE: Final = "database"
"""The database's own deletion, by ranges of ids."""
PRUNE: Final = "prune"
OTHERS: Final = "others"
"""As another node's log: this node signs no heads of its topics, which need entries."""
PACED: Final = "paced"
"""With a pause behind each batch that is as long, as the command makes it."""


def main(path: str, how: str) -> None:
    """Print how many envelopes were deleted, and in how many seconds; all but the last."""
    with closing(Store.open_beside(path)) as store:
        pruning = Pruning(NODE_ID, is_own=how != OTHERS, now=int(time.time()))
        with store.reading() as connection:
            last = pruning.through(connection)
        started, deleted, first = time.perf_counter(), 0, 1
        while first <= last:
            begun = time.perf_counter()
            count, first = (_delete if how == DATABASE else _prune)(store, pruning, first, last)
            if how == PACED:
                time.sleep(time.perf_counter() - begun)
            deleted += count
        print(deleted, time.perf_counter() - started)


def _prune(store: Store, pruning: Pruning, first: int, last: int) -> tuple[int, int]:
    with store.reading() as connection:
        found = pruning.find(connection, range(first, last + 1), BATCH_ENVELOPES)
    if not found:
        return 0, last + 1
    with store.writing() as connection:
        return len(pruning.delete(connection, found)), found[-1].sequence_id + 1


def _delete(store: Store, pruning: Pruning, first: int, last: int) -> tuple[int, int]:
    end = min(first + BATCH_ENVELOPES - 1, last)
    is_one = envelopes.c.originator_id == pruning.originator_id
    within = envelopes.c.sequence_id.between(first, end)
    with store.writing() as connection:
        return connection.execute(delete(envelopes).where(is_one, within)).rowcount, end + 1


if __name__ == "__main__":
    main(*sys.argv[1:])

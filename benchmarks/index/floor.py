"""The floor: what it takes to ask the endpoint for everything, one range after the other."""

from __future__ import annotations

from typing import Final

from benchmarks.index.job import Job, Measured
from benchmarks.index.meter import Meter
from chainkit.chain import Endpoint
from chainkit.contracts.followed import read_followed_deployment
from chainkit_indexer.follow.fetch import PayloadLogs
from chainkit_indexer.follow.loop import collect_garbage_seldom

_BLOCKS_PER_REQUEST: Final = 100


def fetch_what_proves(job: Job) -> Measured:
    """Read also all transactions and receipts, and forget them: most of it is the server's time."""
    return _fetch(job, with_receipts=True)


def fetch_and_parse(job: Job) -> Measured:
    """Read headers and logs as typed values with the indexer's own client, and forget them."""
    return _fetch(job, with_receipts=False)


def _fetch(job: Job, with_receipts: bool) -> Measured:
    wanted = PayloadLogs(read_followed_deployment(job.record_path)).wanted
    endpoint = Endpoint.connect(job.url)
    endpoint.head()
    # As the indexer does: else it would be compared with a slower client than its own.
    collect_garbage_seldom()
    meter = Meter(job.stretch.events)
    last = job.stretch.last_block
    for start in range(job.stretch.first_block, last + 1, _BLOCKS_PER_REQUEST):
        end = min(start + _BLOCKS_PER_REQUEST - 1, last)
        _, logs = endpoint.blocks_with_logs(start, end, wanted)
        if with_receipts:
            heights = range(start, end + 1)
            endpoint.full_blocks(heights)
            endpoint.block_receipts(heights)
        meter.count(len(logs))
    return meter.finish()

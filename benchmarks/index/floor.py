"""The floor: what no indexer that asks this endpoint in this way can be faster than."""

from __future__ import annotations

from typing import Final

from benchmarks.index.job import Job, Measured
from benchmarks.index.meter import Meter
from chainkit.chain import Endpoint
from chainkit.payload_contract import read_followed_deployment
from chainkit_indexer.fetch import PayloadLogs

_BLOCKS_PER_REQUEST: Final = 100


def fetch_and_parse(job: Job) -> Measured:
    """Read headers and logs as typed values with the indexer's own client, and forget them."""
    wanted = PayloadLogs(read_followed_deployment(job.record_path)).wanted
    endpoint = Endpoint.connect(job.url)
    endpoint.head()
    meter = Meter(job.stretch.events)
    last = job.stretch.last_block
    for start in range(job.stretch.first_block, last + 1, _BLOCKS_PER_REQUEST):
        end = min(start + _BLOCKS_PER_REQUEST - 1, last)
        _, logs = endpoint.blocks_with_logs(start, end, wanted)
        meter.count(len(logs))
    return meter.finish()

"""`python -m benchmarks.network.in_process`: two logs that differ, compared without a network."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from benchmarks.harness import measuring
from benchmarks.network.logs import (
    ORIGINATOR,
    copied_log,
    lose,
    new_log,
    repair,
    store_all_ranges,
)
from benchmarks.target import at_most, below
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.service.grpc_server import Unary
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.store import Store
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.repairing.comparison import compare, fetch
from chainkit_node.serving.comparing import LogComparer
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.reading import Reader
from chainkit_node.settings import ServingLimits

_MOST_SECONDS: Final = 2.0
_MOST_BYTES: Final = 50_000


@dataclass
class _Counted:
    """A method that is called without a network, and how much would have travelled."""

    method: Unary
    calls: int = 0
    size: int = 0
    """Bytes."""

    async def __call__(self, request: bytes) -> bytes:
        answer = await self.method(request)
        self.calls += 1
        self.size += len(request) + len(answer)
        return answer


@click.command()
@click.option("--envelopes", default=1_000_000, show_default=True, help="Envelopes of each node.")
@click.option("--differences", default=10, show_default=True, help="Envelopes that one lacks.")
def main(envelopes: int, differences: int) -> None:
    """Let one of two nodes find and fetch what it lacks, without a network between them.

    Exits 0 when both targets are reached, 1 if not, 2 if it could not measure.

    \b
    Example:
      python -m benchmarks.network.in_process --envelopes 100000
    """
    with measuring(), tempfile.TemporaryDirectory() as name:
        is_reached = _measure(Path(name), envelopes, differences)
    sys.exit(0 if is_reached else 1)


def _measure(folder: Path, envelopes: int, differences: int) -> bool:
    there = new_log(folder / "there.db", envelopes)
    started = time.perf_counter()
    pieces = store_all_ranges(there)
    elapsed = time.perf_counter() - started
    click.echo(f"digests of {envelopes:,} envelopes: {elapsed:.1f} s in {pieces:,} pieces")
    there.close()
    here = copied_log(folder / "here.db", there)
    there = copied_log(folder / "there again.db", there)
    lost = sorted(random.Random(1).sample(range(1, envelopes + 1), differences))
    lose(here, lost)
    store_all_ranges(here)
    try:
        return asyncio.run(_repaired(here, there, lost))
    finally:
        here.close()
        there.close()


async def _repaired(here: Store, there: Store, lost: list[int]) -> bool:
    log, peer = EnvelopeLog(here), EnvelopeLog(there)
    digests = _Counted(LogComparer(peer, ServingLimits()).compare_ranges)
    queries = _Counted(Reader(peer, ServingLimits(), NodeMetrics()).query_envelopes)
    started = time.perf_counter()
    found = await compare(digests, log, ORIGINATOR)
    compared = time.perf_counter() - started
    calls, size = digests.calls, digests.size
    async for envelopes in fetch(queries, ORIGINATOR, found.only_there):
        repair(here, [_row(each) for each in envelopes])
    elapsed = time.perf_counter() - started
    assert [each for run in found.only_there for each in run] == lost
    after = await compare(digests, log, ORIGINATOR)
    assert (after.only_here, after.only_there, after.differing) == ((), (), ())
    log.close()
    peer.close()
    click.echo(f"found in {compared:.3f} s by {calls} calls; repaired by {queries.calls} more")
    targets = (
        below("find and repair", _MOST_SECONDS, elapsed, " s"),
        at_most("digests, with their requests", _MOST_BYTES, size, " bytes"),
    )
    for target in targets:
        click.echo(f"{target.what:<30} {target.wanted:>20} {target.found:>14}  {target.verdict}")
    return all(target.verdict == "reached" for target in targets)


def _row(envelope: bytes) -> StoredEnvelope:
    stated = parse_originated(envelope).envelope
    number, time_ns = stated.sequence_id, stated.originator_ns
    return StoredEnvelope(ORIGINATOR, number, time_ns, b"\0topic", None, envelope)


if __name__ == "__main__":
    main()

"""`python -m benchmarks.network.in_process`: two logs that differ, compared without a network."""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from benchmarks.harness import measuring
from benchmarks.network.rows import lose, signed_rows, store_all_ranges, store_rows
from benchmarks.target import at_most, below
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.service.grpc_methods import Unary
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.repairing.comparison import compare, fetch
from chainkit_node.serving.comparing import LogComparer
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.reading import Reader
from chainkit_node.settings import ServingLimits
from chainkit_node.storage.range_digests import forget_ranges

_MOST_SECONDS: Final = 2.0
_MOST_BYTES: Final = 50_000
_ORIGINATOR: Final = 100
_IDENTITY: Final = Identity(31337, bytes(32), bytes(65), 0, ())
_TOPIC: Final = b"\0topic"
_PAYLOAD_BYTES: Final = 500
_DIFFERENT_PAYLOADS: Final = 10_000


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
    there = Store.open(str(folder / "there.db"), _IDENTITY)
    chance = random.Random(1)
    payloads = [chance.randbytes(_PAYLOAD_BYTES) for _ in range(_DIFFERENT_PAYLOADS)]
    store_rows(there, signed_rows(None, _ORIGINATOR, envelopes, [_TOPIC], payloads))
    started = time.perf_counter()
    pieces = store_all_ranges(there, _ORIGINATOR)
    elapsed = time.perf_counter() - started
    click.echo(f"digests of {envelopes:,} envelopes: {elapsed:.1f} s in {pieces:,} pieces")
    there.close()
    here, there = (_copied(there, folder / name) for name in ("here.db", "there again.db"))
    lost = sorted(random.Random(1).sample(range(1, envelopes + 1), differences))
    lose(here, _ORIGINATOR, lost)
    try:
        return asyncio.run(_repaired(here, there, lost))
    finally:
        here.close()
        there.close()


def _copied(store: Store, path: Path) -> Store:
    shutil.copyfile(store.name, path)
    return Store.open(str(path), _IDENTITY)


async def _repaired(here: Store, there: Store, lost: list[int]) -> bool:
    log, peer = EnvelopeLog(here), EnvelopeLog(there)
    digests = _Counted(LogComparer(peer, ServingLimits()).compare_ranges)
    queries = _Counted(Reader(peer, ServingLimits(), NodeMetrics()).query_envelopes)
    started = time.perf_counter()
    found = await compare(digests, log, _ORIGINATOR)
    compared = time.perf_counter() - started
    calls, size = digests.calls, digests.size
    async for envelopes in fetch(queries, _ORIGINATOR, found.only_there):
        found_rows = [_row(each) for each in envelopes]
        with here.writing() as connection:
            here.insert_envelopes(connection, found_rows)
            forget_ranges(connection, _ORIGINATOR, [row.sequence_id for row in found_rows])
    elapsed = time.perf_counter() - started
    assert [each for run in found.only_there for each in run] == lost
    after = await compare(digests, log, _ORIGINATOR)
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
    return StoredEnvelope(_ORIGINATOR, number, time_ns, _TOPIC, None, envelope)


if __name__ == "__main__":
    main()

"""Two real nodes hold a long log of one of them, but for a few envelopes that one lacks."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import Collection
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.network.in_front import InFront
from benchmarks.network.nodes import BenchmarkNode, Registry
from benchmarks.network.rows import copy_log, fill, signed_rows
from benchmarks.node.payloads import payer_envelopes, topics
from chainkit.errors import MalformedAnswer
from localnet.ports import free_port

_POLL_SECONDS: Final = 0.005
_MOST_SECONDS: Final = 60.0
_DIFFERENT_PAYLOADS: Final = 10_000
"""They repeat after that, under other sequence ids and other signatures of the node."""
_HELD: Final = "SELECT count(*) FROM envelopes WHERE originator_id = ? AND sequence_id IN ({})"


@dataclass(frozen=True, slots=True)
class Repaired:
    """How a node got back what it lacked."""

    seconds: float
    """From its first question to the last envelope that is stored."""
    comparisons: int
    answered_bytes: int
    asked_bytes: int
    row_bytes: float
    """Bytes of the database file for each envelope: with indexes and the digests of ranges."""


def repair(stack: ExitStack, registry: Registry, envelopes: int, differences: int) -> Repaired:
    """Let one node begin to compare its log with the other's, through what counts the bytes."""
    there, here = BenchmarkNode(stack, registry, "c"), BenchmarkNode(stack, registry, "d")
    port = free_port()
    for node, known_port in ((there, port), (here, None)):
        node.start()
        node.join(known_port)
        node.stop()
    lost = random.Random(1).sample(range(1, envelopes), differences)
    some = topics(min(envelopes, _DIFFERENT_PAYLOADS))
    payloads = payer_envelopes(some, there.node_id)
    rows = signed_rows(there.key, there.node_id, envelopes, some, payloads)
    fill(there.database, there.node_id, rows)
    copy_log(there.database, here.database, there.node_id, lost)
    row_bytes = there.database.stat().st_size / envelopes
    there.start()
    return asyncio.run(_repaired(here, there, port, lost, row_bytes))


async def _repaired(
    here: BenchmarkNode,
    there: BenchmarkNode,
    port: int,
    lost: Collection[int],
    row_bytes: float,
) -> Repaired:
    front = InFront(there.port)
    await front.start(port)
    try:
        await asyncio.to_thread(here.start)
        ended = await _all_held(here.database, there.node_id, lost)
        return Repaired(
            ended - front.began,
            front.comparisons,
            front.answered_bytes,
            front.asked_bytes,
            row_bytes,
        )
    finally:
        # Its streams end first: none is left for the server to cut.
        await asyncio.to_thread(here.stop)
        await front.stop()


async def _all_held(database: Path, originator_id: int, lost: Collection[int]) -> float:
    """Return when a database had all of some ids."""
    query = _HELD.format(", ".join(map(str, lost)))
    deadline = time.perf_counter() + _MOST_SECONDS
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        while time.perf_counter() < deadline:
            [held] = connection.execute(query, (originator_id,)).fetchone()
            if held == len(lost):
                return time.perf_counter()
            await asyncio.sleep(_POLL_SECONDS)
    raise MalformedAnswer("repair", f"{len(lost)} envelopes in {_MOST_SECONDS:g} s", held)

"""Two real nodes: one that was away takes what the other has originated meanwhile."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Final

from benchmarks.network.nodes import BenchmarkNode, Registry
from benchmarks.network.rows import fill, signed_rows
from benchmarks.node.load import Rate, publish_to_streams
from benchmarks.node.payloads import payer_envelopes, topics
from benchmarks.usage import process_cpu_seconds
from chainkit.errors import MalformedAnswer
from chainkit.protocol.originated_envelope import originator_digest, parse_originated
from chainkit.protocol.payer_envelope import parse_payer_envelope, payer_digest
from chainkit.signatures import recover_public_key

_STREAMS: Final = 100
_POLL_SECONDS: Final = 0.02
_MOST_SECONDS: Final = 600.0
_HIGHEST: Final = "SELECT coalesce(max(sequence_id), 0) FROM envelopes WHERE originator_id = ?"


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast envelopes were verified, and by how much work."""

    per_second: float
    cpu_us: float
    """CPU time of the process for each, on all its threads: others on the machine do not count."""


def recover_floor(envelopes: Sequence[bytes]) -> Pace:
    """Measure how fast coincurve recovers both signatures of envelopes, on one thread.

    The digests are computed before: nothing but the two recovers is measured.
    """
    signed = []
    for each in envelopes:
        originated = parse_originated(each)
        paid = parse_payer_envelope(originated.envelope.payer_envelope)
        digest = originator_digest(originated.unsigned_originator_envelope)
        signed.append((originated.signature, digest))
        signed.append((paid.signature, payer_digest(paid.client_envelope, paid.target_originator)))
    began, cpu = time.perf_counter(), time.process_time()
    for signature, digest in signed:
        recover_public_key(signature, digest)
    cpu, elapsed = time.process_time() - cpu, time.perf_counter() - began
    return Pace(len(envelopes) / elapsed, 1e6 * cpu / len(envelopes))


def two_nodes(stack: ExitStack, registry: Registry) -> tuple[BenchmarkNode, BenchmarkNode]:
    """Return two running nodes that the registry lists."""
    nodes = BenchmarkNode(stack, registry, "a"), BenchmarkNode(stack, registry, "b")
    for node in nodes:
        node.start()
        node.join()
    for node in nodes:
        node.wait_for("own_log_known")
    return nodes


def catch_up(here: BenchmarkNode, there: BenchmarkNode, count: int) -> tuple[Pace, Pace]:
    """Return the pace of the floor, and that of ``here``, which lacks so many of ``there``.

    Both run before and after. The clock starts when the first ones are stored.
    """
    for node in (here, there):
        node.stop()
    some = topics(count)
    payloads = payer_envelopes(some, there.node_id)
    rows = list(signed_rows(there.key, there.node_id, count, some, payloads))
    fill(there.database, there.node_id, rows)
    measured = [row.envelope for row in rows[: count // 3]]
    there.start()
    before = recover_floor(measured)
    here.start()
    found = _pace(here, there.node_id, count)
    # Before and after: what else the machine does changes from one minute to the next.
    return mean(before, recover_floor(measured)), found


def mean(one: Pace, other: Pace) -> Pace:
    """Return the pace halfway between two."""
    per_second = (one.per_second + other.per_second) / 2
    return Pace(per_second, (one.cpu_us + other.cpu_us) / 2)


def _pace(here: BenchmarkNode, originator_id: int, count: int) -> Pace:
    """Measure from the first envelopes that are stored to the last."""
    deadline = time.perf_counter() + _MOST_SECONDS
    began, cpu, first = 0.0, 0.0, 0
    with closing(sqlite3.connect(f"file:{here.database}?mode=ro", uri=True)) as connection:
        while time.perf_counter() < deadline:
            [held] = connection.execute(_HIGHEST, (originator_id,)).fetchone()
            if held and not first:
                began, cpu, first = time.perf_counter(), process_cpu_seconds(here.pid), held
            if held >= count:
                cpu, elapsed = process_cpu_seconds(here.pid) - cpu, time.perf_counter() - began
                return Pace((count - first) / elapsed, 1e6 * cpu / (count - first))
            time.sleep(_POLL_SECONDS)
    raise MalformedAnswer("catching up", f"{count} envelopes in {_MOST_SECONDS:g} s", held)


def publish_to_stream(
    publishes: BenchmarkNode,
    streams: BenchmarkNode,
    per_second: int,
    seconds: float,
    seed: int,
) -> Rate:
    """Measure from a publish on one node to the stream of its topic on a node: the same or another.

    Another seed has other topics.
    """
    publishes.wait_for("own_log_known")
    fresh = topics(_STREAMS, seed)
    payloads = payer_envelopes(fresh, publishes.node_id)
    return asyncio.run(
        publish_to_streams(
            publishes.port, fresh, payloads, per_second, seconds, stream_port=streams.port
        )
    )

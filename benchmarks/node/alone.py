"""One node beside its floors: what its libraries and its database do alone."""

from __future__ import annotations

import gc
from typing import Final

from benchmarks.node import floors, load
from benchmarks.node.floor_server import ADDED_BYTES
from benchmarks.node.network import Measured, of_libpq
from benchmarks.node.payloads import payer_envelopes, topics
from benchmarks.usage import process_mebibytes
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes

_CALLERS: Final = 100
_BATCH: Final = 100
_BATCH_CALLERS: Final = 4
_STREAMS: Final = 1000
_PER_SECOND: Final = 500
_BLOCKS_PER_SECOND: Final = 10
_EVENTS_PER_BLOCK: Final = 20
_IDLE_STREAMS: Final = 10_000


async def measured_alone(
    node: Measured, floor_url: str, floor_port: int, seconds: float
) -> dict[str, float]:
    """Return the figures of a node and its floors, each measured for so many seconds.

    ``floor_url`` is an empty database beside the node's.
    """
    some = topics(20_000)
    payloads = payer_envelopes(some, node.node_id)
    envelope = payloads[0] + bytes(ADDED_BYTES)
    figures = {
        "sign_recover_floor_per_s": floors.sign_and_recover(payloads),
        "store_floor_per_s": floors.copy_rows(floor_url, some, envelope),
        "commit_floor_ms": 1000 * floors.commit_seconds(floor_url),
    }
    return figures | await _loaded(node, floor_port, payloads, seconds)


async def _loaded(
    node: Measured, floor_port: int, payloads: list[bytes], seconds: float
) -> dict[str, float]:
    # Not the collector of the load's process is measured, which looks through all these payloads.
    gc.freeze()
    echo = await load.echo(floor_port, payloads, seconds, _CALLERS)
    single = await load.publish(node.node_port, payloads, seconds, _CALLERS)
    batched = await load.publish(node.node_port, payloads, seconds, _BATCH_CALLERS, _BATCH)
    stored = node.stored()
    # Twice: PostgreSQL marks the rows when they are read for the first time.
    await load.catch_up(node.node_port, node.node_id, stored.streamed_bytes)
    elapsed, frame = await load.catch_up(node.node_port, node.node_id, stored.streamed_bytes)
    read = floors.read_rows(of_libpq(node.database), node.node_id)
    floor = await load.stream_floor(floor_port, frame, _count(frame))
    fresh = topics(_STREAMS, seed=3)
    streamed = await load.publish_to_streams(
        node.node_port, fresh, payer_envelopes(fresh, node.node_id), _PER_SECOND, seconds
    )
    blocks = await load.blocks_to_stream(
        node.node_port, node.chain, int(_BLOCKS_PER_SECOND * seconds), _EVENTS_PER_BLOCK
    )
    idle = await load.idle_streams(
        node.node_port, _IDLE_STREAMS, lambda: process_mebibytes(node.pid)
    )
    return {
        "echo_floor_per_s": echo.per_second,
        "echo_floor_p99_ms": 1000 * echo.percentile(0.99),
        "publish_per_s": single.per_second,
        "publish_p99_ms": 1000 * single.percentile(0.99),
        "publish_batched_per_s": batched.per_second,
        "stream_floor_envelopes_per_s": floor,
        "stream_envelopes_per_s": stored.envelopes / elapsed,
        "read_floor_per_s": read,
        "publish_to_stream_p50_ms": 1000 * streamed.percentile(0.5),
        "publish_to_stream_p99_ms": 1000 * streamed.percentile(0.99),
        "block_to_stream_p50_ms": 1000 * blocks.percentile(0.5),
        "block_to_stream_p99_ms": 1000 * blocks.percentile(0.99),
        "idle_stream_kib": 1024 * idle,
    }


def _count(frame: bytes) -> int:
    return len(Envelopes.FromString(frame).envelopes)

"""A real node whose registry lists many others: servers that answer, and have nothing to tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.network.nodes import BenchmarkNode, Registry
from benchmarks.network.serving import serve_peer
from chainkit.errors import MalformedAnswer
from chainkit.protocol.proto import node_api_pb2
from chainkit.signatures import SigningKey

_HEARTBEAT_SECONDS: Final = 15.0
_MOST_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a node's process in MiB; pages that processes share count in part (PSS)."""

    alone: float
    with_peers: float


def many_peers(stack: ExitStack, registry: Registry, peers: int, settle_seconds: float) -> Memory:
    """Measure a node before the registry lists others, and when it follows and compared all."""
    node = BenchmarkNode(stack, registry, "e")
    node.start()
    node.join()
    node.wait_for("own_log_known")
    return asyncio.run(_measured(node, registry, peers, settle_seconds))


async def _measured(
    node: BenchmarkNode, registry: Registry, peers: int, settle_seconds: float
) -> Memory:
    await asyncio.sleep(settle_seconds)
    alone = _proportional_mebibytes(node.pid)
    servers = []
    try:
        for number in range(1, peers + 1):
            server, port = await serve_peer(0, _compare, _query, _subscribe)
            servers.append(server)
            key = SigningKey(number.to_bytes(32))
            url = f"http://127.0.0.1:{port}"
            await asyncio.to_thread(registry.add, "0x" + key.public_key.hex(), url)
        async with asyncio.timeout(_MOST_SECONDS):
            while (opened := node.count_of("peer_stream_open")) < peers:
                await asyncio.sleep(_POLL_SECONDS)
        await asyncio.sleep(settle_seconds)
        if opened != peers or node.count_of("comparison_failed"):
            raise MalformedAnswer("streams", f"{peers} open, and all logs compared", opened)
        return Memory(alone, _proportional_mebibytes(node.pid))
    finally:
        # Its streams end first: none is left for the servers to cut.
        await asyncio.to_thread(node.stop)
        for server in servers:
            await server.stop(0.0)


async def _compare(data: bytes) -> bytes:
    asked = node_api_pb2.CompareRangesRequest.FromString(data).ranges
    empty = node_api_pb2.RangeContent()
    answer = node_api_pb2.CompareRangesResponse(contents=[empty] * len(asked))
    return answer.SerializeToString()


async def _query(_: bytes) -> bytes:
    return b""


async def _subscribe(_: bytes) -> AsyncIterator[bytes]:
    while True:
        yield b""
        await asyncio.sleep(_HEARTBEAT_SECONDS)


def _proportional_mebibytes(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise MalformedAnswer(f"process {pid}", "its proportional memory", "none")

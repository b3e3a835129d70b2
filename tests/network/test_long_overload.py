"""A node that can store nothing for a while refuses at once what it cannot serve in time."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import grpc
import pytest

from chainkit.protocol.methods import PUBLISH_PAYER_ENVELOPES
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from support.chains.chain import Deployment
from support.network.real_nodes import RealNode, real_network, until
from support.seeds import only_in_soak

CONNECTIONS, CALLERS_OF_ONE = 15, 100
MOST_AT_ONCE = 1_000
"""Calls that a node answers at a time."""
DEADLINE_SECONDS = 300.0
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
LATE = grpc.StatusCode.DEADLINE_EXCEEDED

pytestmark = [only_in_soak, pytest.mark.timeout(900)]


async def crowd(node: RealNode) -> tuple[int, Counter[grpc.StatusCode]]:
    """Have more callers publish than the node takes, while its database is locked.

    Return how many were refused before the lock was released, and all answers by their codes.
    """
    request = Envelopes(envelopes=[node.welcome()]).SerializeToString()
    codes: Counter[grpc.StatusCode] = Counter()
    enough = asyncio.Event()

    async def publish(call: grpc.aio.UnaryUnaryMultiCallable) -> None:
        try:
            await call(request, timeout=DEADLINE_SECONDS)
            codes[grpc.StatusCode.OK] += 1
        except grpc.aio.AioRpcError as error:
            codes[error.code()] += 1
        if codes[EXHAUSTED] >= CONNECTIONS * CALLERS_OF_ONE - MOST_AT_ONCE:
            enough.set()

    options = [("grpc.use_local_subchannel_pool", 1)]
    address = f"127.0.0.1:{node.gate.target}"
    channels = [grpc.aio.insecure_channel(address, options) for _ in range(CONNECTIONS)]
    with closing(sqlite3.connect(node.database, timeout=DEADLINE_SECONDS)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        calls = [
            asyncio.ensure_future(publish(channel.unary_unary(PUBLISH_PAYER_ENVELOPES)))
            for channel in channels
            for _ in range(CALLERS_OF_ONE)
        ]
        await enough.wait()
        refused = codes[EXHAUSTED]
        connection.rollback()
    await asyncio.gather(*calls)
    for channel in channels:
        await channel.close()
    return refused, codes


def test_publish__more_callers_than_a_node_takes__the_others_are_refused_at_once(
    local_deployment: Deployment, tmp_path: Path
) -> None:
    with real_network(local_deployment, tmp_path) as network:
        node = network.add(None, "--requests-per-second", "0")
        node.listens()
        node.originates()

        refused, codes = asyncio.run(crowd(node))

        assert refused >= CONNECTIONS * CALLERS_OF_ONE - MOST_AT_ONCE
        assert codes[LATE] == 0, codes
        assert set(codes) <= {grpc.StatusCode.OK, EXHAUSTED, grpc.StatusCode.UNAVAILABLE, LATE}
        until(lambda: len(node.publish()) == 1)

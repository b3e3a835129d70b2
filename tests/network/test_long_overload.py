"""More callers than a node can serve: it refuses early, and serves the callers that it takes."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import grpc
import pytest

from chainkit.protocol.methods import PUBLISH_PAYER_ENVELOPES
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from support.chains.chain import Deployment
from support.network.real_nodes import RealNode, real_network, until
from support.seeds import only_in_soak

CONNECTIONS, CALLERS_OF_ONE = 60, 100
SECONDS = 40.0
DEADLINE_SECONDS = 5.0
PAUSE_SECONDS = 4.0
"""A refused caller waits for up to so long, as the refusal asks it to."""
EXHAUSTED, LATE = grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED

pytestmark = [only_in_soak, pytest.mark.timeout(900)]


async def call_again_and_again(
    publish: grpc.aio.UnaryUnaryMultiCallable, request: bytes, codes: Counter[grpc.StatusCode]
) -> None:
    loop, chance = asyncio.get_running_loop(), random.Random()
    ends_at = loop.time() + SECONDS
    while loop.time() < ends_at:
        try:
            await publish(request, timeout=DEADLINE_SECONDS)
            codes[grpc.StatusCode.OK] += 1
        except grpc.aio.AioRpcError as error:
            codes[error.code()] += 1
            await asyncio.sleep(PAUSE_SECONDS * chance.random())


async def crowd(node: RealNode) -> Counter[grpc.StatusCode]:
    """Have thousands of callers publish at once, each again and again; count the answers."""
    request = Envelopes(envelopes=[node.welcome()]).SerializeToString()
    codes: Counter[grpc.StatusCode] = Counter()
    address = f"127.0.0.1:{node.gate.target}"
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(address, options) for _ in range(CONNECTIONS)]
    async with asyncio.TaskGroup() as group:
        for channel in channels:
            publish = channel.unary_unary(PUBLISH_PAYER_ENVELOPES)
            for _ in range(CALLERS_OF_ONE):
                group.create_task(call_again_and_again(publish, request, codes))
    for channel in channels:
        await channel.close()
    return codes


def test_publish__thousands_of_callers_at_once__are_served_or_refused_and_seldom_late(
    local_deployment: Deployment, tmp_path: Path
) -> None:
    with real_network(local_deployment, tmp_path) as network:
        node = network.add(None, "--requests-per-second", "0")
        node.listens()
        node.originates()

        codes = asyncio.run(crowd(node))

        assert codes[grpc.StatusCode.OK] > 1000, codes
        assert codes[EXHAUSTED] > 100, codes
        # One whose answer is lost does not know what became of its payload.
        assert codes[LATE] * 20 < codes[EXHAUSTED], codes
        until(lambda: len(node.publish()) == 1)
        assert node.refused_for_load() >= codes[EXHAUSTED]

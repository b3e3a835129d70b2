"""How late a node's event loop is, and reports of slow answers that a late node does not make."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.proto import message_api_pb2
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_node.loop_lag import LoopLag
from support.indexer.loop_results import Clock
from support.network.simulation.loop import run
from support.reporting import OTHER, Host

QUERY = message_api_pb2.QueryEnvelopesRequest(limit=7)


def test_lag__loop_that_stood_still__is_measured_and_remembered() -> None:
    clock = Clock()
    lag = LoopLag(clock)

    async def story() -> None:
        task = asyncio.create_task(lag.run())
        assert lag.seconds() == 0.0
        await asyncio.sleep(0.1)
        clock.seconds += 3.25
        # The measuring task has had no turn since: the delay shows all the same.
        assert lag.delays(1.0) == 3.0
        await asyncio.sleep(0.3)
        assert (lag.delays(1.0), lag.seconds()) == (3.0, 0.0)

        clock.seconds += 2.25
        assert lag.seconds() == 2.0
        await asyncio.sleep(0.25)
        assert (lag.delays(1.0), lag.delays(5.0), lag.seconds()) == (2.0, 5.0, 2.0)

        clock.seconds += 0.25
        await asyncio.sleep(0.25)
        assert (lag.seconds(), lag.delays(0.1), lag.delays(5.0)) == (0.0, 0.0, 5.0)
        task.cancel()

    run(story())


@pytest.mark.parametrize(
    ("misbehavior", "seconds", "is_stored"),
    [
        (Misbehavior.SLOW_NODE, 1.4, False),
        (Misbehavior.SLOW_NODE, 1.6, True),
        (Misbehavior.UNRESPONSIVE_NODE, 4.4, False),
        (Misbehavior.UNRESPONSIVE_NODE, 8.0, True),
    ],
)
def test_liveness__node_was_late_itself__own_delay_does_not_count(
    tmp_path: Path, misbehavior: Misbehavior, seconds: float, is_stored: bool
) -> None:
    host = Host(tmp_path / "node.db", own_delays=lambda seconds: 0.5)
    try:
        host.writer.submit_own_liveness(
            OTHER, misbehavior, QUERY, int(seconds * NANOSECONDS_PER_SECOND)
        )
        host.restart()

        assert len(host.rows()) == is_stored
        assert host.number("refused_total", reason="late") == (not is_stored)
    finally:
        host.close()

"""Publishes at a real node at a steady rate: alone, and beside `chainkit node prune`."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final, NamedTuple

import grpc

from benchmarks.node.builds import NOW
from benchmarks.node.load import Rate, publish_steadily
from benchmarks.node.network import Measured, measured_node
from benchmarks.node.payloads import payer_envelopes, topics
from benchmarks.retention.logs import hold_expired
from chainkit.errors import ChainkitError
from chainkit_indexer.storage.store import Store
from localnet.commands import CHAINKIT
from localnet.postgres import Postgres

PER_SECOND: Final = 500
_TOPICS: Final = 5_000
_WARM_SECONDS: Final = 1.0


class Beside(NamedTuple):
    """The times of publishes in two parts of a run."""

    alone: Rate
    beside: Rate


def publish_beside(folder: Path, on_sqlite: bool, envelopes: int, seconds: float) -> Beside:
    """Publish for ``seconds`` alone, then beside the command, and then alone again."""
    with ExitStack() as stack:
        database = (
            str(folder / "log.db") if on_sqlite else stack.enter_context(Postgres()).new_database()
        )
        node = stack.enter_context(measured_node(database, folder / "node", NOW))
        payloads = payer_envelopes(topics(_TOPICS), node.node_id)
        with closing(Store.open_beside(node.database)) as store:
            hold_expired(store, node.node_id, envelopes)
        _alone(node, payloads, _WARM_SECONDS)
        alone = _alone(node, payloads, seconds)
        command = [CHAINKIT, "node", "prune", "--json", "--database", node.database]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        beside = _published(node, payloads, lambda: child.poll() is None)
        printed, _ = child.communicate()
        deleted = json.loads(printed)["envelopes"]
        if deleted != envelopes:
            raise ChainkitError("node prune", f"{envelopes} envelopes deleted", deleted)
        alone.taken.extend(_alone(node, payloads, seconds).taken)
        return Beside(alone, beside)


def _alone(node: Measured, payloads: Sequence[bytes], seconds: float) -> Rate:
    end = time.perf_counter() + seconds
    return _published(node, payloads, lambda: time.perf_counter() < end)


def _published(node: Measured, payloads: Sequence[bytes], goes_on: Callable[[], bool]) -> Rate:
    try:
        return asyncio.run(publish_steadily(node.node_port, payloads, PER_SECOND, goes_on))
    except grpc.RpcError as error:
        expected = f"{PER_SECOND} publishes a second that are answered"
        raise ChainkitError("benchmark", expected, str(error.code())) from error

"""Asks the registry's nodes over gRPC what each holds; used on one event loop.

All nodes are asked at once, and each node has ``patience_seconds`` for all its answers: a look
takes as long as its slowest node.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from chainkit.errors import ConfigurationError, MalformedData
from chainkit.nodes.channel import connect, why_unreached
from chainkit.nodes.highest import find_highest
from chainkit.nodes.outcomes import is_lost
from chainkit.protocol.envelope import stated_place
from chainkit.protocol.envelope_queries import page_behind
from chainkit.protocol.methods import (
    COMPARE_RANGES,
    QUERY_ENVELOPES,
    QUERY_REPORTS,
    QUERY_TOPIC_HEADS,
)
from chainkit.protocol.proto import message_api_pb2, node_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.text.printable import printable
from chainkit.types import NANOSECONDS_PER_SECOND, Node
from chainkit_node.inspection.network import NodeAnswer
from chainkit_node.inspection.reported import Reported
from chainkit_node.inspection.words import shown

PATIENCE_SECONDS: Final = 5.0
"""For all answers of a node."""

_HEALTH: Final = "/grpc.health.v1.Health/Check"
_OPTIONAL: Final = {
    _HEALTH: "health checks",
    COMPARE_RANGES: "comparisons of logs",
    QUERY_TOPIC_HEADS: "topic heads",
    QUERY_REPORTS: "reports",
}
"""Methods that a node may lack, in words."""

_MOST_RECONNECT_MS: Final = 1000
_AT_ONCE: Final = 8
"""Questions to one node at a time."""
_MOST_PAGES: Final = 3
"""Pages of reports of one look: the next look goes on."""
_LARGEST_ID: Final = 2**63 - 1


@dataclass(slots=True)
class _Connection:
    """A connection to a node, kept over several looks."""

    node: Node
    channel: grpc.aio.Channel
    guesses: dict[int, int] = field(default_factory=dict)
    """The highest id of each originator as it last answered a search."""
    reports_after: int = 0
    """Server time of the last report that was read."""
    reports: int = 0
    lacks: set[str] = field(default_factory=set)
    """Optional methods that the node does not have."""


@dataclass(slots=True)
class _Look:
    """The answers of one node so far."""

    held: dict[int, int | None]
    health: str | None = None
    error: str | None = None
    seconds: float | None = None
    reports: int | None = None


class NetworkAsker:
    """Keeps connections between looks, and counts each report once."""

    def __init__(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Take how many seconds a node has for its answers."""
        self._patience_seconds = patience_seconds
        self._connections: dict[int, _Connection] = {}
        self.reported = Reported()

    async def look(
        self, nodes: Iterable[Node], chain: Mapping[int, int | None]
    ) -> tuple[NodeAnswer, ...]:
        """Ask all nodes at once. ``chain`` has the chain's originators, and their highest ids.

        Such an id is None where no contract has the id. A node that does not answer is no error.
        """
        wanted = {node.node_id: node for node in nodes}
        await self._forget(wanted)
        keys = {each: node.signing_key for each, node in wanted.items()}
        asked = (self._ask(node, chain, keys) for node in wanted.values())
        return tuple(await asyncio.gather(*asked))

    async def close(self) -> None:
        """End all connections."""
        await self._forget({})

    async def _forget(self, wanted: Mapping[int, Node]) -> None:
        for each, connection in list(self._connections.items()):
            if wanted.get(each) != connection.node:
                del self._connections[each]
                await connection.channel.close()

    async def _ask(
        self, node: Node, chain: Mapping[int, int | None], keys: Mapping[int, bytes]
    ) -> NodeAnswer:
        look = _Look(dict.fromkeys(sorted({*chain, *keys})))
        try:
            connection = self._connection(node)
            async with asyncio.timeout(self._patience_seconds):
                await self._ask_all(connection, look, chain, keys)
        except TimeoutError:
            look.error = f"no answer within {self._patience_seconds:g} s"
            if look.seconds is not None:
                look.error = f"not all answers within {self._patience_seconds:g} s"
        except grpc.aio.AioRpcError as error:
            words = str(error.details())
            if is_lost(error):
                words = await why_unreached(node.http_address, words)
            look.error = f"{error.code().name}: {words}"
        except (ConfigurationError, MalformedData) as error:
            look.error = str(error)
        return NodeAnswer(
            node_id=node.node_id,
            url=shown(printable(node.http_address)),
            is_enabled=node.is_enabled,
            health=look.health,
            error=None if look.error is None else shown(look.error),
            seconds=look.seconds,
            held=look.held,
            reports=look.reports,
            lacks=self._lacks(node.node_id),
        )

    def _lacks(self, node_id: int) -> tuple[str, ...]:
        connection = self._connections.get(node_id)
        return (
            ()
            if connection is None
            else tuple(words for method, words in _OPTIONAL.items() if method in connection.lacks)
        )

    def _connection(self, node: Node) -> _Connection:
        if node.node_id not in self._connections:
            url = f"URL of node {node.node_id}"
            channel = connect(url, node.http_address, _MOST_RECONNECT_MS)
            self._connections[node.node_id] = _Connection(node, channel)
        return self._connections[node.node_id]

    async def _ask_all(
        self,
        connection: _Connection,
        look: _Look,
        chain: Mapping[int, int | None],
        keys: Mapping[int, bytes],
    ) -> None:
        began = time.monotonic()
        look.health = await _health(connection)
        look.seconds = time.monotonic() - began
        permits = asyncio.Semaphore(_AT_ONCE)

        async def note(originator_id: int) -> None:
            async with permits:
                look.held[originator_id] = await _held(connection, originator_id, chain)

        async with _Unwrapped(), asyncio.TaskGroup() as group:
            for originator_id in look.held:
                group.create_task(note(originator_id))
            group.create_task(self._read_reports(connection, look, keys))
            group.create_task(_try_topic_heads(connection))

    async def _read_reports(
        self, connection: _Connection, look: _Look, keys: Mapping[int, bytes]
    ) -> None:
        for _ in range(_MOST_PAGES):
            request = message_api_pb2.QueryMisbehaviorReportsRequest(
                after_ns=connection.reports_after
            )
            answer = await _call(connection, QUERY_REPORTS, request, optional=True)
            if answer is None:
                return
            page = _parsed(message_api_pb2.QueryMisbehaviorReportsResponse, answer).reports
            times = [each.server_time_ns for each in page]
            if times and times[-1] <= connection.reports_after:
                raise MalformedData("reports", f"some after {connection.reports_after}", times[-1])
            now_ns = int(time.time() * NANOSECONDS_PER_SECOND)
            host_id = connection.node.node_id
            self.reported.add(host_id, page, keys, now_ns)
            connection.reports += len(page)
            look.reports = connection.reports
            if not page:
                return
            connection.reports_after = times[-1]


class _Unwrapped:
    """Raises the first error of a group of tasks by itself."""

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BaseExceptionGroup):
            raise error.exceptions[0] from None


async def _health(connection: _Connection) -> str | None:
    request = health_pb2.HealthCheckRequest()
    answer = await _call(connection, _HEALTH, request, optional=True)
    if answer is None:
        return None
    status: int = _parsed(health_pb2.HealthCheckResponse, answer).status
    names: Any = health_pb2.HealthCheckResponse.ServingStatus
    return str(names.Name(status)) if status in names.values() else f"status {status}"


async def _try_topic_heads(connection: _Connection) -> None:
    # A node that may originate nothing refuses: it has the method.
    with suppress(grpc.aio.AioRpcError):
        request = node_api_pb2.QueryTopicHeadsRequest()
        await _call(connection, QUERY_TOPIC_HEADS, request, optional=True)


async def _held(
    connection: _Connection, originator_id: int, chain: Mapping[int, int | None]
) -> int | None:
    """Return the highest id that a node holds of an originator."""
    if originator_id not in chain:
        request = node_api_pb2.CompareRangesRequest(
            originator_node_id=originator_id, through_sequence_id=_LARGEST_ID
        )
        answer = await _call(connection, COMPARE_RANGES, request, optional=True)
        if answer is not None:
            response = _parsed(node_api_pb2.CompareRangesResponse, answer)
            return int(response.highest_sequence_id)

    async def first_behind(after: int) -> int | None:
        answer = await _call(connection, QUERY_ENVELOPES, page_behind(originator_id, after, 1))
        found = _parsed(Envelopes, answer or b"").envelopes
        return stated_place(found[0])[1] if found else None

    guess = connection.guesses.get(originator_id) or chain.get(originator_id) or 0
    highest = await find_highest(first_behind, guess)
    connection.guesses[originator_id] = highest or 0
    return highest


async def _call(
    connection: _Connection, method: str, request: Any, optional: bool = False
) -> bytes | None:
    """Return an answer; None for an optional method that the node lacks."""
    multicallable: Any = connection.channel.unary_unary(method)
    try:
        answer: bytes = await multicallable(request.SerializeToString())
    except grpc.aio.AioRpcError as error:
        if optional and error.code() is grpc.StatusCode.UNIMPLEMENTED:
            connection.lacks.add(method)
            return None
        raise
    connection.lacks.discard(method)
    return answer


def _parsed(kind: Any, data: bytes) -> Any:
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise MalformedData("answer", kind.__name__, "other bytes") from error

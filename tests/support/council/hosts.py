"""Nodes that host reports: in memory, or behind a gRPC server, and some of them lie.

::

    host = HonestHost([hosted(100, 300, stored_ns=5)])
    host.answer(b"")  # the first page
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from chainkit.council.gathering.gatherer import Ask
from chainkit.errors import ConfigurationError
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.proto import message_api_pb2
from chainkit.signatures import SigningKey
from support.audit.identities import key_of
from support.council.triage import liveness_report, safety_report

SERVICE = "xmtp.xmtpv4.message_api.MisbehaviorApi"


def hosted(
    host_id: int,
    accused_id: int,
    stored_ns: int,
    key: SigningKey | None = None,
    time_ns: int | None = None,
    is_from_node: bool = True,
) -> bytes:
    """A report of a node that did not answer, as its host stored it."""
    reported_ns = stored_ns if time_ns is None else time_ns
    data = liveness_report(
        *(accused_id, key or key_of(host_id), Misbehavior.UNRESPONSIVE_NODE, reported_ns),
        is_from_node,
    )
    return stored(data, stored_ns)


def hosted_safety(
    host_id: int, accused_id: int, stored_ns: int, misbehavior: Misbehavior, *envelopes: bytes
) -> bytes:
    """A client's report of a safety failure, as a node stored it."""
    data = safety_report(accused_id, key_of(host_id), misbehavior, *envelopes)
    return stored(data, stored_ns)


def stored(data: bytes, stored_ns: int) -> bytes:
    """A signed report with the time at which a server stored it."""
    message = message_api_pb2.MisbehaviorReport.FromString(data)
    message.server_time_ns = stored_ns
    return message.SerializeToString()


def page(*reports: bytes) -> bytes:
    """An answer with some reports."""
    answer = message_api_pb2.QueryMisbehaviorReportsResponse()
    for each in reports:
        answer.reports.add().ParseFromString(each)
    return answer.SerializeToString()


def after(request: bytes) -> int:
    """The time that a request asks for reports after."""
    return message_api_pb2.QueryMisbehaviorReportsRequest.FromString(request).after_ns


@dataclass
class HonestHost:
    """Answers its reports in the order of their times, so many on a page."""

    reports: Sequence[bytes]
    page_size: int = 2
    asked: list[int] = field(default_factory=list)

    def answer(self, request: bytes) -> bytes:
        self.asked.append(after(request))
        later = [each for each in self.reports if _time(each) > self.asked[-1]]
        return page(*sorted(later, key=_time)[: self.page_size])


def _time(report: bytes) -> int:
    return message_api_pb2.MisbehaviorReport.FromString(report).server_time_ns


Answer = Callable[[bytes], Awaitable[bytes]]


@dataclass
class FakeNetwork:
    """Ways to hosts by their URLs."""

    hosts: dict[str, Answer]

    def connect(self, url: str) -> Any:
        if url not in self.hosts:
            raise ConfigurationError("URL of the node", "http://host:port", "another URL")
        return self._way(url)

    @asynccontextmanager
    async def _way(self, url: str) -> AsyncIterator[Ask]:
        yield self.hosts[url]


def at_once(answer: Callable[[bytes], bytes]) -> Answer:
    """A way that takes no time."""

    async def ask(request: bytes) -> bytes:
        return answer(request)

    return ask


@contextmanager
def served(answer: Callable[[bytes], bytes], service: str = SERVICE) -> Iterator[str]:
    """Serve QueryMisbehaviorReports over gRPC; give the address."""
    query = grpc.unary_unary_rpc_method_handler(lambda request, _context: answer(request))
    handler = grpc.method_handlers_generic_handler(service, {"QueryMisbehaviorReports": query})
    server = grpc.server(ThreadPoolExecutor(1), options=[("grpc.max_send_message_length", 1 << 30)])
    server.add_generic_rpc_handlers([handler])
    bound = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{bound}"
    finally:
        server.stop(None).wait()

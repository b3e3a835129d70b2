"""MisbehaviorApi over gRPC (XIP-49 §3.2.8). It needs grpcio, which is an extra."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import grpc

from chainkit.council.gathering.asking import Ask, Connect
from chainkit.errors import ChainError, EndpointUnavailable, RateLimited, RefusedRequest
from chainkit.text.node_url import grpc_target
from chainkit.text.printable import printable

METHOD: Final = "/xmtp.xmtpv4.message_api.MisbehaviorApi/QueryMisbehaviorReports"

MOST_ANSWER_BYTES: Final = 25 << 20
"""Bytes of an answer: no node of ours gives more at once."""

_MOST_WORDS: Final = 200
"""Characters of a node's own words about an error."""

_TRANSIENT: Final = (
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
)
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MOST_ANSWER_BYTES),
    # The gatherer asks again itself, and waits longer.
    ("grpc.enable_retries", 0),
)


def connect_for(seconds: float) -> Connect:
    """Return what connects to ``http://host[:port]`` or ``https://host[:port]``.

    An answer may take ``seconds``. Certificates are checked with the roots that gRPC trusts.
    """

    def connect(url: str) -> Any:
        return _channel_to(*grpc_target("URL of the node", url), seconds)

    return connect


@asynccontextmanager
async def _channel_to(scheme: str, target: str, seconds: float) -> AsyncIterator[Ask]:
    async with _channel(scheme, target) as channel:
        query: Any = channel.unary_unary(METHOD)

        async def ask(request: bytes) -> bytes:
            try:
                answer: bytes = await query(request, timeout=seconds)
            except grpc.aio.AioRpcError as error:
                raise _failure(target, error) from error
            return answer

        yield ask


def _channel(scheme: str, target: str) -> grpc.aio.Channel:
    if scheme == "http":
        return grpc.aio.insecure_channel(target, options=_OPTIONS)
    credentials = grpc.ssl_channel_credentials()
    return grpc.aio.secure_channel(target, credentials, options=_OPTIONS)


def _failure(target: str, error: grpc.aio.AioRpcError) -> ChainError:
    code = error.code()
    words = printable(f"{code.name} {error.details() or ''}".strip())[:_MOST_WORDS]
    subject, expected = f"node at {printable(target)}", "a page of reports"
    if code not in _TRANSIENT:
        return RefusedRequest(subject, expected, words)
    kind = RateLimited if code is grpc.StatusCode.RESOURCE_EXHAUSTED else EndpointUnavailable
    return kind(subject, expected, words)

"""Stands before every method of a gateway, also health: each client has its share of calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, aclosing
from typing import Any

from chainkit.service.grpc_methods import Caller, CallerStreaming, CallerUnary, Requests
from chainkit.service.places import Places
from chainkit.service.refusals import Unauthenticated
from chainkit_gateway.clients import Clients


class ClientsGate:
    """Bounds the calls of each client; the server bounds those of all. For the event loop."""

    def __init__(self, clients: Clients, calls_of_one: int) -> None:
        """Take who clients are, and how many calls one may have at a time; 0 for no limit."""
        self._clients = clients
        self._calls = Places("calls at a time", "client", 0, calls_of_one)

    def unary(self, method: str, inner: CallerUnary) -> CallerUnary:
        """Return the method behind the gate."""

        async def answer(request: bytes, caller: Caller) -> bytes:
            with self._call(caller):
                return await inner(request, caller)

        return answer

    def streaming(self, method: str, inner: CallerStreaming) -> CallerStreaming:
        """Return the method behind the gate."""

        async def answer(requests: Requests, caller: Caller) -> AsyncIterator[bytes]:
            with self._call(caller):
                answers: Any = inner(requests, caller)
                async with aclosing(answers) as frames:
                    async for frame in frames:
                        yield frame

        return answer

    def _call(self, caller: Caller) -> AbstractContextManager[None]:
        try:
            name = self._clients.name(caller)
        except Unauthenticated:
            # Nobody needs a token to ask for the gateway's health.
            name = caller.address
        return self._calls.hold(name)

"""Counts what the methods of a gateway refuse, whoever's bytes it were."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, NoReturn

from chainkit.service.grpc_methods import (
    Caller,
    CallerStreaming,
    CallerUnary,
    Requests,
    refusal_of,
)

Refused = Callable[[str, str], None]
"""Takes the method's name and the name of gRPC's code."""


class CountingGate:
    """Refuses nothing itself."""

    def __init__(self, refused: Refused) -> None:
        """Take a callback for each refusal."""
        self._refused = refused

    def unary(self, method: str, inner: CallerUnary) -> CallerUnary:
        """Return the method behind the gate."""

        async def answer(request: bytes, caller: Caller) -> bytes:
            try:
                return await inner(request, caller)
            except Exception as error:
                self._refuse(method, error)

        return answer

    def streaming(self, method: str, inner: CallerStreaming) -> CallerStreaming:
        """Return the method behind the gate."""

        async def answer(requests: Requests, caller: Caller) -> AsyncIterator[bytes]:
            try:
                answers: Any = inner(requests, caller)
                async with aclosing(answers) as frames:
                    async for frame in frames:
                        yield frame
            except Exception as error:
                self._refuse(method, error)

        return answer

    def _refuse(self, method: str, error: Exception) -> NoReturn:
        refusal = refusal_of(error)
        self._refused(method, refusal.code.name)
        raise refusal

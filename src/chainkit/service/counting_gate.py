"""Counts what a service's methods refuse, whoever's bytes it were; also what a gate refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, NoReturn

from chainkit.service.grpc_methods import (
    Caller,
    CallerGone,
    CallerStreaming,
    CallerUnary,
    Gate,
    Requests,
    refusal_of,
)

Refused = Callable[[str, str], None]
"""Takes the method's name and the name of gRPC's code."""


class CountingGate:
    """Stands before the service's own gate, and refuses nothing itself."""

    def __init__(self, gate: Gate, refused: Refused) -> None:
        """Take the gate before the methods, and a callback for each refusal."""
        self._gate = gate
        self._refused = refused

    def unary(self, method: str, inner: CallerUnary) -> CallerUnary:
        """Return the method behind both gates."""
        bounded = self._gate.unary(method, inner)

        async def answer(request: bytes, caller: Caller) -> bytes:
            try:
                return await bounded(request, caller)
            except CallerGone:
                raise
            except Exception as error:
                self._refuse(method, error)

        return answer

    def streaming(self, method: str, inner: CallerStreaming) -> CallerStreaming:
        """Return the method behind both gates."""
        bounded = self._gate.streaming(method, inner)

        async def answer(requests: Requests, caller: Caller) -> AsyncIterator[bytes]:
            try:
                answers: Any = bounded(requests, caller)
                async with aclosing(answers) as frames:
                    async for frame in frames:
                        yield frame
            except CallerGone:
                raise
            except Exception as error:
                self._refuse(method, error)

        return answer

    def _refuse(self, method: str, error: Exception) -> NoReturn:
        """Report a refusal, of the gate or of the method, and end the call with it."""
        refusal = refusal_of(error)
        self._refused(method, refusal.code.name)
        raise refusal

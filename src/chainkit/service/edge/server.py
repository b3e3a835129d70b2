"""The methods of a service behind Envoy, from the start to the last call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import partial
from typing import Any, Final

from chainkit.protocol.methods import MOST_MESSAGE_BYTES
from chainkit.service.certificate import ServerCertificate
from chainkit.service.edge.calls import Call, Receive, Scope, Send, UnknownMethod
from chainkit.service.edge.inside import Inside
from chainkit.service.edge.pace import RefusalPace
from chainkit.service.edge.unfinished import UNFINISHED, Unfinished, UnfinishedLimits
from chainkit.service.grpc_methods import UNBOUNDED, Bounds, Methods
from chainkit.service.grpc_services import HEALTH, REFLECTION, Health, service_routes
from chainkit.service.refusals import NotReady, Overloaded

_Answer = Callable[[Call], Coroutine[Any, Any, None]]

SMALL_BYTES: Final = 64 << 10
"""Bytes of a request about health or reflection."""
_LOOK_SECONDS: Final = 1.0
"""Between two looks at the files of the certificate."""


class EdgeServer:
    """A server of methods that take and give bytes; made and used on the event loop's thread.

    Address and certificate are Envoy's own, from its start on.
    """

    def __init__(
        self,
        methods: Methods,
        services: Mapping[str, Collection[str]],
        bounds: Bounds = UNBOUNDED,
        *,
        process: Inside,
    ) -> None:
        """Take the methods, and the services by the names of their methods; and Envoy's process.

        A service is called by its full name, such as ``xmtp.xmtpv4.payer_api.PayerApi``; health and
        reflection are added.
        """
        self._process = process
        self._most_calls = bounds.calls
        self._unfinished = Unfinished(UnfinishedLimits(), process.count_refused)
        self._pace = RefusalPace()
        self._health = Health(services)
        self._open: dict[asyncio.Task[None], Call] = {}
        self._ends = False
        self._watching: asyncio.Task[None] | None = None
        table = service_routes(methods, services, self._health, bounds)
        self._request_bytes = methods.request_bytes
        self._answers: dict[str, tuple[_Answer, int]] = {}
        for service in (*services, HEALTH, REFLECTION):
            for name, one in table.unary.get(service, {}).items():
                self._serve(service, name, partial(Call.answer_one, method=one))
            for name, many in table.streams.get(service, {}).items():
                self._serve(service, name, partial(Call.answer_many, method=many, asks_once=True))
            for name, many in table.exchanges.get(service, {}).items():
                self._serve(service, name, partial(Call.answer_many, method=many, asks_once=False))

    async def start(self, address: str, certificate: ServerCertificate | None = None) -> int:
        """Let Envoy listen, and return the port."""
        port = await self._process.listen(self._answer)
        if certificate is not None:
            self._watching = asyncio.create_task(self._watch(certificate))
        return port

    async def say_ready(self, is_ready: bool) -> None:
        """Answer health checks with whether the node serves (grpc.health.v1)."""
        self._health.say_ready(is_ready)

    async def stop(self, grace_seconds: float) -> None:
        """Accept no more calls, and end open calls after so many seconds."""
        self._health.end()
        self._ends = True
        self._pace.end()
        await self._process.stop_listening()
        if self._watching is not None:
            self._watching.cancel()
        for task, call in list(self._open.items()):
            if await call.is_gone():
                task.cancel()
        await self._wait(grace_seconds)
        for task in self._open:
            task.cancel()
        await self._wait(grace_seconds)
        await self._process.flush()

    async def _wait(self, seconds: float) -> None:
        """Wait for the end of all open calls."""
        if self._open:
            await asyncio.wait(set(self._open), timeout=seconds)

    def _serve(self, service: str, name: str, answer: _Answer) -> None:
        most = self._request_bytes.get(name, MOST_MESSAGE_BYTES)
        is_small = service in (HEALTH, REFLECTION)
        self._answers[f"/{service}/{name}"] = answer, SMALL_BYTES if is_small else most

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer, most_bytes = self._answers.get(scope["path"], (_refuse_unknown, 0))
        call = Call(scope, receive, send, self._unfinished, self._pace, most_bytes)
        if self._ends:
            await call.refuse(NotReady("server", "to take calls", "its end"))
        elif self._most_calls is not None and self._open_calls() >= self._most_calls:
            self._process.count_refused(UNFINISHED)
            expected = f"fewer than {self._most_calls} calls at a time"
            await call.refuse(Overloaded("server", expected, "more"))
        else:
            await self._count(call, answer)

    def _open_calls(self) -> int:
        """Count the calls without a refusal, which must not take all places while it waits."""
        return len(self._open) - self._pace.waiting

    async def _count(self, call: Call, answer: _Answer) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = call
        try:
            await answer(call)
        finally:
            del self._open[task]

    async def _watch(self, certificate: ServerCertificate) -> None:
        """Hand Envoy each replaced pair; open connections keep the pair that they have."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if await asyncio.to_thread(certificate.look):
                self._process.secrets.write(certificate.pair)


async def _refuse_unknown(call: Call) -> None:
    await call.refuse(UnknownMethod("method", "one that is served", "another"))

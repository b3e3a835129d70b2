"""The calls of a server, played without Envoy: ASGI's events as lists."""

from __future__ import annotations

import asyncio
from typing import Any

from chainkit.service.edge.frames import framed
from chainkit.service.edge.inside import Answer
from chainkit.service.edge.pace import PaceLimits
from chainkit.service.edge.server import EdgeServer
from chainkit.service.grpc_methods import Bounds, Methods

CALLS = 2
UNKNOWN, WAITING = "/a.Service/Nothing", "/a.Service/Wait"


class Process:
    """The part of Envoy's process that a server uses to listen."""

    answer: Answer

    async def listen(self, answer: Answer) -> int:
        self.answer = answer
        return 1

    def count_refused(self, reason: str) -> None:
        pass

    async def call(self, path: str) -> bytes:
        """Return the status of a call."""
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": framed(b""), "more_body": False}

        async def send(event: Any) -> None:
            sent.append(event)

        scope = {"path": path, "client": ("192.0.2.1", 4000), "headers": []}
        await self.answer(scope, receive, send)
        return dict(sent[0]["headers"]).get(b"grpc-status", b"0")


async def wait(request: bytes) -> bytes:
    await asyncio.Event().wait()
    return request


def test_call__refusals_of_unknown_methods_are_late__is_refused_where_no_place_is_left() -> None:
    async def story() -> bytes:
        process: Any = Process()
        bounds = Bounds(calls=CALLS)
        methods = Methods(unary={"Wait": wait})
        await EdgeServer(methods, {"a.Service": ["Wait"]}, bounds, process=process).start("")
        for _ in range(int(PaceLimits().burst)):
            assert await process.call(UNKNOWN) == b"12"
        paths = [UNKNOWN] * 2 * CALLS + [WAITING] * CALLS
        begun = [asyncio.create_task(process.call(path)) for path in paths]
        # Each call waits for something after few turns of the loop.
        for _ in range(10):
            await asyncio.sleep(0)
        found: bytes = await process.call(WAITING)
        for each in begun:
            each.cancel()
        return found

    assert asyncio.run(asyncio.wait_for(story(), 60)) == b"8"

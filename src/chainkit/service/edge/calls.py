"""One gRPC call as ASGI's events: the request's body in, the answers and the trailers out.

``receive`` is never asked again behind the body: pyvoy answers at once, with an empty event. That
the caller has gone is found by the next ``send``, at a stream's heartbeat at the latest.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from contextlib import aclosing, suppress
from typing import Any, Final

import grpc

from chainkit.protocol.methods import MOST_MESSAGE_BYTES
from chainkit.service.edge.frames import (
    Headers,
    MessageReader,
    TooLarge,
    bad_end,
    deadline_seconds,
    framed,
    good_end,
    joined,
    metadata_of,
)
from chainkit.service.edge.pace import RefusalPace
from chainkit.service.edge.unfinished import TOO_LARGE, Place, Unfinished
from chainkit.service.grpc_methods import (
    CallerGone,
    CallerStreaming,
    CallerUnary,
    Requests,
    caller_of,
    refusal_of,
)
from chainkit.service.refusals import InvalidRequest, NotReady, Refusal
from chainkit.service.refusals import Unfinished as Late

Event = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]

_CONTENT: Final = (b"content-type", b"application/grpc")
_START: Final = {
    "type": "http.response.start",
    "status": 200,
    "headers": [_CONTENT],
    "trailers": True,
}


class UnknownMethod(Refusal):
    """Nobody serves a method of this name."""

    is_of_caller = True
    code = grpc.StatusCode.UNIMPLEMENTED


class Call:
    """A call from its headers to its trailers."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        unfinished: Unfinished,
        pace: RefusalPace,
        most_bytes: int = MOST_MESSAGE_BYTES,
    ) -> None:
        """Take ASGI's scope, how to receive and send, what is unfinished, and the refusals' pace.

        ``most_bytes`` is the length of the longest request.
        """
        self._unfinished = unfinished
        self._pace = pace
        self._place: Place | None = None
        self._receive = receive
        self._send = send
        self._has_begun = False
        self._has_all = False
        self._has_read = False
        self._length = 0
        """Bytes of the request that came."""
        self._began = time.monotonic()
        headers = scope["headers"]
        self._seconds = deadline_seconds(headers)
        self._caller = caller_of(_peer(scope), metadata_of(headers), self._seconds)
        self._reader = MessageReader(most_bytes)

    async def answer_one(self, method: CallerUnary) -> None:
        """Answer a method of one request and one answer."""
        await self._end(self._one(method))

    async def answer_many(self, method: CallerStreaming, *, asks_once: bool) -> None:
        """Answer a method of many answers."""
        await self._end(self._many(method, asks_once))

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with a refusal; the request is not read."""
        with suppress(CallerGone):
            await self._refuse(refusal)

    async def is_gone(self) -> bool:
        """Return whether the caller has gone behind its request, which no event says by itself."""
        return self._has_read and (await self._receive())["type"] == "http.disconnect"

    async def _one(self, method: CallerUnary) -> None:
        request = await self._request()
        answer = await method(request, self._caller)
        await self._begin()
        await self._write(framed(answer), more=False)

    async def _many(self, method: CallerStreaming, asks_once: bool) -> None:
        requests: Requests = await self._request() if asks_once else self._requests()
        # A method counts the bytes of its open streams itself.
        self._leave()
        # Some clients wait for headers before they do anything else.
        await self._begin()
        await self._write(b"", more=True)
        answers: Any = method(requests, self._caller)
        async with aclosing(answers) as frames:
            async for frame in frames:
                await self._write(framed(frame), more=True)
        await self._write(b"", more=False)

    async def _end(self, answering: Coroutine[Any, Any, None]) -> None:
        """Answer, and send the trailers; a caller that has gone needs none."""
        with suppress(CallerGone):
            refusal = await self._refusal(answering)
            if refusal is None:
                await self._trailers(good_end())
            else:
                await self._refuse(refusal)

    async def _refusal(self, answering: Coroutine[Any, Any, None]) -> Refusal | None:
        """Answer; return why that was not possible. Raises CallerGone."""
        deadline = asyncio.timeout(self._seconds)
        try:
            async with deadline:
                self._place = self._unfinished.enter(self._caller.address)
                await answering
        except CallerGone:
            raise
        except asyncio.CancelledError:
            # Only the server's end cancels a call.
            return NotReady("server", "to go on", "its end")
        except Exception as error:
            if deadline.expired():
                return Late("call", "an answer before the caller's deadline", "none yet")
            if isinstance(error, TooLarge):
                self._unfinished.refused(TOO_LARGE)
            return _without_frames(refusal_of(error))
        finally:
            # Where there was no place, nothing was begun.
            answering.close()
            self._reader.drop()
            self._leave()
        return None

    def _leave(self) -> None:
        if self._place is not None:
            self._place.leave()

    async def _refuse(self, refusal: Refusal) -> None:
        if refusal.is_of_caller:
            length = 0 if self._has_begun else self._length
            await self._pace.wait(self._caller.address, length, self._seconds_left())
        end = bad_end(refusal)
        if not self._has_begun:
            await self._emit({**_START, "headers": [_CONTENT, *end], "trailers": False})
            await self._write(b"", more=False)
            return
        if not self._has_all:
            await self._write(b"", more=False)
        await self._trailers(end)

    def _seconds_left(self) -> float | None:
        """Return the time until the caller's deadline, where it has one."""
        if self._seconds is None:
            return None
        return max(self._seconds - (time.monotonic() - self._began), 0.0)

    async def _begin(self) -> None:
        self._has_begun = True
        await self._emit(_START)

    async def _write(self, body: bytes, *, more: bool) -> None:
        """Send bytes; where more come, wait until Envoy took these."""
        self._has_all = not more
        await self._emit({"type": "http.response.body", "body": body, "more_body": more})

    async def _trailers(self, headers: Headers) -> None:
        await self._emit({"type": "http.response.trailers", "headers": headers})

    async def _emit(self, event: Event) -> None:
        """Send an event. Raises CallerGone."""
        sent = self._send(event)
        try:
            # pyvoy sets a result even where the wait was given up.
            await (asyncio.shield(sent) if isinstance(sent, asyncio.Future) else sent)
        except OSError as error:
            raise CallerGone from error.with_traceback(None)
        finally:
            # A future, its error and this frame would hold each other, and the event's bytes.
            del sent

    async def _request(self) -> bytes:
        """Return the request. Raises Refusal, and CallerGone where the body has no end."""
        requests = [each async for each in self._requests()]
        if len(requests) != 1:
            raise InvalidRequest("requests of a call", "one", len(requests))
        return requests[0]

    async def _requests(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            received = self._receive()
            if isinstance(received, asyncio.Future):
                received = asyncio.shield(received)
            event = await received
            if event["type"] != "http.request":
                raise CallerGone
            more = event.get("more_body", False)
            body = event.get("body", b"")
            self._length += len(body)
            if self._place is not None:
                self._place.grow(len(body))
            for parts in self._reader.feed(body):
                yield await joined(parts)
        self._has_read = True
        if self._place is not None:
            self._place.whole()
        self._reader.finish()


def _without_frames(refusal: Refusal) -> Refusal:
    """Forget tracebacks, also of what led to a refusal: their frames hold the request."""
    refusal.__cause__ = refusal.__context__ = None
    return refusal.with_traceback(None)


def _peer(scope: Scope) -> str:
    """Return the caller's address in gRPC's form."""
    host, port = scope["client"] or ("", 0)
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"

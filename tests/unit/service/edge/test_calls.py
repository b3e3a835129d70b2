"""One call, played without a server: ASGI's events as lists."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from chainkit.service.edge.calls import Call, Event
from chainkit.service.edge.frames import framed
from chainkit.service.edge.pace import BYTES_OF_A_REFUSAL, PaceLimits, RefusalPace
from chainkit.service.edge.unfinished import Unfinished, UnfinishedLimits
from chainkit.service.grpc_methods import Caller, Requests
from chainkit.service.refusals import InvalidRequest, NotNow

LIMITS = UnfinishedLimits()
AT_ONCE = RefusalPace(PaceLimits(per_second=0))


class Played:
    """A call, its request in pieces, and the events that it sends until the client goes."""

    def __init__(
        self,
        *pieces: bytes,
        headers: Any = (),
        takes: int = 1000,
        limits: UnfinishedLimits = LIMITS,
        most_bytes: int = 100,
        pace: RefusalPace = AT_ONCE,
    ) -> None:
        self.sent: list[Event] = []
        self.asked = 0
        self._pieces = list(pieces)
        self._takes = takes
        scope = {"client": ("192.0.2.1", 4000), "headers": list(headers)}
        self.refused: list[str] = []
        self.unfinished = Unfinished(limits, self.refused.append)
        self.call = Call(scope, self._receive, self._send, self.unfinished, pace, most_bytes)

    async def _receive(self) -> Event:
        self.asked += 1
        if not self._pieces:
            return {"type": "http.disconnect"}
        piece = self._pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}

    async def _send(self, event: Event) -> None:
        if len(self.sent) == self._takes:
            raise OSError("the client disconnected")
        self.sent.append(event)

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self.sent)

    @property
    def trailers(self) -> dict[bytes, bytes]:
        last = self.sent[-1] if self.sent[-1]["type"].endswith("trailers") else self.sent[0]
        return dict(last["headers"])


async def echo(request: bytes, caller: Caller) -> bytes:
    return request + caller.peer.encode()


async def thrice(request: Requests, _: Caller) -> AsyncIterator[bytes]:
    assert isinstance(request, bytes)
    for _ in range(3):
        yield request


async def refuse(request: bytes, _: Caller) -> bytes:
    raise NotNow("state", "another one", "this one")


async def wait(request: bytes, _: Caller) -> bytes:
    await asyncio.Event().wait()
    return request


@pytest.mark.parametrize("pieces", [[framed(b"ab")], [framed(b"ab")[:3], framed(b"ab")[3:], b""]])
def test_call__of_one_answer__has_it_and_status_0(pieces: Sequence[bytes]) -> None:
    played = Played(*pieces)

    asyncio.run(played.call.answer_one(echo))

    assert played.body == framed(b"abipv4:192.0.2.1:4000")
    assert played.trailers == {b"grpc-status": b"0"}
    # pyvoy answers a further question at once, for ever.
    assert played.asked == len(pieces)


def test_call__of_many_answers__has_headers_first_and_then_all() -> None:
    played = Played(framed(b"ab"))

    asyncio.run(played.call.answer_many(thrice, asks_once=True))

    assert [each["type"] for each in played.sent[:2]] == [
        "http.response.start",
        "http.response.body",
    ]
    assert played.body == framed(b"ab") * 3
    assert played.trailers == {b"grpc-status": b"0"}


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ([framed(b"a") + framed(b"b")], b"requests of a call: expected one, got 2"),
        ([b""], b"requests of a call: expected one, got 0"),
        ([framed(b"ab")[:-1]], b"request: expected whole messages, got the beginning of one"),
    ],
)
def test_call__body_of_another_form__is_refused(pieces: list[bytes], words: bytes) -> None:
    played = Played(*pieces)

    asyncio.run(played.call.answer_one(echo))

    assert (played.trailers[b"grpc-status"], played.trailers[b"grpc-message"]) == (b"3", words)


def test_call__method_refuses__has_its_code_and_no_body() -> None:
    played = Played(framed(b""))

    asyncio.run(played.call.answer_one(refuse))

    assert played.trailers[b"grpc-status"] == b"9"
    assert played.body == b""


def test_call__deadline_passes__is_deadline_exceeded() -> None:
    played = Played(framed(b""), headers=[(b"grpc-timeout", b"1m")])

    asyncio.run(played.call.answer_one(wait))

    assert played.trailers[b"grpc-status"] == b"4"


def test_call__server_ends__is_unavailable() -> None:
    played = Played(framed(b""))

    async def story() -> None:
        task = asyncio.create_task(played.call.answer_one(wait))
        await asyncio.sleep(0)
        task.cancel()
        await task

    asyncio.run(story())

    assert played.trailers[b"grpc-status"] == b"14"


def test_call__caller_goes_before_the_request_is_whole__reaches_no_method() -> None:
    played = Played()

    asyncio.run(played.call.answer_one(refuse))

    assert played.sent == []


def test_stream__caller_goes__ends_the_method_too() -> None:
    ended = []

    async def answers(request: Requests, _: Caller) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"a"
        finally:
            ended.append(True)

    played = Played(framed(b""), takes=5)

    asyncio.run(played.call.answer_many(answers, asks_once=True))

    assert ended == [True]
    assert len(played.sent) == 5


def test_is_gone__behind_the_request__is_known_when_asked() -> None:
    played = Played(framed(b""))

    async def story() -> tuple[bool, bool]:
        before = await played.call.is_gone()
        await played.call.answer_one(echo)
        return before, await played.call.is_gone()

    assert asyncio.run(story()) == (False, True)


@pytest.mark.parametrize("limits", [UnfinishedLimits(bytes_of_one=6), UnfinishedLimits(bytes=6)])
def test_call__more_bytes_under_way_than_an_address_may__is_refused_and_gives_all_back(
    limits: UnfinishedLimits,
) -> None:
    played = Played(framed(b"abc")[:6], framed(b"abc")[6:], limits=limits)

    asyncio.run(played.call.answer_one(echo))

    assert played.trailers[b"grpc-status"] == b"8"
    played.unfinished.enter("192.0.2.1").grow(6)


@pytest.mark.parametrize(
    "limits", [UnfinishedLimits(requests_of_one=1), UnfinishedLimits(requests=1)]
)
def test_call__another_request_is_not_whole__is_refused_before_it_is_read(
    limits: UnfinishedLimits,
) -> None:
    played = Played(framed(b""), limits=limits)
    other = played.unfinished.enter("192.0.2.1")

    asyncio.run(played.call.answer_one(echo))
    assert (played.trailers[b"grpc-status"], played.asked) == (b"8", 0)

    other.whole()
    played.unfinished.enter("192.0.2.1").leave()


def test_call__longer_than_its_method_takes__is_refused_and_counted_before_it_has_come() -> None:
    played = Played(framed(bytes(8))[:6], framed(bytes(8))[6:], most_bytes=7)

    asyncio.run(played.call.answer_one(echo))

    assert played.trailers[b"grpc-message"] == b"request: expected at most 7 bytes, got 8"
    assert (played.asked, played.refused) == (1, ["too_large"])


async def misread(request: bytes, _: Caller) -> bytes:
    raise InvalidRequest("request", "another one", request)


def test_call__refused_with_many_bytes__counts_them_as_further_refusals() -> None:
    pace = RefusalPace(PaceLimits(per_second=1, burst=2, seconds=1e-6))

    async def story() -> float:
        played = Played(framed(bytes(2 * BYTES_OF_A_REFUSAL)), most_bytes=1 << 20, pace=pace)
        await played.call.answer_one(misread)
        assert played.trailers[b"grpc-status"] == b"3"
        return pace.late("192.0.2.1", asyncio.get_running_loop().time())

    assert 0 < asyncio.run(story()) <= 1


@pytest.mark.parametrize("method", [refuse, echo])
def test_call__not_refused_because_of_its_caller__counts_as_no_refusal(method: Any) -> None:
    pace = RefusalPace(PaceLimits(per_second=0.01, burst=0))

    async def story() -> float:
        await Played(framed(b""), pace=pace).call.answer_one(method)
        return pace.late("192.0.2.1", asyncio.get_running_loop().time())

    assert asyncio.run(story()) == 0.0


def test_call__refused_later__holds_nothing_of_the_request_meanwhile() -> None:
    held: list[weakref.ref[Held]] = []

    async def misread_in_a_circle(request: bytes, _: Caller) -> bytes:
        of_the_request = Held()
        held.append(weakref.ref(of_the_request))
        try:
            raise ValueError(request)
        except ValueError as error:
            raise InvalidRequest("request", "another one", request) from error

    async def story() -> list[Held | None]:
        pace = RefusalPace(PaceLimits(per_second=0.01, burst=0))
        played = Played(framed(b""), pace=pace)
        call = asyncio.create_task(played.call.answer_one(misread_in_a_circle))
        while not pace.waiting:
            await asyncio.sleep(0)
        found = [each() for each in held]
        pace.end()
        await call
        assert played.trailers[b"grpc-status"] == b"3"
        return found

    gc.disable()
    try:
        assert asyncio.run(story()) == [None]
    finally:
        gc.enable()


class Held:
    """Something that a method's frame holds."""


def test_call__refused_within_a_method__holds_nothing_of_the_request_behind_it() -> None:
    held: list[weakref.ref[Held]] = []

    async def refuse_in_a_circle(request: bytes, _: Caller) -> bytes:
        of_the_request = Held()
        held.append(weakref.ref(of_the_request))
        refusal = NotNow("state", "another one", request)
        raise refusal

    played = Played(framed(b""))
    gc.disable()
    try:
        asyncio.run(played.call.answer_one(refuse_in_a_circle))
        assert [each() for each in held] == [None]
    finally:
        gc.enable()


class PlayedFutures(Played):
    """As pyvoy sends: a future for each event, which fails once the client goes."""

    held: weakref.ref[asyncio.Future[None]]

    def _send(self, event: Event) -> Any:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        if len(self.sent) == self._takes:
            self.held = weakref.ref(future)
            loop.call_soon(future.set_exception, OSError("the client disconnected"))
        else:
            self.sent.append(event)
            future.set_result(None)
        return future


def test_stream__caller_goes_while_a_frame_waits__holds_nothing_of_the_frame_behind_it() -> None:
    played = PlayedFutures(framed(b""), takes=3)
    gc.disable()
    try:
        asyncio.run(played.call.answer_many(thrice, asks_once=True))
        assert played.held() is None
    finally:
        gc.enable()

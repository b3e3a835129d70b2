"""Calls over a link that delays, loses and doubles them, with the product's words of a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import grpc

from chainkit.errors import ChainkitError
from chainkit.nodes.outcomes import NodeLost, NodeUnreached, sorted_out
from chainkit.service.refusals import InvalidRequest, NotReady, Overloaded, Refusal
from support.network.grpc_server import abort

if TYPE_CHECKING:
    from support.client.stories.story import Story

T = TypeVar("T")

FAULTS = {
    "": 70,
    "unreached": 5,
    "lost before": 6,
    "lost after": 8,
    "late": 3,
    "doubled": 5,
    "refused": 2,
    "busy": 4,
    "limited": 2,
}
"""Faults of a call, by weight; nothing for none."""

LATEST_SECONDS = 40.0
"""A request arrives up to so long after its caller has sent it, and perhaps given up."""


class _Context:
    """The server's side of a call, as far as a refusal needs it."""

    async def abort(self, code: grpc.StatusCode, words: str, trailing: Any) -> NoReturn:
        metadata = grpc.aio.Metadata(*trailing)
        raise grpc.aio.AioRpcError(code, grpc.aio.Metadata(), metadata, words)


async def called(subject: str, answer: Awaitable[T]) -> T:
    """Return an answer, or raise what the caller gets of a refusal."""
    try:
        return await answer
    except Refusal as refusal:
        try:
            await abort(cast(Any, _Context()), refusal)
        except grpc.aio.AioRpcError as error:
            raise sorted_out(subject, error) from refusal


async def over_link(
    story: Story, subject: str, ask: Callable[[], Awaitable[T]], seconds: float
) -> T:
    """Call a server: requests and answers may come late, twice or never."""
    await asyncio.sleep(story.delay())
    fault = story.fault()
    if fault == "unreached":
        raise NodeUnreached(subject, "a connection", "none")
    if fault == "lost before":
        raise NodeLost(subject, "an answer", "none")
    if fault == "late":
        story.keep(_late(story, ask))
        await asyncio.sleep(seconds)
        raise NodeLost(subject, "an answer", "none in time")
    if fault == "doubled":
        story.keep(_unheard(ask))
    answer = await called(subject, _answer(fault, ask))
    await asyncio.sleep(story.delay())
    if fault == "lost after" or story.loses_answers:
        raise NodeLost(subject, "an answer", "none")
    return answer


async def _answer(fault: str, ask: Callable[[], Awaitable[T]]) -> T:
    if fault == "refused":
        raise InvalidRequest("payload", "another one", "this one, by chance")
    if fault == "busy":
        raise NotReady("server", "an answer", "none now")
    if fault == "limited":
        raise Overloaded("requests", "fewer", "too many")
    return await ask()


async def _late(story: Story, ask: Callable[[], Awaitable[object]]) -> None:
    await asyncio.sleep(story.random.random() * LATEST_SECONDS)
    await _unheard(ask)


async def _unheard(ask: Callable[[], Awaitable[object]]) -> None:
    with suppress(ChainkitError):
        await ask()

"""The first gate: whatever a method or the gate behind refuses is counted, and passed on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from chainkit.service.counting_gate import CountingGate
from chainkit.service.grpc_methods import (
    Caller,
    CallerGone,
    CallerStreaming,
    CallerUnary,
    Requests,
)
from chainkit.service.refusals import NotReady, Refusal

CALLER = Caller("ipv4:192.0.2.1:4000")


async def refuses(request: bytes, _: Caller) -> bytes:
    raise NotReady("chain", "an answer", "none")


async def fails(request: bytes, _: Caller) -> bytes:
    raise RuntimeError("a fault")


async def answers(request: bytes, _: Caller) -> bytes:
    return request


async def refuses_later(requests: Requests, _: Caller) -> AsyncIterator[bytes]:
    yield b"first"
    raise NotReady("chain", "an answer", "none")


class Second:
    """A gate that refuses all calls of one method."""

    def unary(self, method: str, inner: CallerUnary) -> CallerUnary:
        return refuses if method == "closed" else inner

    def streaming(self, method: str, inner: CallerStreaming) -> CallerStreaming:
        return inner


@pytest.fixture
def counts() -> Counter[tuple[str, str]]:
    return Counter()


@pytest.fixture
def gate(counts: Counter[tuple[str, str]]) -> CountingGate:
    return CountingGate(Second(), lambda method, code: counts.update([(method, code)]))


def test_refusals__of_methods__are_counted_by_method_and_code(
    gate: CountingGate, counts: Counter[tuple[str, str]]
) -> None:
    for method in (refuses, fails, refuses):
        with pytest.raises(Refusal):
            asyncio.run(gate.unary(method.__name__, method)(b"", CALLER))
    assert asyncio.run(gate.unary("answers", answers)(b"a", CALLER)) == b"a"

    assert counts == {("refuses", "UNAVAILABLE"): 2, ("fails", "INTERNAL"): 1}


def test_refusals__of_the_gate_behind__are_counted(
    gate: CountingGate, counts: Counter[tuple[str, str]]
) -> None:
    with pytest.raises(NotReady):
        asyncio.run(gate.unary("closed", answers)(b"", CALLER))

    assert counts == {("closed", "UNAVAILABLE"): 1}


def test_refusal__of_a_stream__is_counted_behind_its_answers(
    gate: CountingGate, counts: Counter[tuple[str, str]]
) -> None:
    async def read() -> list[bytes]:
        found = []
        with pytest.raises(NotReady):
            async for each in gate.streaming("Watch", refuses_later)(b"", CALLER):
                found.append(each)
        return found

    assert asyncio.run(read()) == [b"first"]
    assert counts == {("Watch", "UNAVAILABLE"): 1}


def test_caller_gone__within_its_requests__is_no_refusal_and_no_line_of_the_log(
    gate: CountingGate,
    counts: Counter[tuple[str, str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def requests() -> AsyncIterator[bytes]:
        yield b"first"
        raise CallerGone

    async def echo(requests: Requests, _: Caller) -> AsyncIterator[bytes]:
        assert not isinstance(requests, bytes)
        async for each in requests:
            yield each

    async def read() -> None:
        async for _ in gate.streaming("Watch", echo)(requests(), CALLER):
            pass

    with pytest.raises(CallerGone):
        asyncio.run(read())
    assert (counts, caplog.records) == ({}, [])

"""A share of a gateway's calls: of a token, or of an address where clients have no tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chainkit.service.grpc_methods import Caller, Requests
from chainkit.service.refusals import Overloaded
from chainkit_gateway.clients import Clients, RateLimits, Tokens
from chainkit_gateway.clients_gate import ClientsGate

ANN, BEN = "ann-has-a-long-token", "ben-has-a-long-token"
HERE, THERE = "ipv4:192.0.2.1:4000", "ipv4:192.0.2.2:4000"


def bearer(peer: str, token: str) -> Caller:
    return Caller(peer, f"Bearer {token}")


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    path = tmp_path / "tokens"
    path.write_text(f"ann {ANN}\nben {BEN}\n")
    return Tokens.read(path)


def gate_of(tokens: Tokens | None, calls_of_one: int) -> ClientsGate:
    return ClientsGate(Clients(tokens, RateLimits(), lambda: 0.0), calls_of_one)


async def outcome(gate: ClientsGate, busy: Caller, asks: Caller) -> bytes:
    """Return the answer to a caller while another one's call waits."""
    ends = asyncio.Event()

    async def waits(request: bytes, _: Caller) -> bytes:
        await ends.wait()
        return request

    async def answers(request: bytes, _: Caller) -> bytes:
        return request

    waiting = asyncio.ensure_future(gate.unary("Waits", waits)(b"", busy))
    await asyncio.sleep(0)
    try:
        return await gate.unary("Answers", answers)(b"answer", asks)
    finally:
        ends.set()
        assert await waiting == b""


OTHER = [
    (False, Caller(HERE), Caller(THERE)),
    # A proxy before the gateway has one address.
    (True, bearer(HERE, ANN), bearer(HERE, BEN)),
    # Health is asked without a token.
    (True, bearer(HERE, ANN), Caller(HERE)),
]


@pytest.mark.parametrize(("has_tokens", "busy", "asks"), OTHER)
def test_call__another_client_has_its_share__is_answered(
    tokens: Tokens, has_tokens: bool, busy: Caller, asks: Caller
) -> None:
    gate = gate_of(tokens if has_tokens else None, 1)

    assert asyncio.run(outcome(gate, busy, asks)) == b"answer"


@pytest.mark.parametrize(
    ("has_tokens", "busy", "asks"),
    [
        (False, Caller(HERE), Caller("ipv4:192.0.2.1:5000")),
        (True, bearer(HERE, ANN), bearer(THERE, ANN)),
        (True, bearer(HERE, "a-token-of-nobody"), Caller(HERE)),
    ],
)
def test_call__beyond_the_share_of_a_client__is_refused(
    tokens: Tokens, has_tokens: bool, busy: Caller, asks: Caller
) -> None:
    gate = gate_of(tokens if has_tokens else None, 1)

    with pytest.raises(Overloaded, match="expected at most 1 from one client"):
        asyncio.run(outcome(gate, busy, asks))
    assert asyncio.run(outcome(gate_of(None, 0), busy, asks)) == b"answer"


def test_stream__open__takes_a_place_of_its_client_until_its_end() -> None:
    async def watch(requests: Requests, _: Caller) -> AsyncIterator[bytes]:
        yield b"first"
        yield b"second"

    async def story() -> None:
        watched = gate.streaming("Watch", watch)
        stream = watched(b"", Caller(HERE))
        assert await anext(stream) == b"first"
        with pytest.raises(Overloaded):
            await anext(watched(b"", Caller(HERE)))
        assert [each async for each in stream] == [b"second"]
        assert await anext(watched(b"", Caller(HERE))) == b"first"

    gate = gate_of(None, 1)
    asyncio.run(story())

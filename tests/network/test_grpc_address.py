"""Where a gRPC server cannot listen, told in our words alone; and what a URL connects to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from chainkit.errors import ConfigurationError
from chainkit.nodes.channel import connect, wait_until_connected
from chainkit.nodes.outcomes import NodeUnreached
from chainkit.service.grpc_methods import Bounds, Methods
from chainkit.service.grpc_server import GrpcServer


@pytest.fixture
def occupied() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def started(address: str, *, shares_port: bool = False) -> int:
    """Start a server at an address, and end it; return its port."""
    options = [("grpc.so_reuseport", 1)] if shares_port else []

    async def start() -> int:
        server = GrpcServer(Methods(), {}, Bounds(options=options))
        port = await server.start(address)
        await server.stop(0.0)
        return port

    return asyncio.run(start())


@pytest.mark.parametrize("shares_port", [False, True])
def test_start__port_is_occupied__is_told_with_its_port_and_nothing_else(
    occupied: int, shares_port: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        started(f"127.0.0.1:{occupied}", shares_port=shares_port)

    words = "--grpc: expected an address to listen on, got Address already in use"
    assert str(caught.value) == f"{words} (127.0.0.1:{occupied})"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1"])
def test_start__address_of_another_machine__is_told(
    host: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigurationError, match=f"to listen on, got .* \\({host}:0\\)"):
        started(f"{host}:0")

    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "0.0.0.0"])
def test_start__free_port__is_listened_on(host: str) -> None:
    assert started(f"{host}:0") > 0


def test_start__port_that_both_share__is_listened_on_by_both() -> None:
    async def both() -> tuple[int, int]:
        bounds = Bounds(options=[("grpc.so_reuseport", 1)])
        first, second = (GrpcServer(Methods(), {}, bounds) for _ in range(2))
        port = await first.start("127.0.0.1:0")
        again = await second.start(f"127.0.0.1:{port}")
        for each in (first, second):
            await each.stop(0.0)
        return port, again

    port, again = asyncio.run(both())
    assert port == again


def connected(address: str, url: str) -> None:
    """Connect to a URL while a server listens at an address, in which PORT stands for its port."""

    async def story() -> None:
        server = grpc.aio.server()
        port = server.add_insecure_port(address)
        await server.start()
        at = url.replace("PORT", str(port))
        channel = connect("node", at)
        try:
            await wait_until_connected("node", at, channel)
        finally:
            await channel.close()
            await server.stop(0.0)

    asyncio.run(story())


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_connect__host_of_a_url__is_connected_to(host: str) -> None:
    connected(f"{host}:0", f"http://{host}:PORT")


def test_connect__host_with_the_name_of_a_kind_of_socket__is_a_host_and_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(NodeUnreached):
        connected("unix:5051", "http://unix:5051")

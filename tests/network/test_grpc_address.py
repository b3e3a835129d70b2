"""Where a service cannot listen; and what a URL connects to."""

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
from chainkit.service.addresses import addresses_to_bind


@pytest.fixture
def occupied() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.parametrize("shares_port", [False, True])
def test_address__port_is_occupied__is_told_with_its_port(occupied: int, shares_port: bool) -> None:
    with pytest.raises(ConfigurationError) as caught:
        addresses_to_bind(f"127.0.0.1:{occupied}", shares_port)

    words = "--grpc: expected an address to listen on, got Address already in use"
    assert str(caught.value) == f"{words} (127.0.0.1:{occupied})"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1"])
def test_address__of_another_machine__is_told(host: str) -> None:
    with pytest.raises(ConfigurationError, match=f"to listen on, got .* \\({host}:0\\)"):
        addresses_to_bind(f"{host}:0", False)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "0.0.0.0"])
def test_address__free_port__can_be_bound(host: str) -> None:
    assert addresses_to_bind(f"{host}:0", False)


def test_address__port_that_both_share__can_be_bound() -> None:
    with socket.socket() as first:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, True)
        first.bind(("127.0.0.1", 0))
        first.listen()
        address = f"127.0.0.1:{first.getsockname()[1]}"

        assert addresses_to_bind(address, True)
        with pytest.raises(ConfigurationError, match="already in use"):
            addresses_to_bind(address, False)


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

"""The words with which a connection to a node says why TLS failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from socket import AF_INET

import grpc
import pytest

from chainkit.nodes.connection import NodeConnection, NodeEntry
from chainkit.nodes.outcomes import NodeUnreached
from support.network.certificates import make_pair


def check_failure(url: Callable[[int], str], words: str, *, has_tls: bool) -> None:
    """Check the words of a connection to a server of this machine."""

    async def run() -> None:
        server = grpc.aio.server()
        if has_tls:
            certificate, key = make_pair()
            credentials = grpc.ssl_server_credentials([(key, certificate)])
            port = server.add_secure_port("127.0.0.1:0", credentials)
        else:
            port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        connection = NodeConnection(100, NodeEntry(url(port), b""))
        try:
            with pytest.raises(NodeUnreached, match=words):
                await connection.connect()
        finally:
            await connection.close()
            await server.stop(0)

    asyncio.run(run())


def test_connection__refused_at_one_address_and_nobody_at_the_other__names_the_certificate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def url(port: int) -> str:
        # gRPC resolves names by itself, and this machine may have one address of localhost alone.
        addresses = [(AF_INET, 0, 0, "", (each, port)) for each in ("127.0.0.1", "127.0.0.2")]
        monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: addresses)
        return f"https://localhost:{port}"

    check_failure(url, r"certificate at 127\.0\.0\.1: self.signed", has_tls=True)


def test_connection__tls_to_a_server_without__says_so() -> None:
    url = "https://127.0.0.1:{}".format
    check_failure(url, r"TLS at 127\.0\.0\.1: ", has_tls=False)

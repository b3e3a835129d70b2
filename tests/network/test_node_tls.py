"""A certificate that is replaced while the node's server runs."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from socket import AF_INET
from typing import Any

import grpc
import pytest

from chainkit.errors import ConfigurationError
from chainkit.nodes.connection import NodeConnection, NodeEntry
from chainkit.nodes.outcomes import NodeUnreached
from chainkit.service.certificate import CertificateFiles, ServerCertificate
from chainkit.service.grpc_methods import Methods
from chainkit.service.grpc_server import GrpcServer
from support.network.certificates import make_pair

SERVICE = "service"
SECONDS = 5.0

Connect = Callable[[bytes], Coroutine[Any, Any, bool]]


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    return CertificateFiles(tmp_path / "certificate.pem", tmp_path / "key.pem")


def write(files: CertificateFiles, pair: tuple[bytes, bytes]) -> None:
    """Replace both files as a renewal does: by renaming."""
    for path, content in zip((files.certificate, files.key), pair, strict=True):
        fresh = path.with_suffix(".new")
        fresh.write_bytes(content)
        os.replace(fresh, path)


def serving(files: CertificateFiles, story: Callable[[Connect], Coroutine[Any, Any, None]]) -> None:
    async def echo(data: bytes) -> bytes:
        return data

    async def run() -> None:
        server = GrpcServer(Methods({"Echo": echo}), {SERVICE: ("Echo",)})
        port = await server.start("127.0.0.1:0", ServerCertificate(files))

        async def connect(trusted: bytes) -> bool:
            """Tell whether a new connection succeeds that trusts one certificate alone."""
            credentials = grpc.ssl_channel_credentials(trusted)
            options = (("grpc.use_local_subchannel_pool", 1),)
            target = f"localhost:{port}"
            async with grpc.aio.secure_channel(target, credentials, options) as channel:
                call = channel.unary_unary(f"/{SERVICE}/Echo")
                try:
                    return await call(b"hello", timeout=SECONDS) == b"hello"
                except grpc.aio.AioRpcError:
                    return False

        try:
            await story(connect)
        finally:
            await server.stop(0)

    asyncio.run(run())


def test_certificate__replaced_while_the_server_runs__is_shown_to_new_connections(
    files: CertificateFiles,
) -> None:
    first, second = make_pair(), make_pair()
    write(files, first)

    async def story(connect: Connect) -> None:
        assert await connect(first[0]) and not await connect(second[0])
        write(files, second)
        assert await connect(second[0]) and not await connect(first[0])

    serving(files, story)


@pytest.mark.parametrize("damage", ["cut", "other key", "missing"])
def test_certificate__replacement_that_cannot_be_used__keeps_the_one_before_and_says_so_once(
    files: CertificateFiles, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = make_pair(), make_pair()
    write(files, first)

    async def story(connect: Connect) -> None:
        if damage == "cut":
            write(files, (second[0][:300], second[1]))
        elif damage == "other key":
            write(files, (second[0], first[1]))
        else:
            files.key.unlink()
        with caplog.at_level(logging.INFO, "chainkit"):
            assert await connect(first[0]) and await connect(first[0])
            events = [record.event.name for record in caplog.records]  # type: ignore[attr-defined]
            assert events == ["certificate_refused"]
            write(files, second)
            assert await connect(second[0])

    serving(files, story)


def test_connection__refused_at_one_address_and_nobody_at_the_other__names_the_certificate(
    files: CertificateFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(files, make_pair())

    async def run() -> None:
        server = GrpcServer(Methods({}), {})
        port = await server.start("127.0.0.1:0", ServerCertificate(files))
        # gRPC resolves names by itself, and this machine may have one address of localhost alone.
        addresses = [(AF_INET, 0, 0, "", (each, port)) for each in ("127.0.0.1", "127.0.0.2")]
        monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: addresses)
        connection = NodeConnection(100, NodeEntry(f"https://localhost:{port}", b""))
        try:
            with pytest.raises(NodeUnreached, match=r"certificate at 127\.0\.0\.1: self.signed"):
                await connection.connect()
        finally:
            await connection.close()
            await server.stop(0)

    asyncio.run(run())


def test_connection__tls_to_a_server_without__says_so() -> None:
    async def run() -> None:
        server = GrpcServer(Methods({}), {})
        port = await server.start("127.0.0.1:0", None)
        connection = NodeConnection(100, NodeEntry(f"https://127.0.0.1:{port}", b""))
        try:
            with pytest.raises(NodeUnreached, match=r"TLS at 127\.0\.0\.1: "):
                await connection.connect()
        finally:
            await connection.close()
            await server.stop(0)

    asyncio.run(run())


def test_certificate__unusable_at_the_start__is_told_before_anybody_connects(
    files: CertificateFiles,
) -> None:
    first, second = make_pair(), make_pair()
    write(files, (first[0], second[1]))

    with pytest.raises(ConfigurationError, match="--tls-certificate: expected a PEM certificate"):
        ServerCertificate(files)

"""A certificate that is replaced while the node's server runs."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import grpc
import pytest
from Crypto.Hash import SHA256
from Crypto.PublicKey import ECC
from Crypto.Signature import DSS
from Crypto.Util.asn1 import DerObjectId

from chainkit.errors import ConfigurationError
from chainkit.service.grpc_server import GrpcServer, Methods
from chainkit_node.serving.certificate import CertificateFiles, server_credentials

SERVICE = "service"
SECONDS = 5.0

Connect = Callable[[bytes], Coroutine[Any, Any, bool]]


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    return CertificateFiles(tmp_path / "certificate.pem", tmp_path / "key.pem")


def tagged(tag: int, *parts: bytes) -> bytes:
    """An ASN.1 value in DER."""
    content = b"".join(parts)
    length = len(content).to_bytes(2, "big").lstrip(b"\0") or b"\0"
    if len(content) >= 128:
        length = bytes([0x80 + len(length)]) + length
    return bytes([tag]) + length + content


def make_pair(ends: bytes = b"490101000000Z") -> tuple[bytes, bytes]:
    """Return a self-signed certificate of ``localhost``, and its key, in PEM."""
    key = ECC.generate(curve="P-256")
    algorithm = tagged(0x30, DerObjectId("1.2.840.10045.4.3.2").encode())
    common_name = tagged(0x30, DerObjectId("2.5.4.3").encode(), tagged(0x0C, b"localhost"))
    name = tagged(0x30, tagged(0x31, common_name))
    validity = tagged(0x30, tagged(0x17, b"200101000000Z"), tagged(0x17, ends))
    names = tagged(0x04, tagged(0x30, tagged(0x82, b"localhost")))
    extension = tagged(0x30, DerObjectId("2.5.29.17").encode(), names)
    body = tagged(
        0x30,
        tagged(0xA0, tagged(0x02, b"\2")),
        tagged(0x02, b"\1"),
        *(algorithm, name, validity, name),
        key.public_key().export_key(format="DER"),
        tagged(0xA3, tagged(0x30, extension)),
    )
    signature = DSS.new(key, "deterministic-rfc6979", "der").sign(SHA256.new(body))
    certificate = tagged(0x30, body, algorithm, tagged(0x03, b"\0", signature))
    secret = key.export_key(format="PEM", use_pkcs8=True)
    return ssl.DER_cert_to_PEM_cert(certificate).encode(), secret.encode()


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
        port = await server.start("127.0.0.1:0", server_credentials(files))

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


def test_certificate__unusable_at_the_start__is_told_before_anybody_connects(
    files: CertificateFiles,
) -> None:
    first, second = make_pair(), make_pair()
    write(files, (first[0], second[1]))

    with pytest.raises(ConfigurationError, match="--tls-certificate: expected a PEM certificate"):
        server_credentials(files)

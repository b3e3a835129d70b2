"""Channels to a node or a gateway. A channel connects at the first call."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import lru_cache
from typing import Final
from urllib.parse import quote

import grpc

from chainkit.nodes.outcomes import NodeUnreached
from chainkit.nodes.trust import certificate_fault, trusted_roots
from chainkit.protocol.methods import MOST_MESSAGE_BYTES
from chainkit.text.node_url import grpc_target

CONNECT_SECONDS: Final = 3.0
"""How long a connection may take, before the next node is asked."""

KEEPALIVE_SECONDS: Final = 60.0
"""A connection with open calls on which nothing came for so long is pinged.

An answer is due in a third of that: else the connection is given up, and the next call connects.
"""

_REASON_SECONDS: Final = 2.0
"""How long a failure's reason is looked for, before the next node is asked."""

_MOST_RECONNECT_MS: Final = 5000
"""Short, so that a client finds a restarted node within seconds."""
_BOUNDS: Final = (
    ("grpc.max_receive_message_length", MOST_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MOST_MESSAGE_BYTES),
)
_READY: Final = grpc.ChannelConnectivity.READY


def connect(
    subject: str, url: str, most_reconnect_ms: int = _MOST_RECONNECT_MS
) -> grpc.aio.Channel:
    """Return a channel to ``http://host:port`` or ``https://host:port``.

    The channel connects again after ``most_reconnect_ms`` at the latest. Certificates are checked
    with the public roots, and those of ``--peer-ca``. Raises ConfigurationError about ``subject``
    for another URL.
    """
    scheme, target = _resolved(subject, url)
    options = (*_BOUNDS, *_keepalive(), ("grpc.max_reconnect_backoff_ms", most_reconnect_ms))
    if scheme == "http":
        return grpc.aio.insecure_channel(target, options=options)
    return grpc.aio.secure_channel(target, _credentials(trusted_roots()), options=options)


def connect_blocking(subject: str, url: str) -> grpc.Channel:
    """Return a channel for code without an event loop; see ``connect``."""
    scheme, target = _resolved(subject, url)
    if scheme == "http":
        return grpc.insecure_channel(target, options=_BOUNDS)
    return grpc.secure_channel(target, _credentials(trusted_roots()), options=_BOUNDS)


@lru_cache(maxsize=1)
def _credentials(roots: bytes | None) -> grpc.ChannelCredentials:
    # One for all channels: each new one would read hundreds of certificates again.
    return grpc.ssl_channel_credentials(roots)


def _resolved(subject: str, url: str) -> tuple[str, str]:
    """Return scheme and target of a URL whose host is always taken as a host name or address.

    gRPC takes ``unix:1`` for a socket's path, and ``xds:1`` for the name of a control plane.
    """
    scheme, target = grpc_target(subject, url)
    return scheme, f"dns:///{quote(target, safe=':')}"


def _keepalive() -> tuple[tuple[str, int], ...]:
    milliseconds = int(KEEPALIVE_SECONDS * 1000)
    return (
        ("grpc.keepalive_time_ms", milliseconds),
        ("grpc.keepalive_timeout_ms", milliseconds // 3),
        ("grpc.http2.ping_timeout_ms", milliseconds // 3),
        # Else a stream's reader, which sends nothing, would ping twice, and then no more.
        ("grpc.http2.max_pings_without_data", 0),
    )


async def why_unreached(url: str, words: str) -> str:
    """Return why there is no connection to a URL: a refused certificate, or gRPC's own words."""
    if not url.lower().startswith("https:"):
        return words
    with suppress(TimeoutError):
        async with asyncio.timeout(_REASON_SECONDS):
            return await asyncio.to_thread(certificate_fault, url) or words
    return words


async def wait_until_connected(subject: str, url: str, channel: grpc.aio.Channel) -> None:
    """Wait for a channel's connection. Raises NodeUnreached after CONNECT_SECONDS or a failure."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            while (state := channel.get_state(try_to_connect=True)) is not _READY:
                if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                    break
                await channel.wait_for_state_change(state)
    except TimeoutError as error:
        expected = f"a connection within {CONNECT_SECONDS:g} s"
        raise NodeUnreached(subject, expected, "none") from error
    if state is not _READY:
        raise NodeUnreached(subject, "a connection", await why_unreached(url, "none"))

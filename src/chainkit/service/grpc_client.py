"""Connections to a node or a gateway, for clients on an event loop."""

from __future__ import annotations

from collections.abc import Mapping

import grpc
from google.protobuf.message import DecodeError
from google.rpc import status_pb2

from chainkit.protocol.proto import envelopes_pb2
from chainkit.service.grpc_server import MOST_MESSAGE_BYTES, STATUS_KEY
from chainkit.text.node_url import grpc_target


def connect(subject: str, url: str, most_reconnect_ms: int) -> grpc.aio.Channel:
    """Return a channel to ``http://host:port`` or ``https://host:port``; it connects when used.

    A server that is back is tried again after ``most_reconnect_ms`` at the latest. Raises
    ConfigurationError about ``subject`` for another URL.
    """
    scheme, target = grpc_target(subject, url)
    options = (
        ("grpc.max_receive_message_length", MOST_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MOST_MESSAGE_BYTES),
        ("grpc.max_reconnect_backoff_ms", most_reconnect_ms),
    )
    if scheme == "https":
        credentials = grpc.ssl_channel_credentials()
        return grpc.aio.secure_channel(target, credentials, options=options)
    return grpc.aio.insecure_channel(target, options=options)


def status_details(error: grpc.aio.AioRpcError) -> bytes | None:
    """Return the google.rpc.Status of a refusal; None where gRPC itself made the error."""
    found = [value for key, value in error.trailing_metadata() or () if key == STATUS_KEY]
    return found[0] if found and isinstance(found[0], bytes) else None


def cursor_in(details: bytes | None) -> Mapping[int, int] | None:
    """Return the cursor in the details of a refusal, None where there is none."""
    cursor = envelopes_pb2.Cursor()
    try:
        found = status_pb2.Status.FromString(details or b"").details
        if not found or not found[0].Unpack(cursor):
            return None
    except DecodeError:
        return None
    return dict(cursor.node_id_to_sequence_id)

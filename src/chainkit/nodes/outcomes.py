"""The errors of calls without an answer: a node refused, or a connection was lost.

A node's refusal has a google.rpc.Status in its details. Errors of gRPC and of other implementations
have no status: a code alone does not always say whether the node did something. A proxy in front of
a node that was killed answers INTERNAL or UNKNOWN, where gRPC itself says UNAVAILABLE.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError
from google.rpc import status_pb2

from chainkit.errors import (
    ChainError,
    ChainkitError,
    EndpointUnavailable,
    RateLimited,
    RefusedRequest,
)
from chainkit.protocol.proto import envelopes_pb2
from chainkit.service.refusals import STATUS_KEY, PassedOn
from chainkit.text.printable import printable

_REFUSALS: Final = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
    }
)
_OWN_WORDS: Final = frozenset({grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE})
_OF_CONNECTIONS: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.CANCELLED,
    }
)
"""Codes for connections that broke (gRPC over HTTP/2, Errors). A node that refuses uses other
codes, also a node of another make, which seldom writes a google.rpc.Status."""
_TRANSIENT: Final = (
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
)
_MOST_WORDS: Final = 200
"""Characters of a node's words that an error repeats."""


class NodeUnreached(ChainkitError):
    """Nothing was sent to the node: there is no connection to it."""


class NodeLost(ChainkitError):
    """The node did not answer a request: the node may have done the request, or not."""


class ConnectionLost(NodeLost):
    """The connection ended before an answer; the node reported nothing, and did not fail itself."""


class Conflict(PassedOn):
    """409: the payload's cursor and the node's do not fit; ``cursor`` is the node's (§3.3.4).

    The client reads up to there, and publishes again.
    """

    cursor: Mapping[int, int]


class Unavailable(PassedOn):
    """503: the node answers no such request now, and changed nothing."""


def sorted_out(subject: str, error: grpc.aio.AioRpcError) -> ChainkitError:
    """Return a refusal, or NodeLost where the node may have done what was asked."""
    words = error.details() or error.code().name
    details = status_details(error)
    if is_lost(error):
        return ConnectionLost(subject, "an answer", words)
    # gRPC uses the other codes, too, for a connection that broke or took too long.
    if error.code() in _REFUSALS or (details is not None and error.code() in _OWN_WORDS):
        return _refusal(error.code(), words, details)
    return NodeLost(subject, "an answer", words)


def is_lost(error: Any) -> bool:
    """Return whether a call's end is a connection's, and no answer. ``error`` is gRPC's."""
    return error.code() in _OF_CONNECTIONS and status_details(error) is None


def as_endpoint_error(subject: str, expected: str, error: Any, place: str = "") -> ChainError:
    """Return the error of a read from a node as an endpoint's error.

    Only EndpointUnavailable and RateLimited are worth another try. ``error`` is gRPC's.
    """
    code = error.code()
    words = printable(f"{code.name} {error.details() or ''}".strip())[:_MOST_WORDS]
    if code not in _TRANSIENT and not is_lost(error):
        return RefusedRequest(subject, expected, words)
    kind = RateLimited if code is grpc.StatusCode.RESOURCE_EXHAUSTED else EndpointUnavailable
    return kind(subject, expected, words, place)


def status_details(error: Any) -> bytes | None:
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


def _refusal(code: grpc.StatusCode, words: str, details: bytes | None) -> PassedOn:
    cursor = cursor_in(details)
    if code is grpc.StatusCode.ABORTED and cursor is not None:
        conflict = Conflict(code, words, details)
        conflict.cursor = cursor
        return conflict
    kind = Unavailable if code is grpc.StatusCode.UNAVAILABLE else PassedOn
    return kind(code, words, details)

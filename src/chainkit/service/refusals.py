"""Requests that a node refuses, each with the gRPC code and what the reader may do.

::

    Refusal
    ├── InvalidRequest     INVALID_ARGUMENT     the request itself; asking again changes nothing
    ├── Unauthenticated    UNAUTHENTICATED      the caller is not known
    │   └── RefusedToken                        a node's token, with the reason (node_token)
    ├── NotNow             FAILED_PRECONDITION  somebody has to change a state before it can work
    ├── TakenBack          ABORTED              sent data has changed: go on from a cursor
    ├── Overloaded         RESOURCE_EXHAUSTED   too much at once: ask for less, or later
    │   └── OverShare                           the limit of this caller alone
    ├── NotReady           UNAVAILABLE          the node lags behind, or its database is away
    ├── Unfinished         DEADLINE_EXCEEDED    under way beyond the caller's deadline
    └── PassedOn           the other's          another service's refusal, with its text
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import grpc

from chainkit.errors import ChainkitError

MOST_PASSED_ON: Final = 2048
"""Characters of another service's text, and bytes of its details, that are passed on: gRPC carries
8 KiB of metadata in total."""

STATUS_KEY: Final = "grpc-status-details-bin"
"""The metadata key of a refusal's google.rpc.Status."""

LIMIT_CODES: Final = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAUTHENTICATED)
"""Codes by which a node applies its limits; these codes are no failure of the node."""


class Refusal(ChainkitError):
    """A request that is not answered. ``code`` is gRPC's; ``cursor`` goes into the details."""

    code = grpc.StatusCode.INTERNAL
    cursor: Mapping[int, int] | None = None
    is_of_caller: ClassVar[bool] = False
    """Whether the caller alone has to change what it asks for: with many such, it waits."""


class InvalidRequest(Refusal):
    """The request is not valid."""

    is_of_caller = True
    code = grpc.StatusCode.INVALID_ARGUMENT


class Unauthenticated(Refusal):
    """The request does not prove the caller's identity."""

    is_of_caller = True
    code = grpc.StatusCode.UNAUTHENTICATED


class NotNow(Refusal):
    """The same request is answered once somebody has changed a state, such as a pause."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class TakenBack(Refusal):
    """A reorg took back data that a stream has sent, or a gap below it was filled.

    ``cursor`` has the last sequence ids that are still valid.
    """

    code = grpc.StatusCode.ABORTED


class Overloaded(Refusal):
    """The request exceeds the limit of one reader, or of all readers."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class OverShare(Overloaded):
    """The request exceeds the limit of its own caller."""

    is_of_caller = True


class NotReady(Refusal):
    """The node cannot answer now."""

    code = grpc.StatusCode.UNAVAILABLE


class Unfinished(Refusal):
    """The request has begun and goes on, and has no outcome before the caller's deadline."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class PassedOn(Refusal):
    """Another service refused, with this text; ``details`` is its serialized google.rpc.Status.

    Text and details beyond MOST_PASSED_ON are left out.
    """

    def __init__(self, code: grpc.StatusCode, words: str, details: bytes | None = None) -> None:
        """Take the other service's answer."""
        super().__init__("another service", None, words)
        self.code = code
        self.words = words[:MOST_PASSED_ON]
        is_small = details is not None and len(details) <= MOST_PASSED_ON
        # The details repeat the words, and a reader may refuse details that differ.
        self.details = details if is_small and self.words == words else None

    def __str__(self) -> str:
        """Return the other service's words alone."""
        return self.words

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling, as every error does."""
        return type(self), (self.code, self.words, self.details), self.__dict__


def taken_back(cursor: Mapping[int, int]) -> TakenBack:
    """Return the refusal with a stream reader's new cursor: originator ids to last sequence ids."""
    shown = ", ".join(f"{last} of originator {each}" for each, last in cursor.items())
    why = "a reorg took it back, or a gap was filled"
    refusal = TakenBack("stream", None, f"ends: what lies above {shown} has changed ({why})")
    refusal.cursor = cursor
    return refusal

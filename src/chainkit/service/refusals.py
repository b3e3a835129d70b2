"""Requests that a node refuses, each with the gRPC code and what the reader may do.

::

    Refusal
    ├── InvalidRequest     INVALID_ARGUMENT     the request itself; asking again changes nothing
    ├── TakenBack          ABORTED              a reorg took back what was sent: go on from a cursor
    ├── Overloaded         RESOURCE_EXHAUSTED   too much at once: ask for less, or later
    └── NotReady           UNAVAILABLE          the node lags behind, or its database is away
"""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from chainkit.errors import ChainkitError


class Refusal(ChainkitError):
    """A request that is not answered. ``code`` is gRPC's; ``cursor`` goes into the details."""

    code = grpc.StatusCode.INTERNAL
    cursor: Mapping[int, int] | None = None


class InvalidRequest(Refusal):
    """The request is not one that can be answered."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class TakenBack(Refusal):
    """A reorg took back what a stream has sent; ``cursor`` is the common ancestor's."""

    code = grpc.StatusCode.ABORTED


class Overloaded(Refusal):
    """More is asked than the node gives to one reader, or to all."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class NotReady(Refusal):
    """The node cannot answer now."""

    code = grpc.StatusCode.UNAVAILABLE


def taken_back(ancestor: Mapping[int, int]) -> TakenBack:
    """Tell a stream's reader from where to go on: originator ids to their last sequence ids."""
    shown = ", ".join(f"{last} of originator {each}" for each, last in ancestor.items())
    refusal = TakenBack("stream", None, f"ends: a reorg took back what lies above {shown}")
    refusal.cursor = ancestor
    return refusal

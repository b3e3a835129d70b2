"""PublishPayerEnvelopes: each envelope is judged, then all are stored, or none (XIP-49 §3.3.3)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from chainkit.errors import StoreError
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.protocol.stored_envelopes import written_envelopes
from chainkit.service.refusals import NotReady, Overloaded, Refusal
from chainkit_node.live.handover import Handover
from chainkit_node.originating.last_refusal import LastRefusal
from chainkit_node.originating.publisher import Publisher
from chainkit_node.serving import requests
from chainkit_node.serving.metrics import STORED, NodeMetrics
from chainkit_node.settings import ServingLimits

MOST_LATE_SECONDS: Final = 2.0
"""A node whose event loop is later than so refuses at once what it could not answer in time."""

_UNAVAILABLE: Final = NotReady.code.name.lower()


@contextmanager
def counted_publish(metrics: NodeMetrics) -> Iterator[None]:
    """Count the request to publish that the block answers, by its outcome, with its time."""
    began = time.monotonic()
    try:
        yield
    except BaseException as error:
        metrics.published(_outcome(error), time.monotonic() - began)
        raise
    metrics.published(STORED, time.monotonic() - began)


class PublishHandler:
    """Hands payers' envelopes to the publisher."""

    def __init__(
        self,
        publisher: Publisher,
        handover: Handover,
        limits: ServingLimits,
        metrics: NodeMetrics,
        late_seconds: Callable[[], float],
        refusals: LastRefusal,
    ) -> None:
        """Take the publisher, the handover of its answers, the limits, and the metrics.

        ``late_seconds`` tells how late the event loop is; ``refusals`` is what the node's status
        shows.
        """
        self._publisher = publisher
        self._handover = handover
        self._limits = limits
        self._metrics = metrics
        self._late_seconds = late_seconds
        self._refusals = refusals

    async def publish_payer_envelopes(self, data: bytes) -> bytes:
        """Answer with the OriginatorEnvelopes, in the request's order."""
        with counted_publish(self._metrics):
            try:
                answer = await self._publish(data)
            except Exception as error:
                if _outcome(error) == _UNAVAILABLE:
                    self._refusals.refused(error)
                raise
            self._refusals.stored()
            return answer

    async def _publish(self, data: bytes) -> bytes:
        if (late := self._late_seconds()) > MOST_LATE_SECONDS:
            expected = f"a node that is at most {MOST_LATE_SECONDS:g} s late"
            got = f"one that is {late:.1f} s late; try again later, or another node"
            raise Overloaded("publish", expected, got)
        request = requests.parsed(Envelopes, data, 2 * self._limits.publish)
        requests.check_count("payer_envelopes", len(request.envelopes), self._limits.publish)
        stored = await self._handover.wait(self._publisher.accept(request.envelopes))
        return written_envelopes(stored)


def _outcome(error: BaseException) -> str:
    """Return gRPC's code in lower case; a caller that went away is one, too."""
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    if isinstance(error, StoreError):
        return _UNAVAILABLE
    code = error.code if isinstance(error, Refusal) else Refusal.code
    return code.name.lower()

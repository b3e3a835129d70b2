"""PublishPayerEnvelopes: each envelope is judged, then all are stored, or none (XIP-49 §3.3.3)."""

from __future__ import annotations

import asyncio
import time

from chainkit.errors import StoreError
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.protocol.stored_envelopes import written_envelopes
from chainkit.service.refusals import NotReady, Refusal
from chainkit_node.live.handover import Handover
from chainkit_node.originating.publisher import Publisher
from chainkit_node.serving import requests
from chainkit_node.serving.metrics import STORED, NodeMetrics
from chainkit_node.settings import ServingLimits


class PublishHandler:
    """Hands payers' envelopes to the publisher."""

    def __init__(
        self,
        publisher: Publisher,
        handover: Handover,
        limits: ServingLimits,
        metrics: NodeMetrics,
    ) -> None:
        """Take the publisher, the handover of its answers, the limits, and the metrics."""
        self._publisher = publisher
        self._handover = handover
        self._limits = limits
        self._metrics = metrics

    async def publish_payer_envelopes(self, data: bytes) -> bytes:
        """Answer with the OriginatorEnvelopes, in the request's order."""
        began = time.monotonic()
        try:
            answer = await self._publish(data)
        except BaseException as error:
            self._metrics.published(_outcome(error), time.monotonic() - began)
            raise
        self._metrics.published(STORED, time.monotonic() - began)
        return answer

    async def _publish(self, data: bytes) -> bytes:
        request = requests.parsed(Envelopes, data)
        requests.check_count("payer_envelopes", len(request.envelopes), self._limits.publish)
        stored = await self._handover.wait(self._publisher.accept(request.envelopes))
        return written_envelopes(stored)


def _outcome(error: BaseException) -> str:
    """Return gRPC's code in lower case; a caller that went away is one, too."""
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    if isinstance(error, StoreError):
        return NotReady.code.name.lower()
    code = error.code if isinstance(error, Refusal) else Refusal.code
    return code.name.lower()

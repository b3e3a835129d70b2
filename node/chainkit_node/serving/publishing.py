"""PublishPayerEnvelopes: each envelope is judged, then all are stored, or none (XIP-49 §3.3.3)."""

from __future__ import annotations

import asyncio

from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit_node.originating.publisher import Publisher
from chainkit_node.serving import requests
from chainkit_node.settings import ServingLimits


class PayerDesk:
    """Takes payers' envelopes to the publisher."""

    def __init__(self, publisher: Publisher, limits: ServingLimits) -> None:
        """Take who judges and stores, and how much one request may ask for."""
        self._publisher = publisher
        self._limits = limits

    async def publish_payer_envelopes(self, data: bytes) -> bytes:
        """Answer with the OriginatorEnvelopes, in the request's order."""
        request = requests.parsed(Envelopes, data)
        requests.check_count("payer_envelopes", len(request.envelopes), self._limits.publish)
        accepted = await asyncio.to_thread(self._publisher.accept, request.envelopes)
        stored = await asyncio.wrap_future(accepted)
        return Envelopes(envelopes=stored).SerializeToString()

"""A node that signs two envelopes under one id: its answers about topics have the false ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chainkit.protocol.envelope import stated_place
from chainkit.protocol.originated_envelope import (
    parse_originated,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.payer_envelope import sign_payer_envelope
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.proto.envelopes_pb2 import ClientEnvelope, PayerEnvelope
from chainkit.protocol.topic_heads import Entry
from chainkit.signatures import SigningKey
from chainkit_client.network.asked import AskedNode
from support import publishes


def with_changed_end(envelope: bytes, target: int) -> bytes:
    """The PayerEnvelope of an originated group message, with another last byte."""
    payer = PayerEnvelope.FromString(parse_originated(envelope).envelope.payer_envelope)
    client = ClientEnvelope.FromString(payer.unsigned_client_envelope)
    data = client.group_message.v1.data
    client.group_message.v1.data = data[:-1] + bytes([data[-1] ^ 1])
    return sign_payer_envelope(client.SerializeToString(), target, publishes.PAYER)


@dataclass
class TwoHistories:
    """As a node's connection, before which its own key signs the false ones; its heads are true."""

    node: AskedNode
    key: SigningKey

    @property
    def node_id(self) -> int:
        return self.node.node_id

    async def query(
        self, request: message_api_pb2.QueryEnvelopesRequest, seconds: float
    ) -> Sequence[bytes]:
        page = await self.node.query(request, seconds)
        if not request.query.topics:
            return page
        return [self._false(each) if self._is_own(each) else each for each in page]

    async def topic_head(
        self, topic: bytes, entries_after: int | None, seconds: float
    ) -> tuple[bytes, Sequence[Entry]]:
        return await self.node.topic_head(topic, entries_after, seconds)

    def _is_own(self, envelope: bytes) -> bool:
        return stated_place(envelope)[0] == self.node_id

    def _false(self, envelope: bytes) -> bytes:
        true = parse_originated(envelope).envelope
        false = replace(true, payer_envelope=with_changed_end(envelope, self.node_id))
        return sign_originated(unsigned_originated(false), self.key)

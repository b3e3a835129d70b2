"""Publishes a payload, and accepts only an answer that the originator signed (XIP-49 §3.3.4).

Evidence of a broken rule is stored before anything else is done. The same bytes may be sent again,
perhaps to another originator: readers show a payload once (§3.3.6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from chainkit.errors import ChainkitError, MalformedData
from chainkit.nodes.outcomes import NodeLost
from chainkit_client.breach import Breach
from chainkit_client.network.signers import signing_node
from chainkit_client.reading.publish_answer import Published, read_publish_answer
from chainkit_client.reading.verified import Keys, VerifiedEnvelope

PUBLISH_SECONDS: Final = 30.0
"""How long to wait for an answer: a gateway may wait for the chain."""

KeepEvidence = Callable[[Sequence[Breach]], None]
"""Stores broken rules before anything else is done."""


class OutcomeUnknown(ChainkitError):
    """A node may have stored the payload: search the topic before publishing again."""


class AsksGateway(Protocol):
    """The part of a gateway that is used."""

    async def publish(
        self, client_envelopes: Sequence[bytes], seconds: float, retention_days: int | None = None
    ) -> Sequence[bytes]:
        """As ``nodes.gateway.Gateway``."""


class GatewayPublisher:
    """Publishes through a gateway, which pays and chooses the node."""

    def __init__(
        self,
        gateway: AsksGateway,
        keys: Callable[[], Keys],
        now_ns: Callable[[], int],
        keep: KeepEvidence,
        promised: Callable[[VerifiedEnvelope], None] = lambda envelope: None,
    ) -> None:
        """Take the gateway, the registry's keys, a clock since 1970, and a store of evidence.

        ``promised`` takes each envelope that its originator signed as an answer.
        """
        self._gateway = gateway
        self._keys = keys
        self._now_ns = now_ns
        self._keep = keep
        self._promised = promised

    async def publish(
        self, client_envelope: bytes, first_sent_ns: int, retention_days: int | None = None
    ) -> VerifiedEnvelope:
        """Publish a ClientEnvelope, and return the envelope that the originator signed.

        ``first_sent_ns`` is the clock when the same bytes were sent for the first time, or before:
        a gateway answers bytes that are sent again with their first envelope. ``retention_days``
        is a wish, None for the gateway's policy. Raises
        PassedOn where the payload is refused, NodeUnreached where nothing was sent, and
        OutcomeUnknown where no answer proves that the payload is stored.
        """
        try:
            [answer] = await self._gateway.publish(
                [client_envelope], PUBLISH_SECONDS, retention_days
            )
        except NodeLost as error:
            raise OutcomeUnknown("publish", "a signed answer", error) from error
        keys = self._keys()
        if (server_id := signing_node(answer, keys)) is None:
            raise OutcomeUnknown("publish", "an envelope that a registered node signed", "another")
        published = Published(client_envelope, first_sent_ns)
        try:
            read = read_publish_answer(answer, published, server_id, keys, self._now_ns())
        except MalformedData as error:
            raise OutcomeUnknown("publish", "an answer that its node signed", error) from error
        if read.breaches:
            self._keep(read.breaches)
        if read.envelope is not None and read.envelope.transaction_hash is None:
            self._promised(read.envelope)
        if read.envelope is None or read.breaches or read.doubt:
            reasons = dict.fromkeys((*(each.reason for each in read.breaches), read.doubt))
            got = "; ".join(filter(None, reasons))
            raise OutcomeUnknown("publish", "an answer that keeps the rules", got)
        return read.envelope

"""Publishes a payload, and believes only what its originator signed (XIP-49 §3.3.4).

The same bytes may go to several originators: readers show a payload once (§3.3.6). So a node whose
answer breaks a rule, or that gives none, is followed by the next one. Its evidence is kept first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from chainkit.errors import ChainkitError, MalformedData
from chainkit.protocol.payer_envelope import sign_payer_envelope
from chainkit.protocol.publish_rules.client_envelope import parse_client_envelope
from chainkit.signatures import SigningKey
from chainkit_client.breach import Breach
from chainkit_client.network.signers import signing_node
from chainkit_client.nodes.connection import (
    NodeConnection,
    NodeLost,
    NodeUnreached,
    Unavailable,
)
from chainkit_client.reading.publish_answer import Published, read_publish_answer
from chainkit_client.reading.verified import Keys, VerifiedEnvelope

PUBLISH_SECONDS: Final = 30.0
"""For how long an answer is waited for: a gateway may wait for the chain."""

KeepEvidence = Callable[[Sequence[Breach]], None]
"""Keeps broken rules before anything else is done."""


class NothingPublished(ChainkitError):
    """No node took the payload: it may be published again."""


class OutcomeUnknown(ChainkitError):
    """A node may have stored the payload: look for it on its topic before it is published again."""


class AsksGateway(Protocol):
    """The part of a gateway that is used."""

    async def publish(self, client_envelopes: Sequence[bytes], seconds: float) -> Sequence[bytes]:
        """As ``nodes.gateway.Gateway``."""


class GatewayPublisher:
    """Publishes through a gateway, which pays and chooses the node."""

    def __init__(
        self,
        gateway: AsksGateway,
        keys: Callable[[], Keys],
        now_ns: Callable[[], int],
        keep: KeepEvidence,
    ) -> None:
        """Take the gateway, the registry's keys, a clock since 1970, and who keeps evidence."""
        self._gateway = gateway
        self._keys = keys
        self._now_ns = now_ns
        self._keep = keep

    async def publish(self, client_envelope: bytes, first_sent_ns: int) -> VerifiedEnvelope:
        """Publish a ClientEnvelope, and return what its originator signed.

        ``first_sent_ns`` is the clock when the same bytes were sent for the first time. Raises
        PassedOn where they are refused, NodeUnreached where nothing was sent, and OutcomeUnknown
        where no answer proves what became of them.
        """
        try:
            [answer] = await self._gateway.publish([client_envelope], PUBLISH_SECONDS)
        except NodeLost as error:
            raise OutcomeUnknown("publish", "a signed answer", error) from error
        keys = self._keys()
        if (server_id := signing_node(answer, keys)) is None:
            raise OutcomeUnknown("publish", "an envelope that a registered node signed", "another")
        published = Published(client_envelope, first_sent_ns)
        return _verified(answer, published, server_id, keys, self._now_ns(), self._keep)


class NodePublisher:
    """Publishes to nodes itself, as its own payer. Payloads of the chain go by a gateway."""

    def __init__(
        self,
        for_topic: Callable[[bytes], Iterable[NodeConnection]],
        payer: SigningKey,
        keys: Callable[[], Keys],
        now_ns: Callable[[], int],
        keep: KeepEvidence,
    ) -> None:
        """Take what gives nodes in the order in which a topic prefers them, and the payer's key."""
        self._for_topic = for_topic
        self._payer = payer
        self._keys = keys
        self._now_ns = now_ns
        self._keep = keep

    async def publish(self, client_envelope: bytes, first_sent_ns: int) -> VerifiedEnvelope:
        """Publish a ClientEnvelope at the first node that takes it and answers as it must.

        Raises PassedOn where a node refuses the payload, NothingPublished where none was reached,
        and OutcomeUnknown.
        """
        published = Published(client_envelope, first_sent_ns)
        got: object = "no node"
        is_unknown = False
        for node in self._for_topic(parse_client_envelope(client_envelope).topic):
            paid = sign_payer_envelope(client_envelope, node.node_id, self._payer)
            try:
                answer = await node.publish(paid, PUBLISH_SECONDS)
                return _verified(
                    answer, published, node.node_id, self._keys(), self._now_ns(), self._keep
                )
            except (NodeUnreached, Unavailable) as error:
                got = error
            except (NodeLost, OutcomeUnknown) as error:
                got, is_unknown = error, True
        if is_unknown:
            raise OutcomeUnknown("publish", "a signed answer", got)
        raise NothingPublished("publish", "a node that takes the payload", got)


def _verified(
    answer: bytes,
    published: Published,
    server_id: int,
    keys: Keys,
    now_ns: int,
    keep: KeepEvidence,
) -> VerifiedEnvelope:
    try:
        read = read_publish_answer(answer, published, server_id, keys, now_ns)
    except MalformedData as error:
        raise OutcomeUnknown("publish", "an answer that its node signed", error) from error
    if read.breaches:
        keep(read.breaches)
    if read.envelope is None or read.breaches:
        reasons = "; ".join(each.reason for each in read.breaches)
        raise OutcomeUnknown("publish", "an answer that keeps the rules", reasons)
    return read.envelope

"""Verifies the answer to a publish: its payload, its signer and its times (XIP-49 §3.3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from chainkit.errors import MalformedAnswer
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.chain_time import block_timestamp
from chainkit.protocol.received_envelope import MOST_SECONDS_AHEAD, depends_on_itself
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.breach import Breach
from chainkit_client.reading.verified import Keys, VerifiedEnvelope, read_envelope

MOST_SECONDS_APART: Final = 30 * 60
"""How far an envelope's time may lie from the client's clock (XIP-49 §3.3.4)."""

_APART_NS: Final = MOST_SECONDS_APART * NANOSECONDS_PER_SECOND
_AHEAD_NS: Final = MOST_SECONDS_AHEAD * NANOSECONDS_PER_SECOND


@dataclass(frozen=True, slots=True)
class Published:
    """The bytes that a client published, and the time of the first sending."""

    client_envelope: bytes
    first_sent_ns: int
    """The client's clock at the first sending, in nanoseconds since 1970: the same bytes sent again
    get the first envelope as the answer."""


@dataclass(frozen=True, slots=True)
class PublishAnswer:
    """A signed answer: the envelope, and its broken rules."""

    envelope: VerifiedEnvelope | None
    """The envelope; None where it has another payload than the published one."""
    breaches: tuple[Breach, ...] = ()
    """Broken rules that the node's own signature shows."""
    doubt: str = ""
    """Why the answer does not count, though it shows nothing about the node: a gateway chooses
    which envelope it answers, and this clock may be wrong. Empty for no reason."""


def read_publish_answer(
    answer: bytes, published: Published, server_id: int, keys: Keys, now_ns: int
) -> PublishAnswer:
    """Verify the OriginatorEnvelope that answers a publish.

    ``server_id`` is the node to which the client or a gateway sent the payload; ``now_ns`` the
    client's clock in nanoseconds since 1970. Raises MalformedData where the node did not sign the
    envelope: then the outcome of the publish is unknown, and there is no evidence against the node.
    """
    read = read_envelope(answer, server_id, keys)
    if read.breach is not None:
        return PublishAnswer(None, (read.breach,))
    received, envelope = read.received, read.envelope
    if received is not None and received.originator_id != server_id:
        subject = f"answer of node {server_id}"
        raise MalformedAnswer(subject, "an envelope of its own", f"{received.originator_id}'s")
    if envelope is None:
        assert received is not None
        invalid = Misbehavior.INVALID_PAYLOAD if received.is_offence else None
        breach = Breach(server_id, invalid, received.fault or "", (received.envelope,))
        return PublishAnswer(None, (breach,))
    if envelope.client.client_envelope != published.client_envelope:
        return PublishAnswer(None, doubt="another payload than what was published")
    doubt, breaches = _judge_time(envelope, published, server_id, now_ns)
    if received is not None and depends_on_itself(received):
        reason = "it depends on itself or a later one"
        breaches.append(
            Breach(server_id, Misbehavior.CAUSAL_ORDERING, reason, (received.envelope,))
        )
    return PublishAnswer(envelope, tuple(breaches), doubt)


def _judge_time(
    envelope: VerifiedEnvelope, published: Published, server_id: int, now_ns: int
) -> tuple[str, list[Breach]]:
    """Return why an envelope's time lets the answer not count, and a time ahead as a breach."""
    earliest_ns, latest_ns = published.first_sent_ns - _APART_NS, now_ns + _APART_NS
    of_chain = envelope.transaction_hash is not None
    time_ns = envelope.originator_ns
    if of_chain:
        # The clock is the chain's: the envelope's own time is up to two seconds later (ADR 45).
        time_ns = block_timestamp(time_ns) * NANOSECONDS_PER_SECOND
    is_ahead = time_ns > now_ns + _AHEAD_NS
    if earliest_ns <= time_ns <= latest_ns and not is_ahead:
        return "", []
    seconds = (time_ns - now_ns) / NANOSECONDS_PER_SECOND
    reason = f"its time is {seconds:+.0f} s from this clock"
    if not is_ahead:
        return reason, []
    kind = Misbehavior.BLOCKCHAIN_INCONSISTENCY if of_chain else Misbehavior.OUT_OF_ORDER
    return reason, [Breach(server_id, kind, reason, (envelope.envelope,))]

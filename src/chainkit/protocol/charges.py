"""A payer's debt for one envelope (XIP-69): its PayerEnvelope's bytes, and days.

The days are those that the payer declares, or the default of the kind; also where days are declared
with a signature that is not the payer's. An originator that keeps an
envelope for longer is paid no more; an originator that lets it expire earlier is paid for fewer
days. An envelope that breaks a rule of publishing is nobody's debt: its payer may have meant
another node. A charge follows from the bytes that the originator signed, so every node computes the
same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from chainkit.protocol.publish_rules.judgement import PublishRequest
from chainkit.protocol.retention import DEFAULT_RETENTION_DAYS
from chainkit.signatures import keccak256
from chainkit.types import NANOSECONDS_PER_SECOND

ADDRESS_LENGTH: Final = 20

_DAY_NS: Final = 24 * 60 * 60 * NANOSECONDS_PER_SECOND


class Charge(NamedTuple):
    """The debt for one envelope."""

    payer: bytes
    """The address of 20 bytes; empty where nobody owes anything."""
    kind: int
    """The first byte of the topic; 0 where nobody owes anything."""
    bytes: int
    days: int


NO_CHARGE: Final = Charge(b"", 0, 0, 0)


def declared_days(publish: PublishRequest) -> int:
    """Return for how many days the payer of an originator's payload wants it kept."""
    return publish.retention_days or DEFAULT_RETENTION_DAYS[publish.client.kind]


def charge_of(
    publish: PublishRequest, originator_ns: int = 0, expires_at: int | None = None
) -> Charge:
    """Return the cost of an accepted payload.

    ``originator_ns`` is the envelope's time, and ``expires_at`` its end in seconds since 1970; None
    where the envelope never expires, or is to be kept for all declared days.
    """
    days = declared_days(publish)
    if expires_at is not None:
        lives_ns = expires_at * NANOSECONDS_PER_SECOND - originator_ns
        days = max(0, min(days, -(-lives_ns // _DAY_NS)))
    kind, size = int(publish.client.kind), len(publish.payer_envelope)
    return Charge(_address_of(publish.payer_key), kind, size, days)


# Few payers pay for many payloads.
@lru_cache(maxsize=1024)
def _address_of(payer_key: bytes) -> bytes:
    return keccak256(payer_key[1:])[-ADDRESS_LENGTH:]

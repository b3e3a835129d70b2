"""Envelopes that nodes originate, as honest ones and others sign them, and reports of them.

::

    history = [signed(100, 1), signed(100, 2, time_ns=NOW_NS - 5)]
    report(100, Misbehavior.OUT_OF_ORDER, *history)
"""

from __future__ import annotations

from collections.abc import Mapping

from chainkit.misbehavior.report import Report
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.signatures import SigningKey
from chainkit.types import NANOSECONDS_PER_SECOND
from support import mls, publishes
from support.audit.identities import key_of

SECOND = NANOSECONDS_PER_SECOND
NOW_NS = mls.SECONDS * SECOND
"""The judges' clock; key packages of ``publishes`` are valid then."""

ACCUSED, OTHER = 100, 200
KEYS = {each: key_of(each).public_key for each in (ACCUSED, OTHER, 300)}
"""The registry's."""


def signed(
    node_id: int,
    sequence_id: int,
    time_ns: int = NOW_NS,
    payer_envelope: bytes | None = None,
    expiry: int | None = None,
    key: SigningKey | None = None,
    seen: Mapping[int, int] | None = None,
) -> bytes:
    """An OriginatorEnvelope; by default with a valid group message that has ``seen`` others."""
    paid = payer_envelope or message(node_id, seen)
    envelope = OriginatedEnvelope(node_id, sequence_id, time_ns, paid, expiry)
    return sign_originated(unsigned_originated(envelope), key or key_of(node_id))


def message(node_id: int, seen: Mapping[int, int] | None = None) -> bytes:
    """A paid group message for a node."""
    return publishes.paid(publishes.group_message(seen=seen, target=node_id), node_id)


def report(
    node_id: int, misbehavior: Misbehavior, *envelopes: bytes, reported_ns: int = NOW_NS
) -> Report:
    """A report of a safety failure, taken apart."""
    return Report(node_id, misbehavior, reported_ns, True, envelopes)

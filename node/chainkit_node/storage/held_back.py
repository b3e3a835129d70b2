"""Messages that readers do not get before the chain's payload that they name (ADR 55).

Each node reads the chain by itself, and follows a reorg in steps, so a message of another node, or
one from before the reorg, may be here before the commit that it names. Today's clients that read
such a message in a page ask without end for what lies behind the commit, and never get the commit.
Those that read it in a stream lose it where a later message of its originator comes before the
commit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Final

from sqlalchemy import Connection

from chainkit.protocol.proto import envelopes_pb2
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, NANOSECONDS_PER_SECOND, TopicKind
from chainkit_indexer.storage.envelopes import StoredEnvelope, read_last_on_topics

LONGEST_NS: Final = 600 * NANOSECONDS_PER_SECOND
"""The age up to which a message is left out: what it names may never come."""

_BEHIND_ALL: Final = 2**63
"""A sequence id above all that are stored."""
_TOPICS_AT_ONCE: Final = 200
"""Topics that one statement looks for."""


def without_held_back(
    connection: Connection, rows: Sequence[StoredEnvelope], cursor: Mapping[int, int], now_ns: int
) -> tuple[Sequence[StoredEnvelope], Collection[int]]:
    """Return rows without messages that wait, and the originators of these.

    A group message waits that names a later payload of the chain than its topic has, and than the
    reader's ``cursor`` names. All that its originator has behind it waits, too: a cursor cannot
    leave it out. Those of one originator are in the order of their sequence ids; ``now_ns`` is in
    nanoseconds since 1970.
    """
    seen = cursor.get(BLOCKCHAIN_ORIGINATOR_ID, 0)
    waiting = [row for row in rows if waits(row, seen, now_ns)]
    last = _last_of_chain(connection, {row.topic for row in waiting})
    first: dict[int, int] = {}
    for row in waiting:
        if waits(row, last[row.topic], now_ns):
            first.setdefault(row.originator_id, row.sequence_id)
    ready = [row for row in rows if row.sequence_id < first.get(row.originator_id, _BEHIND_ALL)]
    return ready, first.keys()


def waits(row: StoredEnvelope, seen: int, now_ns: int) -> bool:
    """Return whether a group message names a later payload of the chain than ``seen``.

    One of a certain age does not wait. ``now_ns`` is in nanoseconds since 1970.
    """
    is_new = row.originator_ns > now_ns - LONGEST_NS
    is_of_node = row.originator_id != BLOCKCHAIN_ORIGINATOR_ID
    may_wait = is_new and is_of_node and TopicKind.GROUP_MESSAGE.matches(row.topic)
    return may_wait and named_commit(row.envelope) > seen


@lru_cache(maxsize=16)
def named_commit(envelope: bytes) -> int:
    """Return the sequence id of the chain's payload that a stored message names, 0 for none.

    Cached: a message goes to many streams at once. Few, because each may have megabytes.
    """
    last_seen = client_envelope(envelope).aad.last_seen
    return last_seen.node_id_to_sequence_id.get(BLOCKCHAIN_ORIGINATOR_ID, 0)


def client_envelope(envelope: bytes) -> envelopes_pb2.ClientEnvelope:
    """Return the client's part of a stored envelope.

    The envelope was judged when it was stored. The strict reader (ADR 54) takes several times as
    long.
    """
    signed = envelopes_pb2.OriginatorEnvelope.FromString(envelope)
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope.FromString(
        signed.unsigned_originator_envelope
    )
    payer = envelopes_pb2.PayerEnvelope.FromString(unsigned.payer_envelope)
    return envelopes_pb2.ClientEnvelope.FromString(payer.unsigned_client_envelope)


def _last_of_chain(connection: Connection, topics: Collection[bytes]) -> Mapping[bytes, int]:
    last: dict[bytes, int] = {}
    asked = sorted(topics)
    for start in range(0, len(asked), _TOPICS_AT_ONCE):
        some = asked[start : start + _TOPICS_AT_ONCE]
        found = read_last_on_topics(connection, some, [BLOCKCHAIN_ORIGINATOR_ID])
        last |= {topic: sequence_id for topic, (sequence_id, _) in found.items()}
    return last

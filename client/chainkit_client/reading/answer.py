"""Compares a node's answer with held envelopes: finds new envelopes and broken rules (§3.3.4).

Gaps are normal on one topic: the other ids belong to other topics. Later messages that depend on a
missing message, and other nodes, reveal the missing message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

from chainkit.errors import MalformedAnswer, MalformedData
from chainkit.misbehavior.received_batch import (
    HeldEnvelope,
    HeldLog,
    Offence,
    as_held,
    compare_batch,
)
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.authenticated_data import AadBinding
from chainkit.protocol.chain_time import block_timestamp
from chainkit.protocol.envelope import stated_place
from chainkit.protocol.received_envelope import ReceivedEnvelope
from chainkit.types import Place
from chainkit_client.breach import Breach
from chainkit_client.reading.verified import (
    Keys,
    Read,
    VerifiedEnvelope,
    Void,
    read_envelope,
)

ReadEnvelope = Callable[[bytes, int, Keys], Read]
"""The signature of ``read_envelope``."""


class Held(Protocol):
    """The client's envelopes of a topic."""

    def log(self, originator_id: int) -> HeldLog:
        """Return the log of one originator."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A served payload of the chain that differs from the held one: a reorg, or a lie."""

    held: HeldEnvelope
    served: VerifiedEnvelope


@dataclass(slots=True)
class Reading:
    """The outcome of one answer."""

    accepted: list[VerifiedEnvelope] = field(default_factory=list)
    """New envelopes that keep all rules, in the order of the answer."""
    breaches: list[Breach] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    void: dict[Place, Void] = field(default_factory=dict)
    """New envelopes that must not be applied."""
    refused: list[MalformedData] = field(default_factory=list)
    """Faults of the answer that the node can deny: nobody signed these."""
    second: list[VerifiedEnvelope] = field(default_factory=list)
    """Envelopes that their originator signed under the id of another one: the breach has both, and
    some people may have got this one alone."""
    repeated: int = 0
    """The number of envelopes that were held, or came twice."""


def read_answer(
    envelopes: Iterable[bytes],
    topic: bytes | None,
    server_id: int,
    keys: Keys,
    held: Held,
    now_ns: int,
    read_one: ReadEnvelope = read_envelope,
) -> Reading:
    """Verify a node's answer, and compare the answer with the held envelopes.

    ``topic`` is the topic of the query, None for an originator's log; ``now_ns`` is the client's
    clock in nanoseconds since 1970. Nothing is raised: all faults are in the result.
    """
    reading, reads = Reading(), []
    for data in envelopes:
        try:
            read = read_one(data, server_id, keys)
            _check_topic(read.envelope, topic, server_id)
        except MalformedData as error:
            reading.refused.append(error)
        else:
            reads.append(read)
    _check_order(reads, server_id, reading)
    new = {
        **_judged_originated(reads, held, now_ns, reading),
        **_judged_chain(reads, held, server_id, keys.sparse_ids, reading),
    }
    reading.breaches += [each.breach for each in reads if each.breach is not None]
    reading.void.update(each.void for each in reads if each.void is not None)
    for place in map(_place, reads):
        if place in new:
            _accept(new.pop(place), reading)
    return reading


def _accept(envelope: VerifiedEnvelope, reading: Reading) -> None:
    if not _is_bound(envelope):
        # The node cannot check this: the payer signed these bytes.
        reason = "its author authenticated another target, topic or cursor"
        reading.void[envelope.place] = Void(envelope.held, reason)
    else:
        reading.accepted.append(envelope)


def _is_bound(envelope: VerifiedEnvelope) -> bool:
    return envelope.binding is not AadBinding.BROKEN


def _check_topic(envelope: VerifiedEnvelope | None, topic: bytes | None, server_id: int) -> None:
    if envelope is not None and topic is not None and envelope.topic != topic:
        subject, got = f"answer of node {server_id}", f"one of topic 0x{envelope.topic.hex()}"
        raise MalformedAnswer(subject, f"envelopes of topic 0x{topic.hex()}", got)


def _place(read: Read) -> Place | None:
    return None if read.envelope is None else read.envelope.place


def _check_order(reads: Iterable[Read], server_id: int, reading: Reading) -> None:
    """Check that the ids of each originator rise in the answer; repeated envelopes do not count."""
    last: dict[int, ReceivedEnvelope | VerifiedEnvelope] = {}
    seen: set[bytes] = set()
    for read in reads:
        stated = read.received or read.envelope
        if stated is None or stated.digest in seen:
            continue
        seen.add(stated.digest)
        earlier = last.setdefault(stated.originator_id, stated)
        if stated.sequence_id < earlier.sequence_id:
            reason = f"{stated.sequence_id} came after {earlier.sequence_id}"
            if stated.originator_id == server_id:
                evidence = (stated.envelope, earlier.envelope)
                breach = Breach(server_id, Misbehavior.OUT_OF_ORDER, reason, evidence)
                reading.breaches.append(breach)
            else:
                # The node did not sign the order of the answer, and can deny it.
                subject = f"answer of node {server_id}"
                expected = f"rising ids of originator {stated.originator_id}"
                reading.refused.append(MalformedAnswer(subject, expected, reason))
        else:
            last[stated.originator_id] = stated


def _judged_originated(
    reads: Iterable[Read], held: Held, now_ns: int, reading: Reading
) -> Mapping[Place, VerifiedEnvelope]:
    """Return the new envelopes of originators."""
    by_originator: dict[int, list[ReceivedEnvelope]] = {}
    verified: dict[bytes, VerifiedEnvelope] = {}
    for read in reads:
        if read.received is not None:
            by_originator.setdefault(read.received.originator_id, []).append(read.received)
            if read.envelope is not None:
                verified[read.envelope.digest] = read.envelope
    new = {}
    for originator_id, received in by_originator.items():
        judged = compare_batch(received, held.log(originator_id), now_ns, is_direct=False)
        reading.breaches += map(_breach, judged.offences)
        reading.repeated += judged.repeated
        others = (verified.get(each.other.digest) for each in judged.disputes)
        reading.second += [each for each in others if each and _is_bound(each)]
        for each in (*judged.new, *judged.late):
            place = originator_id, each.sequence_id
            if each.fault is not None:
                reading.void[place] = Void(as_held(each), each.fault)
            else:
                new[place] = verified[each.digest]
    return new


def _judged_chain(
    reads: Iterable[Read],
    held: Held,
    server_id: int,
    sparse_ids: Collection[int],
    reading: Reading,
) -> Mapping[Place, VerifiedEnvelope]:
    """Return the new payloads of the chain; the answering node vouches for each payload."""
    served: dict[Place, VerifiedEnvelope] = {}
    for read in reads:
        envelope = read.envelope
        if envelope is None or read.received is not None:
            continue
        first = served.setdefault(envelope.place, envelope)
        if first.digest != envelope.digest:
            reason = f"two different payloads {envelope.sequence_id} of the chain"
            reading.breaches.append(_inconsistent(server_id, reason, envelope, first))
        elif first is not envelope:
            reading.repeated += 1
    for lower, higher in pairwise(sorted(served.values(), key=lambda each: each.place)):
        # Sparse ids do not rise with the blocks.
        is_in_order = lower.originator_id not in sparse_ids
        is_same_log = lower.originator_id == higher.originator_id and is_in_order
        # Within a second the times may fall: ADR 45.
        earlier, later = map(block_timestamp, (lower.originator_ns, higher.originator_ns))
        if is_same_log and earlier > later:
            reason = f"block time goes back from {lower.sequence_id} to {higher.sequence_id}"
            reading.breaches.append(_inconsistent(server_id, reason, higher, lower))
    new = {}
    for place, envelope in served.items():
        known = held.log(envelope.originator_id).at(envelope.sequence_id)
        if known is None:
            new[place] = envelope
        elif known.digest == envelope.digest:
            reading.repeated += 1
        else:
            reading.conflicts.append(Conflict(known, envelope))
    return new


def _breach(offence: Offence) -> Breach:
    ids = [str(stated_place(each)[1]) for each in offence.envelopes]
    return Breach(
        offence.node_id, offence.misbehavior, f"envelope {' beside '.join(ids)}", offence.envelopes
    )


def _inconsistent(
    server_id: int, reason: str, later: VerifiedEnvelope, earlier: VerifiedEnvelope
) -> Breach:
    kind = Misbehavior.BLOCKCHAIN_INCONSISTENCY
    return Breach(server_id, kind, reason, (later.envelope, earlier.envelope))

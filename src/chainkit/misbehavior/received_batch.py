"""Compares received envelopes with their originator's stored ones: new, known, late, or evidence.

No I/O, no clock. The bytes of each envelope were verified before (``read_received``); here they are
compared with their neighbors (XIP-49 §3.2.7). An envelope that breaks a rule is reported, and still
stored. Only a second envelope under a sequence id is not stored in the log: the first one stays,
and both are kept as evidence.

A time counts only where it falls, as §3.2.7 says: two envelopes with one time are no evidence,
though an originator gives each a later time than the one before (§3.3.5).

A gap counts against the originator only in its own stream, and only where what is missing cannot
have expired: it is younger than the shortest retention. An id that no log can have reached is
evidence, and not stored: all who compare logs would have to deal with the ids before it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.received_envelope import (
    LEAST_RETENTION_SECONDS,
    MOST_SECONDS_AHEAD,
    ReceivedEnvelope,
    depends_on_itself,
)
from chainkit.types import NANOSECONDS_PER_SECOND

_AHEAD_NS: Final = MOST_SECONDS_AHEAD * NANOSECONDS_PER_SECOND
_RETENTION_NS: Final = LEAST_RETENTION_SECONDS * NANOSECONDS_PER_SECOND
MOST_IDS_AHEAD: Final = 1_000_000
"""How far an id may lie behind the last one that is held, where nothing between can have expired:
peers hand out a log in its order."""

_MOST_IDS_PER_SECOND: Final = 10_000
"""More than an originator signs. No id is above what this rate reaches since 1970."""

_CLOCKS_NS: Final = 2 * _AHEAD_NS
"""How far two honest clocks, and the times by them, may lie apart."""


@dataclass(frozen=True, slots=True)
class HeldEnvelope:
    """A stored envelope, with the fields that are compared."""

    sequence_id: int
    originator_ns: int
    digest: bytes
    """32 bytes: the digest that the originator signed."""
    envelope: bytes


class HeldLog(Protocol):
    """The stored envelopes of one originator, within one transaction."""

    def last(self) -> HeldEnvelope | None:
        """Return the one of the highest id."""

    def at(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the envelope of an id."""

    def before(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the one of the highest id below an id."""

    def after(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the one of the lowest id above an id."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Sequence ids that are missing between two envelopes, both ends included."""

    originator_id: int
    first_id: int
    last_id: int
    is_omitted: bool
    """The originator itself left these ids out, and they cannot have expired."""


@dataclass(frozen=True, slots=True)
class Offence:
    """Evidence against an originator."""

    node_id: int
    misbehavior: Misbehavior
    envelopes: tuple[bytes, ...]
    """The later one of two comes first."""


@dataclass(frozen=True, slots=True)
class Dispute:
    """A second envelope under a sequence id under which another one is stored."""

    held: HeldEnvelope
    other: ReceivedEnvelope


@dataclass(slots=True)
class BatchOutcome:
    """The outcome of a batch."""

    new: list[ReceivedEnvelope] = field(default_factory=list)
    """Envelopes to be stored behind all others, in rising order."""
    late: list[ReceivedEnvelope] = field(default_factory=list)
    """To be stored where a gap was."""
    gaps: list[Gap] = field(default_factory=list)
    disputes: list[Dispute] = field(default_factory=list)
    offences: list[Offence] = field(default_factory=list)
    repeated: int = 0
    """How many were stored already."""
    far: int = 0
    """How many envelopes are not to be stored, because no log can have reached their ids."""


def compare_batch(
    received: Sequence[ReceivedEnvelope], held: HeldLog, now_ns: int, is_direct: bool
) -> BatchOutcome:
    """Compare envelopes of one originator, in the order in which they came.

    ``is_direct`` says that they came in the originator's own stream: then its order counts.
    ``now_ns`` is this node's clock in nanoseconds since 1970.
    """
    batch = _Batch(held, now_ns, is_direct)
    for each in received:
        batch.take(each)
    return batch.outcome


class Timed(Protocol):
    """An envelope, with the fields that its time concerns."""

    @property
    def originator_ns(self) -> int:
        """Nanoseconds since 1970, by its originator's clock."""


def may_have_expired(before: Timed | None, now_ns: int) -> bool:
    """Return whether what is missing behind an envelope may be older than the shortest retention.

    A missing envelope is as old as the one before the gap, or younger; without one, nobody knows.
    """
    return before is None or before.originator_ns <= now_ns - _RETENTION_NS + _CLOCKS_NS


class _Batch:
    def __init__(self, held: HeldLog, now_ns: int, is_direct: bool) -> None:
        self.outcome = BatchOutcome()
        self._held = held
        self._now_ns = now_ns
        self._is_direct = is_direct
        self._last = held.last()
        self._taken: dict[int, HeldEnvelope] = {}
        self._ids: list[int] = []

    def take(self, received: ReceivedEnvelope) -> None:
        if self._last is not None and received.sequence_id <= self._last.sequence_id:
            known = self._at(received.sequence_id)
            if known is not None:
                self._take_known(known, received)
                return
            self._take_late(received)
        elif self._is_far(received):
            self._refuse_far(received)
            return
        else:
            self._take_new(received)
        self._check_alone(received)
        self._taken[received.sequence_id] = as_held(received)
        insort(self._ids, received.sequence_id)

    def _at(self, sequence_id: int) -> HeldEnvelope | None:
        return self._taken.get(sequence_id) or self._held.at(sequence_id)

    def _take_known(self, known: HeldEnvelope, received: ReceivedEnvelope) -> None:
        if known.digest == received.digest:
            self.outcome.repeated += 1
            return
        self.outcome.disputes.append(Dispute(known, received))
        self._accuse(received, Misbehavior.DUPLICATE_SEQUENCE_ID, known.envelope)

    def _take_late(self, received: ReceivedEnvelope) -> None:
        self.outcome.late.append(received)
        before = self._neighbor(received.sequence_id, is_before=True)
        after = self._neighbor(received.sequence_id, is_before=False)
        if before is not None and before.originator_ns > received.originator_ns:
            self._accuse(received, Misbehavior.OUT_OF_ORDER, before.envelope)
        elif after is not None and after.originator_ns < received.originator_ns:
            evidence = after.envelope, received.envelope
            self._add(received.originator_id, Misbehavior.OUT_OF_ORDER, evidence)

    def _neighbor(self, sequence_id: int, is_before: bool) -> HeldEnvelope | None:
        """Return the nearest envelope below or above an id, of the database or of the batch."""
        place = bisect_left(self._ids, sequence_id)
        if is_before:
            stored = self._held.before(sequence_id)
            taken = self._taken[self._ids[place - 1]] if place > 0 else None
            nearest = max
        else:
            stored = self._held.after(sequence_id)
            place += place < len(self._ids) and self._ids[place] == sequence_id
            taken = self._taken[self._ids[place]] if place < len(self._ids) else None
            nearest = min
        found = [each for each in (stored, taken) if each is not None]
        return nearest(found, key=lambda each: each.sequence_id) if found else None

    def _is_far(self, received: ReceivedEnvelope) -> bool:
        if self._is_impossible(received):
            return True
        last = self._last.sequence_id if self._last else 0
        is_ahead = received.sequence_id > last + MOST_IDS_AHEAD
        return is_ahead and not may_have_expired(self._last, self._now_ns)

    def _is_impossible(self, received: ReceivedEnvelope) -> bool:
        seconds = (self._now_ns + _AHEAD_NS) // NANOSECONDS_PER_SECOND
        return received.sequence_id > seconds * _MOST_IDS_PER_SECOND

    def _refuse_far(self, received: ReceivedEnvelope) -> None:
        # Another node that lacks envelopes itself may hand on an id that its originator has
        # reached.
        is_offence = self._is_direct or self._is_impossible(received)
        if is_offence and not self.outcome.far:
            self._accuse(received, Misbehavior.OUT_OF_ORDER, *_evidence(self._last))
        self.outcome.far += 1

    def _take_new(self, received: ReceivedEnvelope) -> None:
        last = self._last
        self.outcome.new.append(received)
        first_missing = last.sequence_id + 1 if last else 1
        is_omitted = False
        if received.sequence_id > first_missing:
            is_omitted = self._is_direct and not may_have_expired(last, self._now_ns)
            missing = first_missing, received.sequence_id - 1
            self.outcome.gaps.append(Gap(received.originator_id, *missing, is_omitted))
        if is_omitted or (last is not None and last.originator_ns > received.originator_ns):
            self._accuse(received, Misbehavior.OUT_OF_ORDER, *_evidence(last))
        self._last = as_held(received)

    def _check_alone(self, received: ReceivedEnvelope) -> None:
        if received.originator_ns > self._now_ns + _AHEAD_NS:
            before = self._neighbor(received.sequence_id, is_before=True)
            self._accuse(received, Misbehavior.OUT_OF_ORDER, *_evidence(before))
        if received.is_offence:
            self._accuse(received, Misbehavior.INVALID_PAYLOAD)
        if depends_on_itself(received):
            self._accuse(received, Misbehavior.CAUSAL_ORDERING)

    def _accuse(self, received: ReceivedEnvelope, misbehavior: Misbehavior, *others: bytes) -> None:
        self._add(received.originator_id, misbehavior, (received.envelope, *others))

    def _add(self, node_id: int, misbehavior: Misbehavior, envelopes: tuple[bytes, ...]) -> None:
        self.outcome.offences.append(Offence(node_id, misbehavior, envelopes))


def _evidence(held: HeldEnvelope | None) -> Iterable[bytes]:
    return () if held is None else (held.envelope,)


def as_held(received: ReceivedEnvelope) -> HeldEnvelope:
    """Return an envelope with the fields that others are compared with."""
    return HeldEnvelope(
        received.sequence_id, received.originator_ns, received.digest, received.envelope
    )

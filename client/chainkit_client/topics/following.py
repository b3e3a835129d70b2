"""Decides for a topic which envelopes may be applied, which wait, and what to ask for (§3.3.5).

An envelope waits for each place that its author had seen and that this client lacks. The client
asks for the exact range of a missing place: first the originator, then other nodes. The place is

- received after all: the waiting envelopes are applied;
- an envelope of another topic, which an author may name as well: no envelope waits for the place;
- missing after PATIENCE_SECONDS: envelopes that depend on the place are applied with a warning. The
  originator of such an envelope, which accepted the dependency, is accused where both it and the
  place's originator lack exactly this place by their own answers, and it cannot have expired.

An originator's envelopes are applied in the order of their ids, so a waiting envelope delays later
envelopes of its originator, for PATIENCE_SECONDS at most.

The client also asks for a place that a topic head lists (``heads``); such a place delays later
envelopes of its originator, too. If no node has the envelope within PATIENCE_SECONDS, the
originator withholds an envelope that its head lists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from chainkit.misbehavior.received_batch import may_have_expired
from chainkit.misbehavior.topic_evidence import TopicEvidence
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.topic_heads import Entry
from chainkit.types import (
    BLOCKCHAIN_ORIGINATOR_ID,
    NANOSECONDS_PER_SECOND,
    Cursor,
    Place,
)
from chainkit_client.breach import Breach
from chainkit_client.ordering.causal import Policy, causally_ordered
from chainkit_client.ordering.ranges import RangeRequest, range_requests
from chainkit_client.reading.answer import Conflict, read_answer
from chainkit_client.reading.held import MemoryLogs
from chainkit_client.reading.known import KnownReads
from chainkit_client.reading.verified import Keys, VerifiedEnvelope
from chainkit_client.topics.cycles import accused_of_cycle
from chainkit_client.topics.heads import HeadTaken, HeldHeads, SignedHead

PATIENCE_SECONDS: Final = 10.0
"""How long envelopes wait for a missing place."""

MOST_WAITING: Final = 10_000
"""Envelopes that wait at a time: with more, no envelope waits for a missing place."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The next envelope in the order."""

    envelope: VerifiedEnvelope
    without: tuple[Place, ...] = ()
    """Dependencies of the envelope that were given up: a warning to store with the envelope."""
    is_copy: bool = False
    """Whether the same payload of another originator was applied before (§3.3.6): not shown."""


@dataclass(slots=True)
class Followed:
    """The outcome of an answer, or of passed time."""

    applied: list[Applied] = field(default_factory=list)
    accepted: list[VerifiedEnvelope] = field(default_factory=list)
    """New envelopes, applied or waiting."""
    breaches: list[Breach] = field(default_factory=list)
    second: list[VerifiedEnvelope] = field(default_factory=list)
    """Envelopes in the places of other ones: see ``reading.answer.Reading``."""
    conflicts: list[Conflict] = field(default_factory=list)
    """Payloads of the chain that differ from held ones: a reorg, or a lie."""
    refused: int = 0
    """Faults of the answer that the node can deny."""
    must_list: HeadTaken | None = None
    """A head that differs from the held envelopes: ask the node for the head's entries."""

    def add(self, more: Followed) -> None:
        """Add the outcome of what came later, except a head."""
        self.applied += more.applied
        self.accepted += more.accepted
        self.breaches += more.breaches
        self.second += more.second
        self.conflicts += more.conflicts
        self.refused += more.refused


class Topic:
    """One topic; not for several threads."""

    def __init__(
        self,
        topic: bytes,
        patience_seconds: float = PATIENCE_SECONDS,
        most_waiting: int = MOST_WAITING,
        doubted: Collection[bytes] = (),
        logs: MemoryLogs | None = None,
    ) -> None:
        """Begin with nothing; envelopes of the ``doubted`` digests are ignored.

        ``logs`` hold the envelopes, without one yet; those in memory unless others are given.
        """
        self.topic = topic
        self._patience_ns = int(patience_seconds * NANOSECONDS_PER_SECOND)
        self._most_waiting = most_waiting
        self.doubted = doubted
        """Digests of envelopes to ignore."""
        self._logs = MemoryLogs() if logs is None else logs
        self._reads = KnownReads()
        self._heads = HeldHeads(topic, self._logs)
        self._named: dict[Place, tuple[int, SignedHead]] = {}
        """Missing places of a head: the time since which each is missing, and the head."""
        self._waiting: dict[Place, VerifiedEnvelope] = {}
        self._missing: dict[Place, int] = {}
        """The time since which each place is missing, by the caller's clock in nanoseconds."""
        self._denied: dict[Place, set[int]] = {}
        """The nodes that were asked for a missing place, and answered that they lack it."""
        self._known: set[Place] = set()
        """Places that are applied, void, or of another topic: no envelope waits for these."""
        self._given_up: set[Place] = set()
        self._never_given: set[Place] = set()
        """Places that were given up, and that their originator says it has not given."""
        self._unnamed: dict[Place, tuple[Place, ...]] = {}
        """Applied envelopes that name such places. No payload names one of them: the originator of
        the place refuses it, for it might give the place to this payload (ADR 60)."""
        self._disputed: set[Place] = set()
        """Held places in which a head has another envelope, which is not received yet."""
        self._second: set[Place] = set()
        """Places of which two envelopes were received."""
        self._applied: dict[int, int] = {}
        self._void_of_chain: set[int] = set()
        """Ids of the chain's void payloads."""
        self._payloads: set[bytes] = set()
        self.read_again: Mapping[int, int] = {}
        """The first id to ask for again, although later ids are held, by originator."""

    @property
    def last_seen(self) -> Cursor:
        """The highest applied id of each originator, which new payloads carry as their cursor.

        A void payload of the chain counts, too, once nothing before it is waited for: nodes ask
        each message for the latest payload of the chain, and anybody may post a void one.
        """
        applied = self._applied.get(BLOCKCHAIN_ORIGINATOR_ID, 0)
        awaited = {*self._waiting, *self._missing, *self._named}
        before = min(
            (one for each, one in awaited if each == BLOCKCHAIN_ORIGINATOR_ID), default=inf
        )
        void = max((one for one in self._void_of_chain if one < before), default=0)
        seen = {**self._applied, BLOCKCHAIN_ORIGINATOR_ID: max(void, applied)}
        for (originator_id, number), named in self._unnamed.items():
            if seen[originator_id] >= number and not self._known.issuperset(named):
                below = self._logs.log(originator_id).before(number)
                seen[originator_id] = 0 if below is None else below.sequence_id
        return Cursor({each: number for each, number in seen.items() if number})

    @property
    def cursor(self) -> Cursor:
        """The highest id of each originator that nodes need not send again."""
        highest = self._logs.highest()
        again = {each: min(highest.get(each, 0), one - 1) for each, one in self.read_again.items()}
        return Cursor({**highest, **again})

    @property
    def waiting(self) -> Collection[VerifiedEnvelope]:
        """The envelopes that cannot be applied yet."""
        return self._waiting.values()

    @property
    def lacks_of_heads(self) -> bool:
        """Whether a head names an envelope that is not here, and that is still asked for."""
        return bool(self._named)

    def requests(self) -> list[RangeRequest]:
        """Return the ranges to ask for; ask the originator of each range first."""
        return range_requests({*self._missing, *self._named}, Cursor(dict(self._applied)))

    def missing(self) -> list[Place]:
        """Return the places that envelopes wait for, those first that the fewest nodes denied."""
        return sorted(self._missing, key=lambda each: (len(self._denied.get(each, ())), each))

    def disputed(self) -> list[Place]:
        """Return the held places in which a head has another envelope: ask for the other one."""
        return sorted(self._disputed)

    def is_wanted(self, place: Place) -> bool:
        """Return whether envelopes wait for a place, or a head has another envelope there."""
        return place in self._missing or place in self._disputed

    def lacks(self, place: Place, node_id: int) -> None:
        """Record that a node answered a question for a missing place without the place."""
        if place in self._missing:
            self._denied.setdefault(place, set()).add(node_id)

    def take(self, envelopes: Iterable[bytes], server_id: int, keys: Keys, now_ns: int) -> Followed:
        """Take a node's answer about the topic, and apply the next envelopes in the order.

        ``now_ns`` is the caller's clock since 1970.
        """
        followed = self.hold(envelopes, server_id, keys, now_ns)
        self._go_on(followed, now_ns)
        return followed

    def hold(self, envelopes: Iterable[bytes], server_id: int, keys: Keys, now_ns: int) -> Followed:
        """Take a node's answer, and apply nothing yet: another answer may fill the gaps.

        ``look`` applies the envelopes.
        """
        reading = read_answer(
            envelopes, self.topic, server_id, keys, self._logs, now_ns, self._reads.read
        )
        followed = Followed(
            breaches=list(reading.breaches),
            conflicts=list(reading.conflicts),
            refused=len(reading.refused),
            second=reading.second,
        )
        self._second.update(each.place for each in reading.second)
        self._disputed -= self._second
        for envelope in reading.accepted:
            if envelope.digest in self.doubted:
                continue
            self._logs.log(envelope.originator_id).hold(envelope.held)
            self._waiting[envelope.place] = envelope
            followed.accepted.append(envelope)
            self._stop_asking(envelope.place)
        for place, void in reading.void.items():
            self._logs.log(place[0]).hold(void.held)
            self._known.add(place)
            self._stop_asking(place)
            if place[0] == BLOCKCHAIN_ORIGINATOR_ID:
                self._void_of_chain.add(place[1])
        return followed

    def promise(self, envelopes: Iterable[VerifiedEnvelope]) -> None:
        """Take answers to publishes: a later head of the originator must have each one.

        An answer is not applied: its originator may have stored nothing.
        """
        for each in envelopes:
            self._heads.promise(each.originator_id, each.held)

    def promised(self) -> list[Place]:
        """Return the places of promised envelopes that nobody has served and no head decides."""
        return self._heads.promised()

    def expired(self) -> list[Place]:
        """Return the places of envelopes that expired before they came, as their nodes sign."""
        return self._heads.expired()

    def take_head(self, data: bytes, node_id: int, keys: Keys) -> Followed:
        """Take a node's SignedTopicHead. Raises MalformedData where the head is no evidence."""
        taken = self._heads.take(data, node_id, keys)
        return Followed(breaches=[*taken.breaches], must_list=None if taken.is_same else taken)

    def take_entries(
        self, head: SignedHead, entries: Sequence[Entry], after: int, now_ns: int
    ) -> Followed:
        """Take the entries of a head behind an id, as the node lists the entries.

        Raises MalformedData where the entries do not give the head's hash.
        """
        listed = self._heads.listed(head, entries, after, now_ns)
        for place in listed.missing:
            self._named.setdefault(place, (now_ns, head))
        self._disputed.update(each for each in listed.disputed if each not in self._second)
        # Envelopes that depend on expired ones need not wait.
        for place in listed.expired:
            self._known.add(place)
            self._stop_asking(place)
        return Followed(breaches=[*listed.breaches])

    def found_elsewhere(self, place: Place) -> None:
        """Record that an envelope exists and belongs to another topic; ``look`` goes on."""
        self._known.add(place)
        self._stop_asking(place)

    def look(self, now_ns: int) -> Followed:
        """Give up places that have been missing for too long."""
        followed = Followed()
        late = {
            place
            for place, since_ns in self._missing.items()
            if now_ns - since_ns >= self._patience_ns
        }
        self._given_up |= late
        never = {each for each in late if self._was_never(each, now_ns)}
        self._never_given |= {each for each in never if each[0] in self._denied.get(each, ())}
        if len(self._waiting) > self._most_waiting:
            self._given_up |= self._missing.keys()
        self._accuse(never, followed)
        self._accuse_of_withholding(now_ns, followed)
        self._go_on(followed, now_ns)
        return followed

    def _go_on(self, followed: Followed, now_ns: int) -> None:
        """Apply envelopes that may be applied, and record the places still missing."""
        order = causally_ordered(self._free(), self._is_known)
        self._apply(order.ordered, {}, followed)
        if order.cycles and not order.missing:
            # In a cycle no order is right: an author or an originator lied.
            for cycle in order.cycles:
                followed.breaches += accused_of_cycle(cycle)
            forced = causally_ordered(self._free(), self._is_known, Policy.APPLY)
            self._apply(forced.ordered, forced.unmet, followed)
        # A dependency that is held and delayed is not missing.
        missing = (place for place in order.missing if place not in self._waiting)
        self._missing = {place: self._missing.get(place, now_ns) for place in missing}
        self._denied = {
            each: nodes for each, nodes in self._denied.items() if each in self._missing
        }

    def _free(self) -> list[VerifiedEnvelope]:
        """Return waiting envelopes that no missing place of a head delays."""
        lowest: dict[int, int] = {}
        for originator_id, number in self._named:
            lowest[originator_id] = min(number, lowest.get(originator_id, number))
        return [
            each
            for each in self._waiting.values()
            if each.sequence_id < lowest.get(each.originator_id, each.sequence_id + 1)
        ]

    def _stop_asking(self, place: Place) -> None:
        """Stop asking for a place."""
        self._missing.pop(place, None)
        self._named.pop(place, None)

    def _is_known(self, originator_id: int, sequence_id: int) -> bool:
        place = originator_id, sequence_id
        return place in self._known or place in self._given_up

    def _apply(
        self,
        envelopes: Iterable[VerifiedEnvelope],
        unmet: Mapping[Place, Sequence[Place]],
        followed: Followed,
    ) -> None:
        for each in envelopes:
            del self._waiting[each.place]
            self._known.add(each.place)
            self._given_up.discard(each.place)
            highest = self._applied.get(each.originator_id, 0)
            self._applied[each.originator_id] = max(highest, each.sequence_id)
            given_up = [one for one in each.depends_on.items() if one in self._given_up]
            never = tuple(self._never_given.intersection(given_up))
            if never:
                self._unnamed[each.place] = never
            without = tuple(sorted({*given_up, *unmet.get(each.place, ())}))
            payload = each.payload_hash
            followed.applied.append(Applied(each, without, payload in self._payloads))
            self._payloads.add(payload)

    def _accuse_of_withholding(self, now_ns: int, followed: Followed) -> None:
        """Record the heads that list envelopes nobody serves; no report has a type for this."""
        for place, (since_ns, head) in list(self._named.items()):
            if now_ns - since_ns >= self._patience_ns:
                del self._named[place]
                reason = f"its topic head names {place[1]}, which nobody serves"
                evidence = TopicEvidence((head.data,))
                followed.breaches.append(Breach(place[0], None, reason, (), evidence))

    def _was_never(self, place: Place, now_ns: int) -> bool:
        """Return whether a missing place is none that nodes removed because it had expired."""
        originator_id, number = place
        through = self._heads.through(originator_id)
        if through is not None and through < number:
            return True
        return not may_have_expired(self._logs.log(originator_id).before(number), now_ns)

    def _accuse(self, given_up: Collection[Place], followed: Followed) -> None:
        """Accuse the originators of envelopes that depend on places which never were."""
        for each in self._waiting.values():
            lacking = [
                place
                for place in each.depends_on.items()
                if place in given_up
                and {place[0], each.originator_id} <= self._denied.get(place, set())
            ]
            # The chain orders the payloads of clients, and checks no dependency.
            if lacking and each.transaction_hash is None:
                shown = ", ".join(f"{number} of originator {one}" for one, number in lacking[:3])
                reason = f"{each.sequence_id} depends on {shown}, which nobody has"
                kind = Misbehavior.CAUSAL_ORDERING
                followed.breaches.append(Breach(each.originator_id, kind, reason, (each.envelope,)))

"""The decisions about a topic: what may be applied, what waits, and what is asked for (§3.3.5).

An envelope waits for each place that its author had seen and that is not here. Such a place is
asked for by its exact range: first at its originator, then at others. It may turn out to be

- here after all, and what waited is applied;
- an envelope of another topic, which an author may name as well: nobody waits for it any more;
- nowhere, when the patience is over: what depends on it is applied with a warning, and its
  originator, which let the dependency pass, is accused.

An originator's envelopes are applied in the order of their ids, so one that waits holds up its
later ones, for as long as the patience at most.

A place that a topic head names (``heads``) is asked for, too, and holds up later ones of its
originator. If nobody has it within the patience, its originator withholds what it has signed for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from chainkit.misbehavior.evidence import MOST_ENVELOPES
from chainkit.misbehavior.topic_evidence import TopicEvidence
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.topic_heads import Entry
from chainkit.types import NANOSECONDS_PER_SECOND, Cursor, Place
from chainkit_client.breach import Breach
from chainkit_client.ordering.causal import Policy, causally_ordered
from chainkit_client.ordering.ranges import RangeRequest, range_requests
from chainkit_client.reading.answer import Conflict, read_answer
from chainkit_client.reading.held import MemoryLogs
from chainkit_client.reading.known import KnownReads
from chainkit_client.reading.verified import Keys, VerifiedEnvelope
from chainkit_client.topics.heads import HeadTaken, HeldHeads, SignedHead

PATIENCE_SECONDS: Final = 10.0
"""For how long a missing place is waited for."""

MOST_WAITING: Final = 10_000
"""Envelopes that wait at a time: with more, nothing that is missing is waited for."""

_MOST_SEARCHED: Final = 500
"""Envelopes of a cycle in which a way around is looked for: that takes the square of it."""


@dataclass(frozen=True, slots=True)
class Applied:
    """An envelope that is next in the order."""

    envelope: VerifiedEnvelope
    without: tuple[Place, ...] = ()
    """Places that it depends on and that were given up: a warning, to be kept with it."""
    is_copy: bool = False
    """The same payload was applied before, from another originator (§3.3.6): nobody shows it."""


@dataclass(slots=True)
class Followed:
    """The outcome of an answer, or of time that went by."""

    applied: list[Applied] = field(default_factory=list)
    accepted: list[VerifiedEnvelope] = field(default_factory=list)
    """New ones, whether they are applied or wait."""
    breaches: list[Breach] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    """Payloads of the chain that are not as before: a reorg, or a lie."""
    refused: int = 0
    """Faults of the answer that its node can deny."""
    must_list: HeadTaken | None = None
    """A head that has something else than is here: its node is to list its entries."""


class Topic:
    """One topic; not for several threads."""

    def __init__(
        self,
        topic: bytes,
        patience_seconds: float = PATIENCE_SECONDS,
        most_waiting: int = MOST_WAITING,
        doubted: Collection[bytes] = (),
    ) -> None:
        """Begin with nothing; envelopes of the ``doubted`` digests are not taken."""
        self.topic = topic
        self._patience_ns = int(patience_seconds * NANOSECONDS_PER_SECOND)
        self._most_waiting = most_waiting
        self.doubted = doubted
        """Digests of envelopes that are not taken."""
        self._logs = MemoryLogs()
        self._reads = KnownReads()
        self._heads = HeldHeads(topic, self._logs)
        self._named: dict[Place, tuple[int, SignedHead]] = {}
        """Places that are in a head and not here, since when they are missed, and the head."""
        self._waiting: dict[Place, VerifiedEnvelope] = {}
        self._missing: dict[Place, int] = {}
        """Since when each place is missed, by the caller's clock in nanoseconds."""
        self._known: set[Place] = set()
        """Applied, void, or of another topic: nobody waits for them."""
        self._given_up: set[Place] = set()
        self._applied: dict[int, int] = {}
        self._payloads: set[bytes] = set()
        self.read_again: Mapping[int, int] = {}
        """By originator the first id that is asked for again, though later ones are here."""

    @property
    def last_seen(self) -> Cursor:
        """The highest id of each originator that was applied: it goes into what is published."""
        return Cursor(dict(self._applied))

    @property
    def cursor(self) -> Cursor:
        """The last id of each originator that is asked for no more: what is here, or waits."""
        highest = self._logs.highest()
        again = {each: min(highest.get(each, 0), one - 1) for each, one in self.read_again.items()}
        return Cursor({**highest, **again})

    @property
    def waiting(self) -> Collection[VerifiedEnvelope]:
        """Those that cannot be applied yet."""
        return self._waiting.values()

    def requests(self) -> list[RangeRequest]:
        """Return the ranges to ask for, each first at its originator."""
        return range_requests({*self._missing, *self._named}, self.last_seen)

    def take(self, envelopes: Iterable[bytes], server_id: int, keys: Keys, now_ns: int) -> Followed:
        """Take a node's answer about the topic, and apply what is next in the order.

        ``now_ns`` is the caller's clock since 1970.
        """
        followed = self.hold(envelopes, server_id, keys, now_ns)
        self._go_on(followed, now_ns)
        return followed

    def hold(self, envelopes: Iterable[bytes], server_id: int, keys: Keys, now_ns: int) -> Followed:
        """Take a node's answer, and apply nothing yet: another answer may fill what it leaves out.

        ``look`` applies.
        """
        reading = read_answer(
            envelopes, self.topic, server_id, keys, self._logs, now_ns, self._reads.read
        )
        followed = Followed(
            breaches=list(reading.breaches),
            conflicts=list(reading.conflicts),
            refused=len(reading.refused),
        )
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
        return followed

    def take_head(self, data: bytes, node_id: int, keys: Keys) -> Followed:
        """Take a node's SignedTopicHead. Raises MalformedData where nobody can be held to it."""
        taken = self._heads.take(data, node_id, keys)
        return Followed(breaches=[*taken.breaches], must_list=None if taken.is_same else taken)

    def take_entries(
        self, head: SignedHead, entries: Sequence[Entry], after: int, now_ns: int
    ) -> Followed:
        """Take the entries of a head behind an id, as its node lists them.

        Raises MalformedData where they are not those of the head.
        """
        listed = self._heads.listed(head, entries, after, now_ns)
        for place in listed.missing:
            self._named.setdefault(place, (now_ns, head))
        # Those that depend on them need not wait.
        for place in listed.expired:
            self._known.add(place)
            self._stop_asking(place)
        return Followed(breaches=[*listed.breaches])

    def found_elsewhere(self, places: Iterable[Place], now_ns: int) -> Followed:
        """Take note of envelopes that exist and belong to other topics."""
        followed = Followed()
        for place in places:
            self._known.add(place)
            self._stop_asking(place)
        self._go_on(followed, now_ns)
        return followed

    def look(self, now_ns: int) -> Followed:
        """Give up what was waited for too long."""
        followed = Followed()
        is_full = len(self._waiting) > self._most_waiting
        late = {
            place
            for place, since_ns in self._missing.items()
            if is_full or now_ns - since_ns >= self._patience_ns
        }
        self._given_up |= late
        self._accuse(late, followed)
        self._accuse_of_withholding(now_ns, followed)
        self._go_on(followed, now_ns)
        return followed

    def _go_on(self, followed: Followed, now_ns: int) -> None:
        """Apply what may be applied, and see what is missing then."""
        order = causally_ordered(self._free(), self._is_known)
        self._apply(order.ordered, {}, followed)
        if order.cycles and not order.missing:
            # Each of the cycle depends on another one of it: somebody lied, and no order is right.
            for cycle in order.cycles:
                self._accuse_cycle(cycle, followed)
            forced = causally_ordered(self._free(), self._is_known, Policy.APPLY)
            self._apply(forced.ordered, forced.unmet, followed)
        # Others may depend on what is here and held up.
        missing = (place for place in order.missing if place not in self._waiting)
        self._missing = {place: self._missing.get(place, now_ns) for place in missing}

    def _free(self) -> list[VerifiedEnvelope]:
        """Return those that wait, but for those behind a place of their originator in a head."""
        lowest: dict[int, int] = {}
        for originator_id, number in self._named:
            lowest[originator_id] = min(number, lowest.get(originator_id, number))
        return [
            each
            for each in self._waiting.values()
            if each.sequence_id < lowest.get(each.originator_id, each.sequence_id + 1)
        ]

    def _stop_asking(self, place: Place) -> None:
        """Ask for a place no more."""
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
            without = tuple(sorted({*given_up, *unmet.get(each.place, ())}))
            payload = each.payload_hash
            followed.applied.append(Applied(each, without, payload in self._payloads))
            self._payloads.add(payload)

    def _accuse_of_withholding(self, now_ns: int, followed: Followed) -> None:
        """Keep the heads that name what nobody serves: no report's type fits them."""
        for place, (since_ns, head) in list(self._named.items()):
            if now_ns - since_ns >= self._patience_ns:
                del self._named[place]
                reason = f"its topic head names {place[1]}, which nobody serves"
                evidence = TopicEvidence((head.data,))
                followed.breaches.append(Breach(place[0], None, reason, (), evidence))

    def _accuse(self, given_up: Collection[Place], followed: Followed) -> None:
        """Accuse the originators of what depends on places that nobody has."""
        for each in self._waiting.values():
            lacking = [place for place in each.depends_on.items() if place in given_up]
            # The chain orders what clients post, and judges no dependency.
            if lacking and each.transaction_hash is None:
                shown = ", ".join(f"{number} of originator {one}" for one, number in lacking[:3])
                reason = f"{each.sequence_id} depends on {shown}, which nobody has"
                kind = Misbehavior.CAUSAL_ORDERING
                followed.breaches.append(Breach(each.originator_id, kind, reason, (each.envelope,)))

    def _accuse_cycle(self, cycle: Sequence[VerifiedEnvelope], followed: Followed) -> None:
        """Accuse each originator that signed a part of a cycle.

        One of them lied, and the evidence does not show which. Those of one envelope are found when
        it is read. A cycle through a payload of the chain shows nothing: a reorg may have put it
        where its authors had seen another one.
        """
        if not 1 < len(cycle) <= _MOST_SEARCHED:
            return
        path = shortest_cycle(cycle)
        if not 1 < len(path) <= MOST_ENVELOPES:
            return
        if any(each.transaction_hash is not None for each in path):
            return
        evidence = tuple(each.envelope for each in path)
        signers = {each.originator_id for each in path}
        kind, reason = Misbehavior.CAUSAL_ORDERING, f"{len(path)} envelopes depend on each other"
        followed.breaches += [Breach(each, kind, reason, evidence) for each in sorted(signers)]


def shortest_cycle(cycle: Sequence[VerifiedEnvelope]) -> list[VerifiedEnvelope]:
    """Return a shortest way around a cycle that begins at its first envelope.

    Each depends on the next one, and the last one on the first. Nothing where the first one is held
    up by its originator's order alone.
    """
    first, came_from = cycle[0], {cycle[0].place: cycle[0]}
    border = [first]
    while border:
        following: list[VerifiedEnvelope] = []
        for each in border:
            for other in cycle:
                if each.depends_on.get(other.originator_id, 0) < other.sequence_id:
                    continue
                if other is first:
                    return _way(each, first, came_from)
                if other.place not in came_from:
                    came_from[other.place] = each
                    following.append(other)
        border = following
    return []


def _way(
    last: VerifiedEnvelope, first: VerifiedEnvelope, came_from: Mapping[Place, VerifiedEnvelope]
) -> list[VerifiedEnvelope]:
    way = [last]
    while way[-1] is not first:
        way.append(came_from[way[-1].place])
    return way[::-1]

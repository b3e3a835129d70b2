"""Envelopes with dependencies that are not held here, until these arrive or prove missing (§3.3.5).

No I/O, no clock. An honest originator takes a payload only if it holds all envelopes that the
payload names, so a dependency existed before. This node may lag behind, and reports nothing for a
minute. Then it asks the dependency's originator, and the originator that named the dependency. The
first answers up to which id it has originated; the second holds the dependency, and serves it. A
dependency that neither has is missing.

Nobody can be asked for the chain, or for a node that the registry does not list: such a dependency
is missing once the chain is final beyond the envelope's time without it. A reorg may have taken
back what an honest originator named, unseen by this node: so the report is a claim.

A node of another make has no comparisons, and is asked by queries (``repairing.comparison``). This
node needs no other's word about its own log: where the originator does not answer, either, what
this node never signed is missing after five minutes.

Two envelopes that name each other show that one of their originators lied. The liar does not hold
the envelope that it named, so nothing is reported before all dependencies of both are held or prove
missing. Where the dependencies came before anybody was asked, both are reported with both
envelopes, and readers decide.

Longer cycles are not looked for. A client names the last envelope of each originator that it has
applied, and so all that this envelope names. So a cycle of honest clients has two envelopes that
name each other. Readers find the cycles of dishonest clients (`chainkit_client.topics`); a node
would accuse each originator in the cycle of what one of them did.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from chainkit.misbehavior.received_batch import Offence
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.received_envelope import ReceivedEnvelope

PATIENCE_SECONDS: Final = 60.0
"""How long an envelope waits before a node is asked, and between two attempts."""

OWN_WORD_SECONDS: Final = 300.0
"""After so long, this node's own log decides alone: no originator escapes by not answering."""

LONGEST_SECONDS: Final = 3600.0
"""An envelope about which nobody answers for so long is forgotten."""

MOST_WAITING: Final = 100
"""Envelopes of one originator that wait at a time: the oldest is dropped where there are more."""

MOST_WAITING_BYTES: Final = 16 << 20
"""Bytes of these envelopes, but for a single larger one."""


@dataclass(frozen=True, slots=True)
class KnownLogs:
    """All that this node knows of originators' logs at a moment."""

    held: Mapping[int, int]
    """Originator id to the highest sequence id that is or was held, of the chain too."""
    chain_ids: Collection[int]
    node_ids: Collection[int]
    """All nodes that the registry lists."""
    own_id: int | None
    final_ns: int
    """Time of the chain's final block in nanoseconds since 1970, 0 where there is none."""
    knows_own: bool = True
    """All that this node ever signed is held: nothing is missing after a restored backup."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison of an originator's log with a peer that has just ended."""

    peer_id: int
    originator_id: int
    begun_at: float
    """Seconds of the clock by which envelopes wait."""
    highest_there: int
    """The peer's highest sequence id, by its own word."""
    is_settled: bool
    """All was compared, and the peer had nothing that was missing here, and that it may call
    expired."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of a check of all waiting envelopes."""

    offences: tuple[Offence, ...] = ()
    to_compare: frozenset[int] = frozenset()
    """Nodes with which all logs are to be compared soon."""


@dataclass(slots=True)
class _Waiting:
    received: ReceivedEnvelope
    named: dict[int, int]
    """The envelope's dependencies that were not held yet."""
    since: float
    ask_at: float
    lacking: set[tuple[int, int]] = field(default_factory=set)
    """Peers and originators: that peer had nothing more of that log since this envelope waits."""
    answer: ReceivedEnvelope | None = None
    """An envelope that this one names, and that names this one."""


class Dependencies:
    """All envelopes that wait; moments are seconds of a clock that only grows."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        """Begin with no envelope."""
        self._most = most
        self._waiting: dict[int, dict[int, _Waiting]] = {}
        self._listed: frozenset[int] = frozenset()
        """The chain's originators and the registry's nodes."""

    def __len__(self) -> int:
        """Count the envelopes that wait."""
        return sum(map(len, self._waiting.values()))

    def add(self, received: ReceivedEnvelope, known: KnownLogs, now: float) -> bool:
        """Add an envelope with missing dependencies; return whether another was dropped."""
        if received.originator_id == known.own_id:
            return False
        if not _lacks(received, known):
            return False
        self._listed = frozenset((*known.chain_ids, *known.node_ids))
        received = self._narrowed(received, known.held)
        named = _not_held(received.depends_on, received.originator_id, known.held)
        waiting = self._waiting.setdefault(received.originator_id, {})
        new = _Waiting(received, named, now, ask_at=now + PATIENCE_SECONDS)
        waiting.setdefault(received.sequence_id, new)
        has_dropped = False
        while len(waiting) > 1 and (len(waiting) > self._most or _is_large(waiting)):
            del waiting[next(iter(waiting))]
            has_dropped = True
        return has_dropped

    def arrived(self, received: ReceivedEnvelope) -> None:
        """Record an envelope that is held from now on: waiting envelopes may depend on it."""
        for other, last_id in received.depends_on.items():
            for sequence_id, each in self._waiting.get(other, {}).items():
                is_named = each.named.get(received.originator_id, 0) >= received.sequence_id
                # A cursor has the ids of its topic alone.
                is_of_topic = each.received.topic == received.topic
                if is_named and is_of_topic and sequence_id <= last_id:
                    each.answer = each.answer or self._narrowed(received, {})

    def compared(self, compared: Compared) -> None:
        """Record a comparison."""
        originator_id = compared.originator_id
        for each in self._all():
            if originator_id not in each.named or compared.begun_at < each.since:
                continue
            is_its_word = compared.peer_id == originator_id
            if is_its_word and compared.highest_there >= each.named[originator_id]:
                # The originator vouches for the dependency: nobody else is to blame.
                del each.named[originator_id]
                if not each.named:
                    self._forget(each)
            elif compared.is_settled:
                each.lacking.add((compared.peer_id, originator_id))

    def check(self, known: KnownLogs, now: float) -> Checked:
        """Forget dependencies that came, find missing ones, and return which nodes to ask."""
        offences: list[Offence] = []
        to_compare: set[int] = set()
        for each in self._all():
            named = _not_held(each.named, each.received.originator_id, known.held)
            if not named:
                if self._is_open(each.answer, known):
                    continue
                offences += _cycle(each, known)
            elif any(_is_missing(each, other, known, now) for other in named):
                offences.append(_offence(each.received))
            elif now - each.since < LONGEST_SECONDS:
                if now >= each.ask_at:
                    each.ask_at = now + PATIENCE_SECONDS
                    to_compare |= _to_ask(each, named, known)
                continue
            self._forget(each)
        return Checked(tuple(offences), frozenset(to_compare))

    def _narrowed(self, received: ReceivedEnvelope, held: Mapping[int, int]) -> ReceivedEnvelope:
        """Return an envelope with its dependencies on listed originators, and on one other.

        One is enough to be missing, and a hostile payload names thousands.
        """
        depends_on = {
            each: last for each, last in received.depends_on.items() if each in self._listed
        }
        others = (
            (each, last)
            for each, last in received.depends_on.items()
            if each not in self._listed and last > held.get(each, 0)
        )
        return replace(received, depends_on=depends_on | dict(islice(others, 1)))

    def _is_open(self, received: ReceivedEnvelope | None, known: KnownLogs) -> bool:
        """Return whether a dependency of an envelope may still prove missing."""
        if received is None or not _lacks(received, known):
            return False
        return received.sequence_id in self._waiting.get(received.originator_id, {})

    def _all(self) -> list[_Waiting]:
        return [each for waiting in self._waiting.values() for each in waiting.values()]

    def _forget(self, waiting: _Waiting) -> None:
        received = waiting.received
        del self._waiting[received.originator_id][received.sequence_id]


def _is_large(waiting: Mapping[int, _Waiting]) -> bool:
    return sum(len(each.received.envelope) for each in waiting.values()) > MOST_WAITING_BYTES


def _not_held(
    depends_on: Mapping[int, int], originator_id: int, held: Mapping[int, int]
) -> dict[int, int]:
    return {
        other: sequence_id
        for other, sequence_id in depends_on.items()
        if other != originator_id and sequence_id > held.get(other, 0)
    }


def _lacks(received: ReceivedEnvelope, known: KnownLogs) -> bool:
    return bool(_not_held(received.depends_on, received.originator_id, known.held))


def _is_missing(waiting: _Waiting, named_id: int, known: KnownLogs, now: float) -> bool:
    if named_id in known.chain_ids or named_id not in known.node_ids:
        is_patient = now - waiting.since >= PATIENCE_SECONDS
        return is_patient and known.final_ns > waiting.received.originator_ns
    if named_id == known.own_id and known.knows_own and now - waiting.since >= OWN_WORD_SECONDS:
        return True
    asked = {waiting.received.originator_id, named_id} - {known.own_id}
    return all((each, named_id) in waiting.lacking for each in asked)


def _to_ask(waiting: _Waiting, named: Collection[int], known: KnownLogs) -> set[int]:
    nodes = {each for each in named if each in known.node_ids}
    return (nodes | {waiting.received.originator_id}) - {known.own_id} if nodes else set()


def _cycle(waiting: _Waiting, known: KnownLogs) -> list[Offence]:
    """Return the offences of a cycle of two, if any; the first one's dependencies are held now."""
    one, other = waiting.received, waiting.answer
    if other is None or _lacks(other, known):
        return []
    if (one.originator_id, other.originator_id) in waiting.lacking:
        return [_offence(one, other)]
    return [_offence(one, other), _offence(other, one)]


def _offence(received: ReceivedEnvelope, *others: ReceivedEnvelope) -> Offence:
    envelopes = tuple(each.envelope for each in (received, *others))
    return Offence(received.originator_id, Misbehavior.CAUSAL_ORDERING, envelopes)

"""Cycles: envelopes that depend on each other, of which one originator lied (§3.3.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from chainkit.misbehavior.evidence import MOST_ENVELOPES
from chainkit.misbehavior.types import Misbehavior
from chainkit.types import Place
from chainkit_client.breach import Breach
from chainkit_client.reading.verified import VerifiedEnvelope

_MOST_SEARCHED: Final = 500
"""Envelopes of a cycle in which a shortest cycle is searched, in quadratic time."""


def accused_of_cycle(cycle: Sequence[VerifiedEnvelope]) -> list[Breach]:
    """Accuse each originator that signed a part of a cycle.

    One originator lied, and the evidence does not show which one: an honest one takes no payload
    that would close a cycle (ADR 60). A cycle of one envelope is found when the envelope is read. A
    cycle through a payload of the chain proves nothing: a reorg may have put the payload in the
    place of the one that the authors had seen.
    """
    if not 1 < len(cycle) <= _MOST_SEARCHED:
        return []
    path = shortest_cycle(cycle)
    if not 1 < len(path) <= MOST_ENVELOPES:
        return []
    if any(each.transaction_hash is not None for each in path):
        return []
    evidence = tuple(each.envelope for each in path)
    signers = {each.originator_id for each in path}
    kind, reason = Misbehavior.CAUSAL_ORDERING, f"{len(path)} envelopes depend on each other"
    return [Breach(each, kind, reason, evidence) for each in sorted(signers)]


def shortest_cycle(cycle: Sequence[VerifiedEnvelope]) -> list[VerifiedEnvelope]:
    """Return a shortest way around a cycle that begins at its first envelope.

    Each envelope depends on the next one, and the last one on the first. Empty where only its
    originator's order delays the first envelope.
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

"""The causal order of a topic's envelopes, and what is missing from it (XIP-49 §3.3.5).

Theory of operation. An envelope may be applied once each place that its author had seen is known or
applied, and so is every envelope of the batch that an originator ordered before such a place, or
before the envelope itself. The first such envelope in timestamp order is next (Kahn's algorithm)::

    sorted by timestamp ──(nothing to wait for)──▶ ready ──(first in timestamp order)──▶ ordered
             │                                       ▲                                     │
             └──────────────────────────▶ waiting ───┴──────(the last one it waited for)───┘

The remaining envelopes wait for an absent place, for each other in a cycle, or for such envelopes.
The policy says whether these envelopes stay, or are applied with a warning.

Two rules differ from the specification's loop. The specification applies an originator's envelopes
by time, even where the times fall. And the specification takes a cursor beyond a place for having
seen the place: an omitted place would never be missed. Here each dependency must be known exactly.

No I/O and no clock. Everything takes O((n + d) log n) for n envelopes with d dependencies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic

from chainkit.types import Place
from chainkit_client.ordering.batch import Batch, IsKnown
from chainkit_client.ordering.timestamps import E


class Policy(StrEnum):
    """The treatment of envelopes whose dependencies are not met (XIP-49 §3.3.5)."""

    WAIT = "wait"
    """Envelopes wait, while the client asks for missing places."""
    APPLY = "apply"
    """The first envelope in timestamp order is applied, with a warning, before the others are tried
    again. Only envelopes take part that wait for an absent place, or for their own cycle: an
    envelope still comes after all others of the batch that it depends on, even indirectly."""


@dataclass(frozen=True, slots=True)
class CausalOrder(Generic[E]):
    """The outcome for one batch. Envelopes are in timestamp order, except in ``ordered``."""

    ordered: Sequence[E]
    """The envelopes that may be applied, in this order."""
    waiting: Sequence[E]
    """All other envelopes; none with the policy APPLY."""
    missing: Mapping[Place, Sequence[E]]
    """Places that are neither known nor in the batch, in rising order, with the envelopes that
    depend on them directly."""
    cycles: Sequence[Sequence[E]]
    """Sets of envelopes that wait for each other, at least indirectly, in the order of the first
    envelopes. A single envelope depends on itself, or on a later one of its originator."""
    unmet: Mapping[Place, Sequence[Place]]
    """The places that an applied envelope depends on and lacked, in rising order, by the place of
    the envelope. Empty with the policy WAIT."""


def causally_ordered(
    envelopes: Iterable[E], is_known: IsKnown, policy: Policy = Policy.WAIT
) -> CausalOrder[E]:
    """Order new envelopes of one topic, which come in any order.

    ``is_known`` is called at most once for a place, and only for places outside the batch. Missing
    places and cycles are reported with either policy. Raises ValueError for two envelopes of one
    place.
    """
    batch = Batch(envelopes, is_known)
    batch.apply_ready()
    cycles = batch.cycles()
    if policy is Policy.APPLY:
        batch.apply_waiting(cycles)
    return CausalOrder(
        ordered=batch.at(batch.applied),
        waiting=batch.at(batch.waiting()),
        missing={place: batch.at(ranks) for place, ranks in sorted(batch.absent.items())},
        cycles=[batch.at(cycle) for cycle in cycles],
        unmet=batch.unmet,
    )

"""The causal order of a topic's envelopes, and what is missing from it (XIP-49 §3.3.5).

Theory of operation. An envelope may be applied once each place that its author had seen is known or
applied, and with it all of the batch that an originator ordered before such a place, or before the
envelope itself. The next one is the first in timestamp order that may be (Kahn's algorithm)::

    sorted by timestamp ──(nothing to wait for)──▶ ready ──(first in timestamp order)──▶ ordered
             │                                       ▲                                     │
             └──────────────────────────▶ waiting ───┴──────(the last one it waited for)───┘

Those that are left wait for a place that is absent, for each other in a cycle, or for one of these.
The policy says whether they stay, or are applied with a warning.

Two rules differ from the specification's own loop. It would apply an originator's envelopes by
their times, also where these fall. And it takes a cursor beyond a place for having seen the place:
one that was left out would never be missed. Here each dependency must be known exactly.

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
    """They stay, while what is missing is asked for."""
    APPLY = "apply"
    """The first one in timestamp order is applied, with a warning, before the others are tried
    again. Only those take part that wait for what is absent, or for their own cycle: an envelope
    still comes after all others of the batch that it depends on, even indirectly."""


@dataclass(frozen=True, slots=True)
class CausalOrder(Generic[E]):
    """The outcome for one batch. Envelopes are in timestamp order, but for ``ordered``."""

    ordered: Sequence[E]
    """Those that may be applied, in this order."""
    waiting: Sequence[E]
    """All others; none where the policy is to apply them."""
    missing: Mapping[Place, Sequence[E]]
    """Places that are neither known nor in the batch, in rising order, with the envelopes that
    depend on them directly."""
    cycles: Sequence[Sequence[E]]
    """Sets of envelopes that each wait for all of their set, at least indirectly; in the order of
    their first ones. A single one depends on itself, or on a later one of its originator."""
    unmet: Mapping[Place, Sequence[Place]]
    """The places that an envelope depends on and was applied without, in rising order, by its own
    place. Empty where the policy is to wait."""


def causally_ordered(
    envelopes: Iterable[E], is_known: IsKnown, policy: Policy = Policy.WAIT
) -> CausalOrder[E]:
    """Order new envelopes of one topic, whatever order they come in.

    ``is_known`` is asked at most once for a place, and only for places that are not in the batch.
    Missing places and cycles are told with either policy. Raises ValueError for two envelopes of
    one place.
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

"""Which node is asked for whose envelopes; no I/O, no clock (XIP-49 §3.2.3, §3.2.6).

Every enabled node is asked for its own envelopes. While a node is unreachable, and for six hours
after it was found to be disabled, five random other nodes are asked for its envelopes, too.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

SUBSTITUTES: Final = 5
"""Nodes that are asked for another one's envelopes."""

DISABLED_SECONDS: Final = 6 * 60 * 60.0
"""How long substitutes are asked for a disabled node's envelopes."""


class Subscription(NamedTuple):
    """A stream of one originator's envelopes."""

    peer_id: int
    """The node that is asked."""
    originator_id: int

    @property
    def is_direct(self) -> bool:
        """Whether the originator itself is asked."""
        return self.peer_id == self.originator_id


class SubscriptionPlan:
    """Computes the streams anew each time; remembers picks, and since when a node is disabled."""

    def __init__(self, chance: random.Random) -> None:
        """Take the source of randomness."""
        self._chance = chance
        self._picks: dict[int, frozenset[int]] = {}
        self._disabled_at: dict[int, float] = {}

    def subscriptions(
        self,
        own_id: int | None,
        nodes: Mapping[int, bool],
        unreachable: Collection[int],
        now: float,
    ) -> frozenset[Subscription]:
        """Return the streams that should be open.

        ``nodes`` has for each registered node whether it is enabled; ``now`` is in seconds of a
        clock that only grows.
        """
        others = {each: is_enabled for each, is_enabled in nodes.items() if each != own_id}
        enabled = {each for each, is_enabled in others.items() if is_enabled}
        self._note_disabled(others, now)
        absent = {each for each in enabled if each in unreachable} | {
            each for each, since in self._disabled_at.items() if now - since < DISABLED_SECONDS
        }
        reachable = enabled - set(unreachable)
        self._picks = {each: self._picked(each, reachable - {each}) for each in sorted(absent)}
        direct = {Subscription(each, each) for each in enabled}
        substitutes = {
            Subscription(peer_id, each)
            for each, picked in self._picks.items()
            for peer_id in picked
        }
        return frozenset(direct | substitutes)

    def _note_disabled(self, others: Mapping[int, bool], now: float) -> None:
        disabled = {each for each, is_enabled in others.items() if not is_enabled}
        self._disabled_at = {each: self._disabled_at.get(each, now) for each in disabled}

    def _picked(self, absent_id: int, candidates: Collection[int]) -> frozenset[int]:
        """Keep the picks that still can be asked, and pick other nodes for the rest."""
        kept = self._picks.get(absent_id, frozenset()) & set(candidates)
        rest = sorted(set(candidates) - kept)
        missing = min(SUBSTITUTES - len(kept), len(rest))
        return kept | frozenset(self._chance.sample(rest, missing))

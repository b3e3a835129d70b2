"""A batch of envelopes as a graph: dependencies, and applied envelopes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import Generic

from chainkit.types import Place
from chainkit_client.ordering.components import Groups, cyclic_components
from chainkit_client.ordering.timestamps import CausalEnvelope, E, is_of_future, timestamp_key

IsKnown = Callable[[int, int], bool]
"""Returns whether no envelope need wait for exactly this originator id and sequence id."""


class Batch(Generic[E]):
    """Envelopes by rank, the index in timestamp order, with the dependencies of each."""

    def __init__(self, envelopes: Iterable[E], is_known: IsKnown) -> None:
        self._envelopes = sorted(envelopes, key=timestamp_key)
        self._ranks = _ranks_by_place(self._envelopes)
        self._ids = {each: sorted(ranks) for each, ranks in self._ranks.items()}
        self._is_applied = [False] * len(self._envelopes)
        self._blockers = [0] * len(self._envelopes)
        """How many places each rank waits for."""
        self._followers: list[list[int]] = [[] for _ in self._envelopes]
        """The ranks that wait for each rank."""
        self._previous: dict[int, int] = {}
        """The next lower rank of the same originator, where there is one."""
        self._self_dependent: list[int] = []
        self.absent: dict[Place, list[int]] = {}
        """The ranks that wait for a place that is neither known nor in the batch."""
        self.applied: list[int] = []
        self.unmet: dict[Place, Sequence[Place]] = {}
        self._link_originators()
        self._link_dependencies(is_known)

    def at(self, ranks: Iterable[int]) -> list[E]:
        """Return the envelopes of some ranks."""
        return [self._envelopes[rank] for rank in ranks]

    def waiting(self) -> list[int]:
        """Return the ranks that are not applied, in rising order."""
        return [rank for rank, is_applied in enumerate(self._is_applied) if not is_applied]

    def apply_ready(self) -> None:
        """Apply all envelopes whose dependencies are met, now or by an application here."""
        blockers = self._blockers
        ready = [rank for rank, count in enumerate(blockers) if not count]
        while ready:
            rank = heappop(ready)
            self._apply(rank)
            for each in self._followers[rank]:
                blockers[each] -= 1
                if not blockers[each]:
                    heappush(ready, each)

    def cycles(self) -> list[list[int]]:
        """Return the cycles among waiting ranks, each in rising order, by first rank."""
        cycles = [sorted(each) for each in cyclic_components(self.waiting(), self._followers)]
        found = {rank for cycle in cycles for rank in cycle}
        return sorted(cycles + [[rank] for rank in self._self_dependent if rank not in found])

    def apply_waiting(self, cycles: Collection[Sequence[int]]) -> None:
        """Apply all waiting envelopes: one that lacks something, then the ones that waited for it.

        A cycle still waits for all envelopes outside that its members wait for, and an originator's
        ids still rise within the cycle. So some envelope is always free.
        """
        waiting = self.waiting()
        groups = Groups(cycles, waiting, self._followers)
        free: list[tuple[bool, int]] = []
        self._offer(waiting, groups, free)
        while free:
            is_unmet, rank = heappop(free)
            if self._is_applied[rank]:
                continue
            if is_unmet:
                self._note_unmet(rank)
            self._apply(rank)
            for each in self._followers[rank]:
                self._blockers[each] -= 1
                self._offer(groups.released(rank, each), groups, free)

    def _offer(self, ranks: Iterable[int], groups: Groups, free: list[tuple[bool, int]]) -> None:
        """Add the ranks to a heap that wait for nothing in the batch outside their own cycle."""
        for rank in ranks:
            previous = self._previous.get(rank)
            is_next = previous is None or self._is_applied[previous]
            if is_next and not groups.waits(rank):
                # False sorts first: the dependencies of such an envelope are all met.
                heappush(free, (self._blockers[rank] > 0, rank))

    def _link_originators(self) -> None:
        for originator_id, ids in self._ids.items():
            ranks = self._ranks[originator_id]
            for lower, higher in pairwise(ids):
                self._previous[ranks[higher]] = ranks[lower]
                self._block(ranks[higher], ranks[lower])

    def _link_dependencies(self, is_known: IsKnown) -> None:
        known: set[Place] = set()
        for rank, envelope in enumerate(self._envelopes):
            own_id = envelope.originator_id
            for place in envelope.depends_on.items():
                if place[1] <= 0:
                    continue
                if is_of_future(envelope, place):
                    self._self_dependent.append(rank)
                    self._blockers[rank] += 1
                    continue
                blocker = self._last_through(place)
                # Earlier envelopes of the same originator are linked already.
                if blocker is not None and place[0] != own_id:
                    self._block(rank, blocker)
                if self._is_here(place) or place in known:
                    continue
                if place not in self.absent and is_known(*place):
                    known.add(place)
                else:
                    self.absent.setdefault(place, []).append(rank)
                    self._blockers[rank] += 1

    def _block(self, rank: int, blocker: int) -> None:
        self._followers[blocker].append(rank)
        self._blockers[rank] += 1

    def _is_here(self, place: Place) -> bool:
        originator_id, sequence_id = place
        return sequence_id in self._ranks.get(originator_id, ())

    def _last_through(self, place: Place) -> int | None:
        """Return the rank of an originator's last envelope of the batch up to a place."""
        originator_id, sequence_id = place
        ranks = self._ranks.get(originator_id)
        if ranks is None:
            return None
        if sequence_id in ranks:
            return ranks[sequence_id]
        ids = self._ids[originator_id]
        count = bisect_right(ids, sequence_id)
        return ranks[ids[count - 1]] if count else None

    def _apply(self, rank: int) -> None:
        self._is_applied[rank] = True
        self.applied.append(rank)

    def _note_unmet(self, rank: int) -> None:
        envelope = self._envelopes[rank]
        self.unmet[envelope.originator_id, envelope.sequence_id] = sorted(
            place for place in envelope.depends_on.items() if self._is_unmet(envelope, place)
        )

    def _is_unmet(self, envelope: E, place: Place) -> bool:
        if place in self.absent or is_of_future(envelope, place):
            return True
        blocker = self._last_through(place)
        return blocker is not None and not self._is_applied[blocker]


def _ranks_by_place(envelopes: Iterable[CausalEnvelope]) -> dict[int, dict[int, int]]:
    """Return ranks by originator id, then sequence id."""
    ranks: dict[int, dict[int, int]] = {}
    for rank, each in enumerate(envelopes):
        if ranks.setdefault(each.originator_id, {}).setdefault(each.sequence_id, rank) != rank:
            subject = f"envelope {each.sequence_id} of originator {each.originator_id}"
            raise ValueError(f"{subject}: expected one in a batch, got two")
    return ranks

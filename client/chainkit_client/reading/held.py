"""A client's envelopes in memory, with the parts that comparisons need."""

from __future__ import annotations

from bisect import bisect_left, insort

from chainkit.misbehavior.received_batch import HeldEnvelope
from chainkit.protocol.topic_heads import Entry


class MemoryLog:
    """The envelopes of one originator."""

    def __init__(self) -> None:
        """Begin without envelopes."""
        self._ids: list[int] = []
        self._held: dict[int, HeldEnvelope] = {}

    def hold(self, held: HeldEnvelope) -> None:
        """Hold an envelope; the first envelope of an id stays."""
        if held.sequence_id not in self._held:
            insort(self._ids, held.sequence_id)
            self._held[held.sequence_id] = held

    def last(self) -> HeldEnvelope | None:
        """Return the envelope of the highest id."""
        return self._held[self._ids[-1]] if self._ids else None

    def at(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the envelope of an id."""
        return self._held.get(sequence_id)

    def entries(self, after: int, through: int) -> list[Entry]:
        """Return the entries of envelopes with ids above ``after`` and up to ``through``."""
        first, end = bisect_left(self._ids, after + 1), bisect_left(self._ids, through + 1)
        return [Entry(each, self._held[each].digest) for each in self._ids[first:end]]

    def count(self, through: int) -> int:
        """Count the envelopes with ids up to ``through``."""
        return bisect_left(self._ids, through + 1)

    def before(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the envelope of the highest id below an id."""
        place = bisect_left(self._ids, sequence_id)
        return self._held[self._ids[place - 1]] if place else None

    def after(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the envelope of the lowest id above an id."""
        place = bisect_left(self._ids, sequence_id + 1)
        return self._held[self._ids[place]] if place < len(self._ids) else None


class MemoryLogs:
    """The envelopes of all originators."""

    def __init__(self) -> None:
        """Begin without envelopes."""
        self._logs: dict[int, MemoryLog] = {}

    def log(self, originator_id: int) -> MemoryLog:
        """Return the log of one originator."""
        return self._logs.setdefault(originator_id, MemoryLog())

    def highest(self) -> dict[int, int]:
        """Return the highest held id of each originator."""
        last = {each: log.last() for each, log in self._logs.items()}
        return {each: held.sequence_id for each, held in last.items() if held is not None}

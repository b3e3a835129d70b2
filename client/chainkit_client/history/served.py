"""The envelopes of a topic that nodes have, in some 90 bytes of memory each."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from chainkit.types import Place
from chainkit_client.storage.imported import ImportedGroup

_HASH_LENGTH: Final = 32
_COMMIT: Final = 1
_SHOWN: Final = 2


@dataclass(frozen=True, slots=True)
class ServedEnvelope:
    """An envelope that nodes have; one of the chain is confirmed."""

    place: Place
    originator_ns: int
    digest: bytes
    """32 bytes."""
    is_commit: bool
    payload_hash: bytes
    """32 bytes: the same for the copies of one message."""


class Served:
    """The envelopes by place, and which of them a row shows."""

    def __init__(self, envelopes: Iterable[ServedEnvelope] = ()) -> None:
        """Begin with some envelopes."""
        self._logs: dict[int, _Log] = {}
        self._others: dict[Place, list[ServedEnvelope]] = {}
        """Further envelopes that a node has signed for one place."""
        for each in envelopes:
            self.add(each)

    def add(self, envelope: ServedEnvelope) -> None:
        """Add an envelope."""
        if not self._logs.setdefault(envelope.place[0], _Log()).add(envelope):
            self._others.setdefault(envelope.place, []).append(envelope)

    def at(self, place: Place) -> Sequence[ServedEnvelope]:
        """Return the envelopes of a place, one of which came first."""
        log = self._logs.get(place[0])
        index = None if log is None else log.find(place[1])
        if log is None or index is None:
            return ()
        return [log.envelope(place[0], index), *self._others.get(place, ())]

    def before(self, place: Place) -> ServedEnvelope | None:
        """Return the last envelope of the same originator before a place."""
        log = self._logs.get(place[0])
        index = 0 if log is None else log.index(place[1])
        return log.envelope(place[0], index - 1) if log is not None and index else None

    def show(self, place: Place) -> None:
        """Record that a row shows what is at a place, or that a device could not read it."""
        log = self._logs.get(place[0])
        index = None if log is None else log.find(place[1])
        if log is not None and index is not None:
            log.flags[index] |= _SHOWN

    def omitted(self, said: Iterable[ImportedGroup]) -> set[bytes]:
        """Return the messages that devices say that they read, and could open, and nobody shows.

        By their payload hashes: a message that was published to several originators counts once,
        wherever it is shown.
        """
        groups = list(said)
        for each in groups:
            for place in each.skipped:
                self.show(place)
        lacking = {
            log.payload_hash(index)
            for each in groups
            for originator_id, through in each.read.items()
            if (log := self._logs.get(originator_id)) is not None
            for index in log.unshown(each.since_ns, through)
        }
        if lacking:
            lacking.difference_update(self._shown())
        return lacking

    def _shown(self) -> Iterator[bytes]:
        for originator_id, log in self._logs.items():
            for index, number in enumerate(log.numbers):
                if log.flags[index] & _SHOWN:
                    yield log.payload_hash(index)
                    others = self._others.get((originator_id, number), ())
                    yield from (each.payload_hash for each in others)


class _Log:
    """The envelopes of one originator, in the order of their ids; the first one of each."""

    def __init__(self) -> None:
        self.numbers = array("q")
        self.flags = bytearray()
        self._times = array("q")
        self._digests = bytearray()
        self._payloads = bytearray()

    def add(self, envelope: ServedEnvelope) -> bool:
        """Add an envelope; return False where its id has one."""
        number = envelope.place[1]
        index, place = self.index(number), self.index(number) * _HASH_LENGTH
        if self.find(number) is not None:
            return False
        self.numbers.insert(index, number)
        self.flags[index:index] = bytes([_COMMIT if envelope.is_commit else 0])
        self._times.insert(index, envelope.originator_ns)
        self._digests[place:place] = envelope.digest
        self._payloads[place:place] = envelope.payload_hash
        return True

    def index(self, number: int) -> int:
        """Return how many envelopes have a lower id."""
        return bisect_left(self.numbers, number)

    def find(self, number: int) -> int | None:
        """Return the index of an id, None where there is none."""
        index = self.index(number)
        is_here = index < len(self.numbers) and self.numbers[index] == number
        return index if is_here else None

    def payload_hash(self, index: int) -> bytes:
        place = index * _HASH_LENGTH
        return bytes(self._payloads[place : place + _HASH_LENGTH])

    def envelope(self, originator_id: int, index: int) -> ServedEnvelope:
        place = index * _HASH_LENGTH
        return ServedEnvelope(
            (originator_id, self.numbers[index]),
            self._times[index],
            bytes(self._digests[place : place + _HASH_LENGTH]),
            bool(self.flags[index] & _COMMIT),
            self.payload_hash(index),
        )

    def unshown(self, since_ns: int, through: int) -> Iterator[int]:
        """Yield the messages since a time, up to an id, that no row shows."""
        for index in range(self.index(through + 1)):
            if not self.flags[index] and self._times[index] >= since_ns:
                yield index

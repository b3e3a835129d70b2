"""A client's envelopes in a file: of each, memory holds what comparisons need, some 60 bytes."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from typing import BinaryIO, Final

from chainkit.misbehavior.received_batch import HeldEnvelope
from chainkit.protocol.topic_heads import Entry
from chainkit_client.reading.held import MemoryLog, MemoryLogs

_DIGEST_LENGTH: Final = 32


class SpooledLog(MemoryLog):
    """The envelopes of one originator, whose bytes are in a file that is only appended to."""

    def __init__(self, file: BinaryIO) -> None:
        """Begin without envelopes; the file may have those of other logs."""
        self._file = file
        self._numbers = array("q")
        self._times = array("q")
        self._begins = array("q")
        self._lengths = array("q")
        self._digests = bytearray()

    def hold(self, held: HeldEnvelope) -> None:
        """Hold an envelope; the first envelope of an id stays."""
        index = self._index(held.sequence_id)
        if self._has(index, held.sequence_id):
            return
        begin = self._file.seek(0, os.SEEK_END)
        self._file.write(held.envelope)
        self._numbers.insert(index, held.sequence_id)
        self._times.insert(index, held.originator_ns)
        self._begins.insert(index, begin)
        self._lengths.insert(index, len(held.envelope))
        place = index * _DIGEST_LENGTH
        self._digests[place:place] = held.digest

    def last(self) -> HeldEnvelope | None:
        """Return the envelope of the highest id."""
        return self._held_at(len(self._numbers) - 1)

    def at(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the envelope of an id."""
        index = self._index(sequence_id)
        return self._held_at(index) if self._has(index, sequence_id) else None

    def has(self, sequence_id: int) -> bool:
        """Return whether an envelope of an id is held; no file is read."""
        return self._has(self._index(sequence_id), sequence_id)

    def entries(self, after: int, through: int) -> list[Entry]:
        """Return the entries of envelopes with ids above ``after`` and up to ``through``."""
        places = range(self._index(after + 1), self._index(through + 1))
        return [Entry(self._numbers[each], self._digest(each)) for each in places]

    def count(self, through: int) -> int:
        """Count the envelopes with ids up to ``through``."""
        return self._index(through + 1)

    def before(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the envelope of the highest id below an id."""
        return self._held_at(self._index(sequence_id) - 1)

    def after(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the envelope of the lowest id above an id."""
        return self._held_at(self._index(sequence_id + 1))

    def _index(self, sequence_id: int) -> int:
        return bisect_left(self._numbers, sequence_id)

    def _has(self, index: int, sequence_id: int) -> bool:
        return index < len(self._numbers) and self._numbers[index] == sequence_id

    def _digest(self, index: int) -> bytes:
        place = index * _DIGEST_LENGTH
        return bytes(self._digests[place : place + _DIGEST_LENGTH])

    def _held_at(self, index: int) -> HeldEnvelope | None:
        if not 0 <= index < len(self._numbers):
            return None
        self._file.seek(self._begins[index])
        envelope = self._file.read(self._lengths[index])
        return HeldEnvelope(self._numbers[index], self._times[index], self._digest(index), envelope)


class SpooledLogs(MemoryLogs):
    """The envelopes of all originators, in one file."""

    def __init__(self, file: BinaryIO) -> None:
        """Take an empty file, open to read and to append."""
        super().__init__()
        self._file = file
        self._spooled: dict[int, SpooledLog] = {}

    def log(self, originator_id: int) -> SpooledLog:
        """Return the log of one originator."""
        return self._spooled.setdefault(originator_id, SpooledLog(self._file))

    def highest(self) -> dict[int, int]:
        """Return the highest held id of each originator."""
        last = {each: log.last() for each, log in self._spooled.items()}
        return {each: held.sequence_id for each, held in last.items() if held is not None}

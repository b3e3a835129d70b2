"""Holds imported messages against what nodes and chain still have: proven, omitted, invented.

An envelope is encrypted, and who joins later cannot open it. So a proven row says that its device
read this envelope at this place, and not that its words are the envelope's. One envelope has one
message: two messages that claim one are disputed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from chainkit.misbehavior.judging import may_have_expired
from chainkit.types import Place
from chainkit_client.groups.transcript import CHANGES
from chainkit_client.storage.imported import ImportedGroup
from chainkit_client.storage.imported_schema import Standing
from chainkit_client.storage.schema import MessageKind


@dataclass(frozen=True, slots=True)
class Row:
    """The parts of a message that are compared, of an own or an imported one."""

    tag: bytes
    kind: MessageKind
    place: Place | None
    originator_ns: int | None
    digest: bytes | None
    """32 bytes; None without a place."""
    is_own: bool = False
    is_disputed: bool = False
    """Whether devices tell the message differently."""

    @property
    def is_change(self) -> bool:
        """Whether the row's envelope is a commit, which may add and remove many."""
        return self.kind in CHANGES

    @property
    def claim(self) -> tuple[Place, bytes | None] | None:
        """The envelope whose words the row claims to have; None for a row without words."""
        if self.kind is not MessageKind.APPLICATION or self.place is None:
            return None
        return self.place, self.digest


@dataclass(frozen=True, slots=True)
class ServedEnvelope:
    """An envelope that nodes have; one of the chain is confirmed."""

    place: Place
    originator_ns: int
    digest: bytes
    is_commit: bool
    payload_hash: bytes
    """32 bytes: the same for the copies of one message."""


@dataclass(slots=True)
class Coverage:
    """How an imported group compares."""

    group_id: bytes
    standings: dict[bytes, Standing | None] = field(default_factory=dict)
    """By tag of the imported row; None where it could not be checked."""
    omitted: int = 0
    """Messages that nodes have, and devices say that they read, and no row shows."""

    def count(self, standing: Standing | None) -> int:
        """Return how many rows have a standing."""
        return Counter(self.standings.values())[standing]

    @property
    def is_doubtful(self) -> bool:
        """Whether a device left something out, or added something."""
        doubtful = Standing.INVENTED, Standing.DISPUTED
        return bool(self.omitted) or any(each in doubtful for each in self.standings.values())


def compare(
    group_id: bytes,
    rows: Collection[Row],
    said: Iterable[ImportedGroup],
    served: Iterable[ServedEnvelope],
    is_complete: bool,
    now_ns: int,
) -> Coverage:
    """Compare a group's rows with the envelopes of its topic.

    ``said`` is what devices say that they read. Where not all nodes have answered, nothing counts
    as absent: ``is_complete`` says so.
    """
    envelopes = _Envelopes(served)
    claims = Counter[object](each.claim for each in rows if each.claim is not None)
    found = Coverage(group_id)
    for row in rows:
        if not row.is_own:
            is_shared = claims[row.claim] > 1
            found.standings[row.tag] = _standing(row, is_shared, envelopes, is_complete, now_ns)
    shown = {each.place for each in rows if each.place is not None}
    found.omitted = len(envelopes.omitted(said, shown))
    return found


def _standing(
    row: Row, is_shared: bool, envelopes: _Envelopes, is_complete: bool, now_ns: int
) -> Standing | None:
    if row.is_disputed or is_shared:
        return Standing.DISPUTED
    if row.place is None:
        return Standing.PLACELESS
    same = [each for each in envelopes.at(row.place) if each.digest == row.digest]
    if same:
        is_it = same[0].is_commit == row.is_change
        is_dated = row.originator_ns in (None, same[0].originator_ns)
        return Standing.PROVEN if is_it and is_dated else Standing.INVENTED
    if not is_complete:
        return None
    is_old = may_have_expired(envelopes.claimed(row), now_ns)
    if is_old and not row.is_change and may_have_expired(envelopes.before(row.place), now_ns):
        return Standing.EXPIRED
    return Standing.INVENTED


class _Envelopes:
    """The envelopes of a topic, by place; a node may have signed several for one place."""

    def __init__(self, served: Iterable[ServedEnvelope]) -> None:
        self._at: dict[Place, list[ServedEnvelope]] = {}
        for each in served:
            self._at.setdefault(each.place, []).append(each)
        self._places: Sequence[Place] = sorted(self._at)

    def at(self, place: Place) -> Sequence[ServedEnvelope]:
        return self._at.get(place, ())

    def before(self, place: Place) -> ServedEnvelope | None:
        """Return the last envelope of the same originator before a place."""
        index = bisect_left(self._places, place) - 1
        if index < 0 or self._places[index][0] != place[0]:
            return None
        return self._at[self._places[index]][0]

    @staticmethod
    def claimed(row: Row) -> ServedEnvelope | None:
        """Return the envelope that a row claims; None for a row without a time."""
        if row.place is None or row.originator_ns is None:
            return None
        return ServedEnvelope(row.place, row.originator_ns, row.digest or b"", row.is_change, b"")

    def omitted(self, said: Iterable[ImportedGroup], shown: set[Place]) -> set[bytes]:
        """Return the messages that devices say that they read, and could open, and nobody shows.

        A message that was published to several originators counts once, wherever it is shown.
        """
        read, skipped = set[Place](), set[Place]()
        for each in said:
            read.update(place for place in self._at if self._is_read(place, each))
            skipped.update(each.skipped)
        known = {one.payload_hash for each in shown | skipped for one in self.at(each)}
        envelopes = (self._at[each][0] for each in read)
        return {each.payload_hash for each in envelopes if not each.is_commit} - known

    def _is_read(self, place: Place, group: ImportedGroup) -> bool:
        is_since = self._at[place][0].originator_ns >= group.since_ns
        return is_since and place[1] <= group.read.get(place[0], 0)

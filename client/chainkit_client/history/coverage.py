"""Holds imported messages against what nodes and chain still have: proven, omitted, invented.

An envelope is encrypted, and who joins later cannot open it. So a proven row says that its device
read this envelope at this place, and not that its words are the envelope's. One envelope has one
message: two messages that claim one are disputed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from chainkit.misbehavior.received_batch import may_have_expired
from chainkit.types import Place
from chainkit_client.groups.transcript import CHANGES
from chainkit_client.history.served import Served, ServedEnvelope
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


@dataclass(slots=True)
class Coverage:
    """How an imported group compares."""

    group_id: bytes
    counts: Counter[Standing | None] = field(default_factory=Counter)
    """How many imported rows have a standing; None where it could not be checked."""
    omitted: int = 0
    """Messages that nodes have, and devices say that they read, and no row shows."""

    def count(self, standing: Standing | None) -> int:
        """Return how many rows have a standing."""
        return self.counts[standing]

    @property
    def is_doubtful(self) -> bool:
        """Whether a device left something out, or added something."""
        return bool(
            self.omitted or self.counts[Standing.INVENTED] or self.counts[Standing.DISPUTED]
        )


def compare(
    group_id: bytes,
    rows: Iterable[Row],
    said: Iterable[ImportedGroup],
    served: Served,
    is_complete: bool,
    now_ns: int,
    keep: Callable[[bytes, Standing | None], None],
) -> Coverage:
    """Compare a group's rows with the envelopes of its topic.

    The rows come sorted by place, those without one first, and are read once; ``keep`` takes tag
    and standing of each imported one. ``said`` is what devices say that they read. Where not all
    nodes have answered, nothing counts as absent: ``is_complete`` says so.
    """
    found = Coverage(group_id)
    for row, is_shared in _shown(rows, served):
        if not row.is_own:
            standing = _standing(row, is_shared, served, is_complete, now_ns)
            found.counts[standing] += 1
            keep(row.tag, standing)
    found.omitted = len(served.omitted(said))
    return found


def _shown(rows: Iterable[Row], served: Served) -> Iterator[tuple[Row, bool]]:
    """Yield each row, and whether another one claims its envelope, too."""
    for place, some in groupby(rows, lambda each: each.place):
        if place is None:
            # They claim nothing, and may be all.
            yield from ((each, False) for each in some)
            continue
        served.show(place)
        at_place = list(some)
        claims = Counter(each.claim for each in at_place)
        for each in at_place:
            yield each, each.claim is not None and claims[each.claim] > 1


def _standing(
    row: Row, is_shared: bool, served: Served, is_complete: bool, now_ns: int
) -> Standing | None:
    if row.is_disputed or is_shared:
        return Standing.DISPUTED
    if row.place is None:
        return Standing.PLACELESS
    same = [each for each in served.at(row.place) if each.digest == row.digest]
    if same:
        is_it = same[0].is_commit == row.is_change
        is_dated = row.originator_ns in (None, same[0].originator_ns)
        return Standing.PROVEN if is_it and is_dated else Standing.INVENTED
    if not is_complete:
        return None
    is_old = may_have_expired(_claimed(row), now_ns)
    if is_old and not row.is_change and may_have_expired(served.before(row.place), now_ns):
        return Standing.EXPIRED
    return Standing.INVENTED


def _claimed(row: Row) -> ServedEnvelope | None:
    """Return the envelope that a row claims; None for a row without a time."""
    if row.place is None or row.originator_ns is None:
        return None
    return ServedEnvelope(row.place, row.originator_ns, row.digest or b"", row.is_change, b"")

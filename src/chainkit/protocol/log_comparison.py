"""How a node finds where another node's envelopes of an originator differ from its own.

Theory of operation. A comparison begins with the range that contains all ids that either node has.
Each round asks both sides for the parts of some ranges, and the next round asks for the parts of
those parts that differ, one level below. The last round is of leaves, whose parts are ids::

    asked ──(peer's highest id, then both contents)──▶ asked, a level below ──▶ … ──▶ no more

There are as many rounds as levels, so a peer cannot prolong it. It asks for at most MOST_LEAVES
ranges in a round: those behind are left for another comparison, which begins ``after`` the ids that
this one compared. A peer's parts must hash to the digest that it gave of the range before.

An id is no difference where the side without its envelope knows it as expired. The peer's word for
expiry proves nothing: see ``Differences.expired_there``.

No I/O and no clock: see chainkit_node.repairing.comparison for the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from chainkit.errors import MalformedAnswer
from chainkit.protocol.log_ranges import (
    ABSENT,
    DIGEST_LENGTH,
    LogRange,
    RangeContent,
    disputed_digest,
    range_digest,
    root_of,
    split,
)

MOST_LEAVES: Final = 1000
"""Ranges of one round, and so leaves of one comparison."""


@dataclass(frozen=True, slots=True)
class Differences:
    """How two nodes' envelopes of an originator differ, as runs of sequence ids in rising order."""

    through: int
    """The lower of both nodes' highest sequence ids."""
    compared_through: int
    """Below ``through`` where there was too much to compare: differences behind are unknown."""
    highest_there: int
    """The peer's highest sequence id, as the peer states it."""
    only_here: tuple[range, ...] = ()
    """The peer has none of these. In a long run, this node may lack some of them, too."""
    only_there: tuple[range, ...] = ()
    """The peer has and serves each of these; this node does not know the id as expired."""
    expired_there: tuple[range, ...] = ()
    """The peer has or had these, and no longer serves them; this node does not know why it lacks
    them. Only the peer states this: a peer that hides envelopes would state the same."""
    differing: tuple[range, ...] = ()
    """Each node has another envelope: evidence against the originator, or damage."""
    disputed_here: tuple[range, ...] = ()
    """This node knows two envelopes, the peer one."""
    disputed_there: tuple[range, ...] = ()
    """The peer states that it knows two envelopes of the id; this node knows one."""

    @property
    def is_complete(self) -> bool:
        """Whether all was compared."""
        return self.compared_through == self.through


@dataclass(slots=True)
class _Found:
    """Sequence ids by their kind of difference, in the order in which they were found."""

    only_here: list[range] = field(default_factory=list)
    only_there: list[range] = field(default_factory=list)
    expired_there: list[range] = field(default_factory=list)
    differing: list[range] = field(default_factory=list)
    disputed_here: list[range] = field(default_factory=list)
    disputed_there: list[range] = field(default_factory=list)


class Comparison:
    """One comparison with one peer. Each round: ``learn_highest``, then ``compare``."""

    def __init__(self, originator_id: int, highest_here: int, after: int = 0) -> None:
        """Take an originator and this node's highest id of it; ids up to ``after`` are skipped."""
        self._originator_id = originator_id
        self._after = after
        self._highest_there: int | None = None
        self._compared_through = highest_here
        self._claims: dict[LogRange, bytes] = {}
        self._found = _Found()
        self.through = highest_here
        """Ids up to which ranges are compared, to be sent with each question."""
        self.asked: Sequence[LogRange] = [root_of(highest_here)]
        """Ranges whose contents are wanted of both sides, in rising order; none at the end."""

    def learn_highest(self, highest_there: int) -> None:
        """Take the peer's highest sequence id from an answer; the next request is to this side.

        Raises MalformedAnswer where the highest id is lower than before.
        """
        if self._highest_there is None:
            self._highest_there = highest_there
            self.through = min(self.through, highest_there)
            self._compared_through = self.through
        elif highest_there < self.through:
            raise self._error(f"at least {self.through} as the highest sequence id", highest_there)

    def compare(self, here: Sequence[RangeContent], there: Sequence[RangeContent]) -> None:
        """Take both sides' contents of ``asked``, in its order; ``asked`` then is the next round's.

        Raises MalformedAnswer for contents of the peer that no node can have.
        """
        if len(there) != len(self.asked):
            raise self._error(f"{len(self.asked)} ranges", len(there))
        for asked, content in zip(self.asked, there, strict=True):
            self._check(asked, content)
        claims: dict[LogRange, bytes] = {}
        for asked, ours, theirs in zip(self.asked, here, there, strict=True):
            if asked.level == 0:
                self._compare_ids(asked, ours, theirs)
            else:
                claims |= self._differing_parts(asked, ours, theirs)
        self._ask_next(claims)

    def differences(self) -> Differences:
        """Return the differences; complete once ``asked`` is empty."""
        found, end = self._found, self._compared_through
        return Differences(
            through=self.through,
            compared_through=end,
            highest_there=self._highest_there or 0,
            only_here=_merged(found.only_here, end),
            only_there=_merged(found.only_there, end),
            expired_there=_merged(found.expired_there, end),
            differing=_merged(found.differing, end),
            disputed_here=_merged(found.disputed_here, end),
            disputed_there=_merged(found.disputed_there, end),
        )

    def _check(self, asked: LogRange, content: RangeContent) -> None:
        parts = asked.part_count(self.through)
        if len(content.digests) != parts * DIGEST_LENGTH:
            got = f"{len(content.digests)} bytes"
            raise self._error(f"{parts} digests of {asked}", got)
        if content.expired >> parts:
            raise self._error(f"bits for {parts} parts of {asked}", f"{content.expired:#x}")
        claim = self._claims.get(asked)
        found = range_digest(asked.level, content.digests)
        if claim is not None and found != claim:
            raise self._error(f"parts of {asked} that hash to {claim.hex()}", found.hex())

    def _compare_ids(self, asked: LogRange, here: RangeContent, there: RangeContent) -> None:
        for place, (ours, theirs) in enumerate(_pairs(here, there)):
            ids = self._within(asked.part_ids(place))
            if ours != theirs and ids:
                kind = self._kind(ids[0], ours, theirs, _bit(here, place), _bit(there, place))
                if kind is not None:
                    kind.append(ids)

    def _kind(
        self, sequence_id: int, ours: bytes, theirs: bytes, is_expired: bool, is_expired_there: bool
    ) -> list[range] | None:
        found = self._found
        if theirs == ABSENT:
            return None if is_expired_there else found.only_here
        if ours == ABSENT:
            if is_expired:
                return None
            return found.expired_there if is_expired_there else found.only_there
        marker = disputed_digest(self._originator_id, sequence_id)
        if ours == marker:
            return found.disputed_here
        return found.disputed_there if theirs == marker else found.differing

    def _differing_parts(
        self, asked: LogRange, here: RangeContent, there: RangeContent
    ) -> dict[LogRange, bytes]:
        """Return the parts to compare further, with the digests that the peer gives of them."""
        wanted: dict[LogRange, bytes] = {}
        for place, (ours, theirs) in enumerate(_pairs(here, there)):
            ids = self._within(asked.part_ids(place))
            if ours == theirs or not ids:
                continue
            if theirs == ABSENT:
                if not _bit(there, place):
                    self._found.only_here.append(ids)
            elif not (ours == ABSENT and _bit(here, place)):
                wanted[asked.child(place)] = theirs
        return wanted

    def _ask_next(self, claims: dict[LogRange, bytes]) -> None:
        ranges = list(claims)
        if len(ranges) > MOST_LEAVES:
            self._compared_through = ranges[MOST_LEAVES].first - 1
        self.asked = ranges[:MOST_LEAVES]
        self._claims = {each: claims[each] for each in self.asked}

    def _within(self, ids: range) -> range:
        return range(max(ids.start, self._after + 1), min(ids.stop, self.through + 1))

    def _error(self, expected: object, got: object) -> MalformedAnswer:
        return MalformedAnswer(f"peer's ranges of originator {self._originator_id}", expected, got)


def _pairs(here: RangeContent, there: RangeContent) -> Iterable[tuple[bytes, bytes]]:
    return zip(split(here.digests), split(there.digests), strict=True)


def _bit(content: RangeContent, place: int) -> bool:
    return bool(content.expired >> place & 1)


def _merged(runs: Iterable[range], through: int) -> tuple[range, ...]:
    merged: list[range] = []
    for run in sorted(runs, key=lambda each: each.start):
        cut = range(run.start, min(run.stop, through + 1))
        if merged and cut and merged[-1].stop == cut.start:
            merged[-1] = range(merged[-1].start, cut.stop)
        elif cut:
            merged.append(cut)
    return tuple(merged)

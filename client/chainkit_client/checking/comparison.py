"""Compares several nodes' answers for one log: finds omissions and differences.

Pure. A node may lag: only ids below the node's last answered id count as left out. A node may have
removed expired envelopes. A node may answer during a repair, so an omission counts when it is
found twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from chainkit.misbehavior.received_batch import HeldEnvelope, may_have_expired
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.received_envelope import MOST_SECONDS_AHEAD
from chainkit.types import NANOSECONDS_PER_SECOND, Place
from chainkit_client.breach import Breach
from chainkit_client.reading.verified import VerifiedEnvelope

_CLOCKS_SECONDS: Final = 2 * MOST_SECONDS_AHEAD


@dataclass(frozen=True, slots=True)
class NodeLog:
    """An originator's log behind an id, as answered by one node."""

    node_id: int
    originator_id: int
    after_id: int
    envelopes: Mapping[int, VerifiedEnvelope]
    """The envelopes that keep all rules, by sequence id."""
    held: Mapping[int, HeldEnvelope]
    """All envelopes, by sequence id."""

    @property
    def last_id(self) -> int:
        """The highest answered id, ``after_id`` where there is none."""
        return max(self.held, default=self.after_id)


@dataclass(frozen=True, slots=True)
class Omission:
    """Ids that a node left out of a log, and that other nodes have."""

    node_id: int
    originator_id: int
    missing: tuple[int, ...]
    """In rising order."""
    witnesses: tuple[int, ...]
    """Nodes that answered at least one of the missing ids."""


def find_omissions(logs: Sequence[NodeLog], now_ns: int) -> list[Omission]:
    """Return each node's omissions from a log that several nodes answered.

    ``now_ns`` is the checker's clock in nanoseconds since 1970: envelopes that may have expired by
    then do not count.
    """
    answered: dict[int, list[NodeLog]] = {}
    for log in logs:
        for sequence_id in log.envelopes:
            answered.setdefault(sequence_id, []).append(log)
    expected = [
        each for each, holders in answered.items() if not _may_be_gone(each, holders, now_ns)
    ]
    found = []
    for log in logs:
        last_id = log.last_id
        missing = sorted(
            each for each in expected if log.after_id < each < last_id and each not in log.held
        )
        if missing:
            holders = {holder.node_id for each in missing for holder in answered[each]}
            found.append(
                Omission(log.node_id, log.originator_id, tuple(missing), tuple(sorted(holders)))
            )
    return found


def _may_be_gone(sequence_id: int, holders: Iterable[NodeLog], now_ns: int) -> bool:
    expiries = [each.envelopes[sequence_id].expires_at for each in holders]
    latest_expiry = now_ns // NANOSECONDS_PER_SECOND + _CLOCKS_SECONDS
    return any(each is not None and each <= latest_expiry for each in expiries)


def find_own_gaps(log: NodeLog, now_ns: int) -> list[Breach]:
    """Return the gaps in a node's answer for its own log, where nothing can have expired.

    A node signs its ids one after the other, so a gap needs no witness.
    """
    found = []
    for earlier, later in pairwise(sorted(log.held)):
        before, behind = log.held[earlier], log.held[later]
        if later > earlier + 1 and not may_have_expired(before, now_ns):
            missing = range(earlier + 1, later)
            reason = f"its own log lacks {ids_in_words(missing)}"
            evidence = (behind.envelope, before.envelope)
            found.append(Breach(log.node_id, Misbehavior.OUT_OF_ORDER, reason, evidence))
    return found


def find_dangling(logs: Iterable[NodeLog], highest: Mapping[int, int]) -> list[Breach]:
    """Return the envelopes that depend on a higher id of an originator than any node has.

    ``highest`` is each originator's highest id at any node, asked for after the logs were read.
    """
    found: dict[Place, Breach] = {}
    for log in logs:
        for each in log.envelopes.values():
            for originator_id, sequence_id in each.depends_on.items():
                if sequence_id > highest.get(originator_id, 0) and each.place not in found:
                    reason = (
                        f"{each.sequence_id} depends on {sequence_id} of originator "
                        f"{originator_id}, which no node has"
                    )
                    kind, evidence = Misbehavior.CAUSAL_ORDERING, (each.envelope,)
                    found[each.place] = Breach(each.originator_id, kind, reason, evidence)
    return list(found.values())


def find_equivocations(logs: Sequence[NodeLog]) -> list[Breach]:
    """Return the pairs of different envelopes that an originator signed under one id."""
    first: dict[int, HeldEnvelope] = {}
    found = {}
    for log in logs:
        for sequence_id, envelope in log.held.items():
            other = first.setdefault(sequence_id, envelope)
            if other.digest != envelope.digest and sequence_id not in found:
                found[sequence_id] = Breach(
                    log.originator_id,
                    Misbehavior.DUPLICATE_SEQUENCE_ID,
                    f"it signed two different envelopes {sequence_id}",
                    (envelope.envelope, other.envelope),
                )
    return list(found.values())


def ids_in_words(ids: Sequence[int]) -> str:
    """Return rising ids as ranges, the first three of them: ``4 to 6, 9``."""
    ranges: list[tuple[int, int]] = []
    for each in ids:
        if ranges and ranges[-1][1] == each - 1:
            ranges[-1] = (ranges[-1][0], each)
        else:
            ranges.append((each, each))
    shown = [str(low) if low == high else f"{low} to {high}" for low, high in ranges[:3]]
    more = len(ranges) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")

"""Topics whose envelopes have an order: honest ones, arbitrary ones, and the order by definition.

The orders here are oracles: the specification's own loop (XIP-49 §3.3.5), and the same with all
that the client demands beyond it, quadratic and worse.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st

from chainkit.types import Place
from chainkit_client.ordering.causal import CausalOrder, Policy

ORIGINATORS = (0, 100, 200, 300)


@dataclass(frozen=True, slots=True)
class Sent:
    """An envelope, as far as its order needs it."""

    originator_id: int
    sequence_id: int
    originator_ns: int = 0
    depends_on: Mapping[int, int] = field(default_factory=dict, hash=False)
    is_commit: bool = False

    @property
    def place(self) -> Place:
        """Originator and sequence id."""
        return self.originator_id, self.sequence_id

    @property
    def dependencies(self) -> list[Place]:
        """The places that it depends on."""
        return sorted(place for place in self.depends_on.items() if place[1] > 0)

    @property
    def is_of_future(self) -> bool:
        """Whether it depends on itself, or on a later one of its originator."""
        return self.depends_on.get(self.originator_id, 0) >= self.sequence_id


def places(envelopes: Iterable[Sent]) -> list[Place]:
    """Return the places of envelopes, in their order."""
    return [each.place for each in envelopes]


@st.composite
def honest_topics(draw: st.DrawFn, most: int = 25) -> list[Sent]:
    """Draw a topic in the order of its making: no author has seen what was not there yet.

    Clocks differ, and go back. Ids have gaps, where the originators' other topics are.
    """
    seen: list[dict[int, int]] = [{}]
    envelopes: list[Sent] = []
    for _ in range(draw(st.integers(0, most))):
        originator_id = draw(st.sampled_from(ORIGINATORS))
        sequence_id = seen[-1].get(originator_id, 0) + draw(st.integers(1, 2))
        envelopes.append(
            Sent(
                originator_id,
                sequence_id,
                draw(st.integers(0, 9)),
                seen[-1 - draw(st.integers(0, min(3, len(seen) - 1)))],
                is_commit=originator_id == 0,
            )
        )
        seen.append({**seen[-1], originator_id: sequence_id})
    return envelopes


few_originators = st.sampled_from(ORIGINATORS[:3])

arbitrary_topics = st.lists(
    st.builds(
        Sent,
        few_originators,
        st.integers(1, 5),
        st.integers(0, 3),
        st.dictionaries(few_originators, st.integers(0, 6)),
        st.booleans(),
    ),
    max_size=10,
    unique_by=lambda each: each.place,
)
"""Authors and originators who claim anything: cycles, and places that never were."""


def order_by_definition(
    envelopes: Iterable[Sent], known: Collection[Place], policy: Policy = Policy.WAIT
) -> CausalOrder[Sent]:
    """Return what is expected of a batch."""
    left = sorted(envelopes, key=_timestamp)
    batch, applied = set(places(left)), set(known)
    ordered: list[Sent] = []

    def apply(envelope: Sent) -> None:
        applied.add(envelope.place)
        ordered.append(envelope)
        left.remove(envelope)

    def apply_met() -> None:
        while met := [each for each in left if not _awaited(each, left) and not unmet_of(each)]:
            apply(met[0])

    def unmet_of(envelope: Sent) -> list[Place]:
        return [
            (originator_id, sequence_id)
            for originator_id, sequence_id in envelope.dependencies
            if (originator_id == envelope.originator_id and envelope.is_of_future)
            or (originator_id, sequence_id) not in applied
            or any(
                each.originator_id == originator_id and each.sequence_id <= sequence_id
                for each in left
                if each != envelope
            )
        ]

    apply_met()
    cycles = _cycles(left)
    unmet = {}
    while policy is Policy.APPLY and left:
        forced = next(each for each in left if _waits_only_in_cycle(each, left, cycles))
        unmet[forced.place] = unmet_of(forced)
        apply(forced)
        apply_met()
    everything = sorted(envelopes, key=_timestamp)
    missing: dict[Place, list[Sent]] = {}
    for each in everything:
        for place in each.dependencies:
            is_own_future = place[0] == each.originator_id and each.is_of_future
            if place not in batch and place not in known and not is_own_future:
                missing.setdefault(place, []).append(each)
    return CausalOrder(ordered, left, missing, cycles, unmet)


def order_of_specification(envelopes: Iterable[Sent]) -> list[Sent]:
    """Return the order of XIP-49 §3.3.5 itself, of a topic of which nothing is missing."""
    left, ordered = sorted(envelopes, key=_timestamp), []
    cursor: dict[int, int] = {}
    while left:
        met = next(
            each
            for each in left
            if all(
                cursor.get(originator_id, 0) >= last_seen
                for originator_id, last_seen in each.dependencies
            )
        )
        cursor[met.originator_id] = max(cursor.get(met.originator_id, 0), met.sequence_id)
        ordered.append(met)
        left.remove(met)
    return ordered


def _timestamp(envelope: Sent) -> tuple[int, bool, int, Place]:
    last_seen = envelope.depends_on.get(0, 0)
    return last_seen, envelope.is_commit, envelope.originator_ns, envelope.place


def _awaited(envelope: Sent, others: Iterable[Sent]) -> list[Sent]:
    """Return those that must come before an envelope."""
    return [
        other
        for other in others
        if (
            other.sequence_id < envelope.sequence_id
            if other.originator_id == envelope.originator_id
            else other.sequence_id <= envelope.depends_on.get(other.originator_id, 0)
        )
    ]


def _reached(left: list[Sent]) -> dict[Place, set[Place]]:
    """Return the places that must be applied before each one, also those behind others."""
    reached = {each.place: set(places(_awaited(each, left))) for each in left}
    for through in reached:
        for start in reached:
            if through in reached[start]:
                reached[start] |= reached[through]
    return reached


def _cycles(left: list[Sent]) -> list[list[Sent]]:
    reached = _reached(left)
    cycles: list[list[Sent]] = []
    for each in left:
        cycle = [
            other
            for other in left
            if other.place in reached[each.place] and each.place in reached[other.place]
        ]
        if not cycle and each.is_of_future:
            cycle = [each]
        if cycle and cycle not in cycles:
            cycles.append(cycle)
    return cycles


def _waits_only_in_cycle(envelope: Sent, left: list[Sent], cycles: list[list[Sent]]) -> bool:
    """Return whether all that an envelope waits for are of its cycle, and of other originators."""
    own = next((places(cycle) for cycle in cycles if envelope in cycle), [])
    return _reached(left)[envelope.place] <= set(own) and not any(
        other.originator_id == envelope.originator_id for other in _awaited(envelope, left)
    )

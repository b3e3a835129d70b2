"""The machine of a group's rounds: all steps and events, as a table. Any other pair is an error.

A round looks up applied payloads that are not final (CHECKING) and doubted payloads (LOOKING_UP),
reads the topic (READING), lets the chain decide between two payloads in one place (SETTLING), looks
up the next payloads (CONFIRMING), applies these to the group (APPLYING), and marks final payloads
(FINALIZING).

- Where the chain took a payload back, or another process moved the group, the topic is read from
  its beginning: groups apply nothing twice, so reading again costs only time.
- A payload that the chain does not have is doubted, and left out: the chain's endpoint may lag
  behind nodes, or another node may serve another payload in its place. The topic is read again in
  the same round, and the next rounds look up the doubted payload again.
- A round that fails ends at its step. The next round continues from the state.

Pure: the caller does the work of each step, and writes the result into the state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias

from chainkit.types import BlockReference, Place
from chainkit_client.groups.payload import Payload
from chainkit_client.intents.machine import IllegalTransition
from chainkit_client.network.chain_status import ChainStatus, Found
from chainkit_client.reading.answer import Conflict
from chainkit_client.reading.verified import VerifiedEnvelope
from chainkit_client.topics.following import Applied, Followed

MOST_READS: Final = 4
"""How often a topic is read in one round; the next round goes on."""

MOST_DOUBTED: Final = 100
"""Doubted payloads, each looked up once in a round; beyond it the oldest is forgotten."""

LookedUp: TypeAlias = tuple[VerifiedEnvelope, Found]


class Step(Enum):
    """A step of a round. The work of each step ends in an event."""

    IDLE = "between two rounds"
    CHECKING = "look up what is applied and not final"
    LOOKING_UP = "look up what is doubted"
    READING = "read the topic"
    SETTLING = "let the chain decide between two payloads in one place"
    RECHECKING = "look up what is not final again: the chain changed since the round began"
    CONFIRMING = "look up what is next"
    APPLYING = "hand in what is confirmed"
    FINALIZING = "let the group forget what no reorg takes back any more"


class Event(Enum):
    """A possible result of a step."""

    STARTED = "a round is asked for"
    UNCHANGED = "nothing is new"
    TAKEN_BACK = "the chain took payloads back, and the group went back"
    LEFT = "another process left the group elsewhere"
    CONFIRMED = "the chain has what was doubted"
    READ = "nodes answered"
    READ_OFTEN = "read as often as one round may"
    REPLACED = "the chain has the payload that was served, and not the one that is held"
    LOOKED_UP = "looked up to the first that is not confirmed"
    HELD_UP = "applied up to one that is not confirmed"
    APPLIED = "all is applied"
    FINALIZED = "what is final is forgotten"
    SILENT = "no node answered"
    FAILED = "the work was not done"


@dataclass(frozen=True, slots=True)
class Move:
    """The consequence of an event."""

    step: Step
    begins_again: bool = False
    """Whether the topic is read from its beginning, without what is doubted."""


TRANSITIONS: Final[Mapping[tuple[Step, Event], Move]] = MappingProxyType(
    {
        (Step.IDLE, Event.STARTED): Move(Step.CHECKING),
        (Step.CHECKING, Event.UNCHANGED): Move(Step.LOOKING_UP),
        (Step.CHECKING, Event.TAKEN_BACK): Move(Step.LOOKING_UP, begins_again=True),
        (Step.CHECKING, Event.LEFT): Move(Step.LOOKING_UP, begins_again=True),
        (Step.CHECKING, Event.FAILED): Move(Step.IDLE),
        (Step.LOOKING_UP, Event.UNCHANGED): Move(Step.READING),
        (Step.LOOKING_UP, Event.CONFIRMED): Move(Step.READING, begins_again=True),
        (Step.LOOKING_UP, Event.FAILED): Move(Step.IDLE),
        (Step.READING, Event.READ): Move(Step.SETTLING),
        (Step.READING, Event.READ_OFTEN): Move(Step.FINALIZING),
        (Step.READING, Event.SILENT): Move(Step.IDLE),
        # The topic may have returned envelopes that were not stored: no later answer has them.
        (Step.READING, Event.FAILED): Move(Step.IDLE, begins_again=True),
        (Step.SETTLING, Event.UNCHANGED): Move(Step.CONFIRMING),
        (Step.SETTLING, Event.REPLACED): Move(Step.RECHECKING),
        (Step.SETTLING, Event.FAILED): Move(Step.IDLE),
        # The served payload is stored, and replaces the held payload from now on.
        (Step.RECHECKING, Event.UNCHANGED): Move(Step.READING, begins_again=True),
        (Step.RECHECKING, Event.TAKEN_BACK): Move(Step.READING, begins_again=True),
        (Step.RECHECKING, Event.LEFT): Move(Step.READING, begins_again=True),
        (Step.RECHECKING, Event.FAILED): Move(Step.IDLE),
        (Step.CONFIRMING, Event.LOOKED_UP): Move(Step.APPLYING),
        (Step.CONFIRMING, Event.FAILED): Move(Step.IDLE),
        (Step.APPLYING, Event.APPLIED): Move(Step.FINALIZING),
        (Step.APPLYING, Event.HELD_UP): Move(Step.READING, begins_again=True),
        (Step.APPLYING, Event.LEFT): Move(Step.READING, begins_again=True),
        # The number of applied payloads is unknown: apply all again.
        (Step.APPLYING, Event.FAILED): Move(Step.IDLE, begins_again=True),
        (Step.FINALIZING, Event.FINALIZED): Move(Step.IDLE),
        (Step.FINALIZING, Event.FAILED): Move(Step.IDLE),
    }
)


@dataclass(frozen=True, slots=True)
class ConfirmedPayload:
    """A payload of the chain, and the block in which it was found."""

    envelope: VerifiedEnvelope
    block: BlockReference


@dataclass(frozen=True, slots=True)
class SyncState:
    """Everything that is known of a group's topic beside the topic itself."""

    final: Mapping[int, int]
    """The last final id of each originator of the chain."""
    step: Step = Step.IDLE
    reads: int = 0
    """How often the topic was read in this round."""
    confirmed: Mapping[Place, ConfirmedPayload] = field(default_factory=dict)
    """Payloads that the chain has and that are not final, by place."""
    doubted: Mapping[bytes, tuple[VerifiedEnvelope, ChainStatus]] = field(default_factory=dict)
    """Payloads that the chain does not have, by digest; the oldest first."""
    conflicts: Sequence[Conflict] = ()
    """Conflicts of the last answer: a payload was served in a held payload's place."""
    pending: tuple[Applied, ...] = ()
    """Envelopes that are next in the order, and not confirmed yet."""
    ready: tuple[Applied, ...] = ()
    """Confirmed envelopes before ``pending`` in the order, not yet applied to the group."""
    handed_in: Mapping[Place, Payload] = field(default_factory=dict)
    """Payloads of the chain that were applied to the group and are not final."""

    @property
    def waits_for_chain(self) -> bool:
        """Whether the chain lacks a payload now that it may have later."""
        return any(status is ChainStatus.ABSENT for _, status in self.doubted.values())


def transition(step: Step, event: Event) -> Move:
    """Return what follows from an event. Raises IllegalTransition where the table has nothing."""
    found = TRANSITIONS.get((step, event))
    if found is None:
        expected = " or ".join(each.name for each, possible in TRANSITIONS if possible is event)
        raise IllegalTransition(f"step of a group's round ({event.value})", expected, step.name)
    return found


def moved(state: SyncState, event: Event) -> SyncState:
    """Return the state after an event. Raises IllegalTransition."""
    move = transition(state.step, event)
    reads = 0 if event is Event.STARTED else state.reads
    if not move.begins_again:
        return replace(state, step=move.step, reads=reads)
    return replace(
        state, step=move.step, reads=reads, conflicts=(), pending=(), ready=(), handed_in={}
    )


def looked_up(state: SyncState, found: Iterable[LookedUp]) -> SyncState:
    """Take the results of look-ups: each payload is confirmed, or doubted."""
    confirmed_payloads, lack = dict(state.confirmed), []
    for envelope, each in found:
        if each.status is ChainStatus.CONFIRMED and each.block is not None:
            confirmed_payloads[envelope.place] = ConfirmedPayload(envelope, each.block)
        else:
            lack.append((envelope, each))
    return replace(doubting(state, lack), confirmed=confirmed_payloads)


def doubting(state: SyncState, found: Iterable[LookedUp]) -> SyncState:
    """Doubt payloads, and forget the oldest doubted ones beyond MOST_DOUBTED."""
    doubted = dict(state.doubted)
    for envelope, each in found:
        doubted[envelope.digest] = envelope, each.status
        if len(doubted) > MOST_DOUBTED:
            del doubted[next(iter(doubted))]
    return replace(state, doubted=doubted)


def trusting(state: SyncState, digests: Collection[bytes]) -> SyncState:
    """Stop doubting payloads."""
    doubted = {each: one for each, one in state.doubted.items() if each not in digests}
    return replace(state, doubted=doubted)


def taken_back(state: SyncState, gone: Iterable[VerifiedEnvelope]) -> SyncState:
    """Drop confirmed payloads from the first one on that an originator of the chain has lost."""
    lowest: dict[int, int] = {}
    for each in gone:
        first = lowest.get(each.originator_id, each.sequence_id)
        lowest[each.originator_id] = min(each.sequence_id, first)
    confirmed_payloads = {
        (one, number): each
        for (one, number), each in state.confirmed.items()
        if number < lowest.get(one, number + 1)
    }
    return replace(state, confirmed=confirmed_payloads)


def read(state: SyncState, found: Followed) -> SyncState:
    """Take the envelopes that nodes answered."""
    pending = (*state.pending, *found.applied)
    return replace(state, reads=state.reads + 1, conflicts=found.conflicts, pending=pending)


def confirmed(state: SyncState, count: int) -> SyncState:
    """Move the first ``count`` pending envelopes to ``ready``."""
    return replace(state, ready=state.pending[:count], pending=state.pending[count:])


def handed_in(state: SyncState, payloads: Iterable[Payload]) -> SyncState:
    """Record payloads that were applied to the group."""
    given = {each.place: each for each in payloads if each.place in state.confirmed}
    return replace(state, ready=(), handed_in={**state.handed_in, **given})


def passed(state: SyncState, final_block: int) -> Mapping[Place, ConfirmedPayload]:
    """Return the confirmed payloads in blocks up to a height."""
    return {
        place: each for place, each in state.confirmed.items() if each.block.number <= final_block
    }


def finalized(state: SyncState, places: Collection[Place]) -> SyncState:
    """Record that payloads are final."""
    final = dict(state.final)
    for one, number in places:
        final[one] = max(number, final.get(one, 0))
    return replace(
        state,
        final=final,
        confirmed={each: one for each, one in state.confirmed.items() if each not in places},
        handed_in={each: one for each, one in state.handed_in.items() if each not in places},
    )

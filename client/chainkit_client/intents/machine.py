"""The intent machine: all transitions, as a table. Any other transition is an error.

An intent waits (TO_SEND), is built for the group's epoch and sent (PUBLISHED), and is read back
from the network (COMMITTED). Then welcomes follow, if there are any (PROCESSED). If the epoch is
over before it was read back, it is built again from its arguments.

- A payload is stored before it is sent. Nobody knows what became of one whose answer is lost, so it
  stays PUBLISHED: it is looked up, and the same bytes are sent again only if they are absent for
  good.
- The network may show any payload that was ever built, late. It counts if the group is still where
  it was built, in each state: all other members accept it.
- A reorg takes a commit back, and all that was built on it.

Pure: the caller knows the events, and writes what follows in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from chainkit.errors import ChainkitError
from chainkit_client.storage.schema import IntentState

MOST_REFUSALS: Final = 3
"""How often an intent may be refused, before it is given up."""


class IllegalTransition(ChainkitError):
    """An event that the machine has no transition for; nothing was changed."""


class Event(Enum):
    """Anything that may happen to an intent."""

    BUILT = "built for the current epoch"
    NOTHING_TO_DO = "nothing to do"
    UNBUILT = "cannot be built now"
    GIVEN_UP = "cannot be built, or refused too often"
    OUTCOME_UNKNOWN = "outcome unknown"
    TAKEN = "taken by the network"
    REFUSED = "refused"
    OWN_READ = "own payload read"
    EPOCH_OVER = "its epoch is over"
    FOLLOWED_UP = "welcomes sent"
    RETRACTED = "taken back by a reorg"


_S = IntentState

TRANSITIONS: Final[Mapping[tuple[IntentState, Event], IntentState]] = MappingProxyType(
    {
        (_S.TO_SEND, Event.BUILT): _S.PUBLISHED,
        (_S.TO_SEND, Event.NOTHING_TO_DO): _S.PROCESSED,
        # Nobody offered a key package: it counts as a refusal.
        (_S.TO_SEND, Event.UNBUILT): _S.TO_SEND,
        (_S.TO_SEND, Event.GIVEN_UP): _S.ERROR,
        (_S.PUBLISHED, Event.OUTCOME_UNKNOWN): _S.PUBLISHED,
        (_S.PUBLISHED, Event.TAKEN): _S.PUBLISHED,
        # A refusal says that the payload is not there; it is built again, for the epoch of then.
        (_S.PUBLISHED, Event.REFUSED): _S.TO_SEND,
        (_S.PUBLISHED, Event.OWN_READ): _S.COMMITTED,
        # Another's commit was accepted, or a message became too old for others to read.
        (_S.PUBLISHED, Event.EPOCH_OVER): _S.TO_SEND,
        (_S.COMMITTED, Event.FOLLOWED_UP): _S.PROCESSED,
        # An earlier payload comes after all: after a reorg, or one that was said to be refused.
        (_S.TO_SEND, Event.OWN_READ): _S.COMMITTED,
        (_S.ERROR, Event.OWN_READ): _S.COMMITTED,
        (_S.PUBLISHED, Event.RETRACTED): _S.TO_SEND,
        (_S.COMMITTED, Event.RETRACTED): _S.TO_SEND,
        (_S.PROCESSED, Event.RETRACTED): _S.TO_SEND,
    }
)

UNFINISHED: Final = (_S.TO_SEND, _S.PUBLISHED, _S.COMMITTED)
"""States in which something is still to be done."""


def next_state(state: IntentState, event: Event) -> IntentState:
    """Return the state after an event. Raises IllegalTransition where the table has none."""
    found = TRANSITIONS.get((state, event))
    if found is None:
        expected = " or ".join(each.name for each in sources(event))
        subject = f"state of an intent ({event.value})"
        raise IllegalTransition(subject, expected, state.name)
    return found


def sources(event: Event) -> tuple[IntentState, ...]:
    """Return the states in which an event may happen."""
    return tuple(state for state, possible in TRANSITIONS if possible is event)


def is_given_up(refusals: int) -> bool:
    """Return whether an intent that was refused so often is given up."""
    return refusals >= MOST_REFUSALS


def is_too_old(epoch: int, current: int, past_epochs: int) -> bool:
    """Return whether a message of an epoch must be encrypted anew: soon others cannot read it."""
    return epoch + past_epochs <= current

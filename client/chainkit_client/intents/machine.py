"""The intent machine: all transitions, as a table. Any other transition is an error.

An intent waits (TO_SEND), is built for the group's epoch and sent (PUBLISHED), and is read back
from the network (COMMITTED). Then welcomes follow, if there are any (PROCESSED). If the epoch ends
before the payload is read back, the intent is built again from its arguments.

- A payload is stored before it is sent. After a lost answer, the outcome is unknown and the intent
  stays PUBLISHED: the payload is looked up, and the same bytes are sent again only if the payload
  is absent for good. A message that is absent after that gets another payload: a gateway answers
  the same bytes with the same envelope, which its node may have signed and not stored.
- The network may deliver any payload that was ever built, late. In each state, the payload counts
  if the group is still in the payload's epoch: all other members accept the payload.
- A reorg takes a commit back, and every payload that was built on the commit.

Pure: the caller knows the events, and writes the new states in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from chainkit.errors import ChainkitError
from chainkit_client.storage.schema import IntentState

MOST_REFUSALS: Final = 3
"""Refusals after which an intent is given up."""


class IllegalTransition(ChainkitError):
    """An event without a transition in the machine; nothing was changed."""


class Event(Enum):
    """An event of an intent."""

    BUILT = "built for the current epoch"
    NOTHING_TO_DO = "nothing to do"
    UNBUILT = "cannot be built now"
    GIVEN_UP = "cannot be built, or refused too often"
    OUTCOME_UNKNOWN = "outcome unknown"
    TAKEN = "taken by the network"
    CONFLICTED = "names other commits than those that are read now, or stays nowhere"
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
        # A missing key package counts as a refusal.
        (_S.TO_SEND, Event.UNBUILT): _S.TO_SEND,
        (_S.TO_SEND, Event.GIVEN_UP): _S.ERROR,
        (_S.PUBLISHED, Event.OUTCOME_UNKNOWN): _S.PUBLISHED,
        (_S.PUBLISHED, Event.TAKEN): _S.PUBLISHED,
        # The network does not have a refused payload: build again, for the epoch of that time.
        (_S.PUBLISHED, Event.REFUSED): _S.TO_SEND,
        (_S.PUBLISHED, Event.CONFLICTED): _S.TO_SEND,
        (_S.PUBLISHED, Event.OWN_READ): _S.COMMITTED,
        # Another member's commit was accepted, or members can no longer read the message.
        (_S.PUBLISHED, Event.EPOCH_OVER): _S.TO_SEND,
        (_S.COMMITTED, Event.FOLLOWED_UP): _S.PROCESSED,
        # An earlier payload arrives after all: after a reorg, or in spite of a refusal.
        (_S.TO_SEND, Event.OWN_READ): _S.COMMITTED,
        (_S.ERROR, Event.OWN_READ): _S.COMMITTED,
        (_S.PUBLISHED, Event.RETRACTED): _S.TO_SEND,
        (_S.COMMITTED, Event.RETRACTED): _S.TO_SEND,
        (_S.PROCESSED, Event.RETRACTED): _S.TO_SEND,
    }
)

UNFINISHED: Final = (_S.TO_SEND, _S.PUBLISHED, _S.COMMITTED)
"""States of intents with work left."""


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
    """Return whether a message must be encrypted anew: soon members cannot read its epoch."""
    return epoch + past_epochs <= current

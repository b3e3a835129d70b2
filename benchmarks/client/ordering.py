"""How long the client takes to order a topic's envelopes causally."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from chainkit_client.ordering.causal import causally_ordered

ENVELOPES: Final = 100_000
ORIGINATORS: Final = (100, 200, 300, 400)
EPOCH_MESSAGES: Final = 500
"""Between two commits."""
MOST_SKEW_NS: Final = 2_000_000_000
"""By which the originators' clocks differ."""
INTERVAL_NS: Final = 50_000_000
MOST_UNSEEN: Final = 5
"""Envelopes that were under way when an author published."""
_RUNS: Final = 3


@dataclass(frozen=True, slots=True)
class Sent:
    """An envelope, as far as its order needs it."""

    originator_id: int
    sequence_id: int
    originator_ns: int
    is_commit: bool
    depends_on: Mapping[int, int]


def conversation(count: int = ENVELOPES, seed: int = 1) -> list[Sent]:
    """Build a shuffled topic of several originators and the chain.

    Each author has seen all that was sent before, but for the last few. Sequence ids have gaps,
    where the originators' other topics are.
    """
    chance = random.Random(seed)
    skews = {each: chance.randrange(MOST_SKEW_NS) for each in ORIGINATORS}
    last = dict.fromkeys((0, *ORIGINATORS), 0)
    seen = deque([dict[int, int]()], maxlen=MOST_UNSEEN + 1)
    envelopes = []
    for number in range(1, count + 1):
        is_commit = number % EPOCH_MESSAGES == 0
        originator_id = 0 if is_commit else chance.choice(ORIGINATORS)
        last[originator_id] += chance.randint(1, 9)
        sent_ns = number * INTERVAL_NS + skews.get(originator_id, 0)
        depends_on = chance.choice(seen)
        envelopes.append(Sent(originator_id, last[originator_id], sent_ns, is_commit, depends_on))
        seen.append({each: sequence_id for each, sequence_id in last.items() if sequence_id})
    chance.shuffle(envelopes)
    return envelopes


def measure() -> float:
    """Return the seconds in which ENVELOPES of a conversation are ordered, the best of some."""
    envelopes = conversation()
    return min(_seconds(envelopes) for _ in range(_RUNS))


def _seconds(envelopes: list[Sent]) -> float:
    began = time.perf_counter()
    order = causally_ordered(envelopes, lambda originator_id, sequence_id: False)
    taken = time.perf_counter() - began
    assert len(order.ordered) == len(envelopes)
    return taken

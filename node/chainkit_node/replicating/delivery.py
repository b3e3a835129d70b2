"""Decides between streams and comparisons, which bring the same envelopes.

A comparison is for what no stream brings. A node that stores slower than its streams deliver would
otherwise fetch the whole backlog a second time, and be later still.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto

from chainkit.protocol.originated_envelope import parse_originated


class Delivery(Enum):
    """The work of an originator's streams at a moment."""

    NONE = auto()
    """No stream is open."""
    WAITS = auto()
    """A stream is open, and this node waits for its next frame."""
    TAKES = auto()
    """This node is storing a frame: the streams deliver faster than it stores."""


class StreamsFirst:
    """Leaves the end of a log to the streams; used on the event loop's thread."""

    def __init__(self, delivery: Callable[[int], Delivery]) -> None:
        """Take a function of an originator's id."""
        self._delivery = delivery
        self._left: dict[int, int] = {}
        """The highest id of each originator that was left to the streams."""

    def leaves(self, originator_id: int, held: int, highest: int) -> bool:
        """Return whether ids behind ``held``, up to a peer's ``highest``, are left to streams.

        A stream that waits brings its news at once. So what it has not brought by the next
        comparison is fetched: a peer may hold a stream open and send nothing.
        """
        delivery = self._delivery(originator_id)
        has_kept_up = held >= self._left.pop(originator_id, 0)
        is_left = delivery is Delivery.TAKES or (delivery is Delivery.WAITS and has_kept_up)
        if is_left:
            self._left[originator_id] = highest
        return is_left


class Repeats:
    """Counts the envelopes that a peer has sent again in one stream, without new ones between."""

    def __init__(self, after_id: int) -> None:
        """Take the id behind which the stream was asked for."""
        self._sent_id = after_id
        self.count = 0

    def brought_new(self) -> None:
        """Record a frame with envelopes that this node lacked."""
        self.count = 0

    def brought_held(self, frame: Sequence[bytes]) -> None:
        """Record a frame of envelopes that this node holds.

        The peer has sent an id for the first time where it is above all ids of the stream so far:
        a comparison or another stream was faster. Raises MalformedEnvelope.
        """
        for each in frame:
            sequence_id = parse_originated(each).envelope.sequence_id
            self.count += sequence_id <= self._sent_id
            self._sent_id = max(self._sent_id, sequence_id)

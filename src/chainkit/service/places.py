"""Places that callers hold: those of all together, and the share of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from chainkit.service.allowance import Held
from chainkit.service.refusals import Overloaded, OverShare


class Places:
    """Places of one sort, or bytes; used on the event loop's thread."""

    def __init__(self, things: str, caller: str, most: int, most_of_one: int) -> None:
        """Take words for a refusal, such as ``open streams`` and ``address``; 0 is no limit."""
        self._things = things
        self._caller = caller
        self._held = Held(most, most_of_one)

    @property
    def total(self) -> int:
        """How many places are held."""
        return self._held.total

    @contextmanager
    def hold(self, name: str, amount: int = 1) -> Iterator[None]:
        """Hold places of a caller to the end of the block. Raises Overloaded."""
        held = self._held
        if not held.has_room(amount):
            expected = f"at most {held.most} in all"
            raise Overloaded(self._things, expected, "more; try another node, or later")
        if not held.has_room_for(name, amount):
            expected = f"at most {held.most_of_one} from one {self._caller}"
            raise OverShare(self._things, expected, "more; wait until one ends")
        held.take(name, amount)
        try:
            yield
        finally:
            held.give_back(name, amount)

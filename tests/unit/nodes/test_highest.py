"""The search for the highest id: right for every log and guess, and few questions."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from chainkit.nodes.highest import find_highest

LARGEST = 2**63 - 1


class Log:
    """Ids that are held, and how often it was asked."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = sorted(ids)
        self.questions = 0

    async def first_behind(self, after: int) -> int | None:
        self.questions += 1
        place = bisect_right(self.ids, after)
        return self.ids[place] if place < len(self.ids) else None

    def highest(self, guess: int) -> int | None:
        return asyncio.run(find_highest(self.first_behind, guess))


@given(
    st.lists(st.integers(1, LARGEST) | st.integers(1, 100), max_size=20, unique=True),
    st.integers(0, LARGEST) | st.integers(0, 120),
)
def test_find_highest__any_log_and_guess__is_the_last_id(ids: list[int], guess: int) -> None:
    log = Log(ids)

    assert log.highest(guess) == max(ids, default=0)
    assert log.questions < 140


def test_find_highest__right_guess_or_empty_log__takes_two_questions() -> None:
    full, empty = Log(range(1, 1_001)), Log([])

    assert (full.highest(1_000), full.questions) == (1_000, 2)
    assert (empty.highest(0), empty.questions) == (0, 1)


def test_find_highest__small_difference_either_way__takes_few_questions() -> None:
    for guess in (999_990, 1_000_000 + 10):
        log = Log(range(1, 1_000_001))

        assert log.highest(guess) == 1_000_000
        assert log.questions < 12


def test_find_highest__answers_that_contradict_each_other__are_no_number() -> None:
    async def always_the_same(after: int) -> int | None:
        return 5

    async def too_low(after: int) -> int | None:
        return None if after >= 10 else 3

    assert asyncio.run(find_highest(always_the_same)) is None
    assert asyncio.run(find_highest(too_low, 10)) is None

"""The seeds and cases that a run plays: some are always the same, some are others each day.

`make test` prints the day, and ``CHAINKIT_DAY=YYYY-MM-DD`` plays that day's cases again. `make
soak` (``CHAINKIT_SOAK``) plays all cases, and thousands of seeds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import islice
from typing import Final, TypeVar

import pytest

IS_SOAK: Final = "CHAINKIT_SOAK" in os.environ

_VARIABLE: Final = "CHAINKIT_DAY"
_SEEDS_OF_A_DAY: Final = 1_000_000

T = TypeVar("T")

only_in_soak: Final = pytest.mark.skipif(not IS_SOAK, reason="`make soak` plays it")
"""Marks a test that shows at length what other tests show in short."""


def day_of_run() -> date:
    """Return the run's day, the same in all processes that it starts after the first call.

    Raises ValueError where ``CHAINKIT_DAY`` is no date.
    """
    today = datetime.now(UTC).date().isoformat()
    return date.fromisoformat(os.environ.setdefault(_VARIABLE, today))


def seeds_of_the_day(count: int) -> range:
    """Return ``count`` seeds above 10^11, which no other day has."""
    first = day_of_run().toordinal() * _SEEDS_OF_A_DAY
    return range(first, first + count)


def is_of_a_day(seed: int) -> bool:
    """Return whether another run may not play this case: no test may depend on its result."""
    return seed >= _SEEDS_OF_A_DAY


def seeds(fixed: int, of_day: int, in_soak: int) -> Sequence[int]:
    """Return the first seeds and some of the day's; in a soak, more of the first ones."""
    return range(in_soak) if IS_SOAK else [*range(fixed), *seeds_of_the_day(of_day)]


def cases_of_the_day(cases: Iterable[T], share: int) -> Iterator[T]:
    """Choose one of each ``share`` cases, others on the next day; in a soak, all.

    For long lists of cases that are much alike.
    """
    return iter(cases) if IS_SOAK else islice(cases, day_of_run().toordinal() % share, None, share)


def parts(chosen: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Cut seeds into parts of at most ``size``, one for each test."""
    return (chosen[place : place + size] for place in range(0, len(chosen), size))


def span(part: Sequence[int]) -> str:
    """Return the name of a part in a test's id: its first and last seed."""
    return f"{part[0]}..{part[-1]}"

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Event

import pytest

from chainkit.errors import StoreUnavailable
from chainkit_gateway.together import MOST_TOGETHER, Together


class Work:
    """Doubles numbers once it may begin, and keeps what it was handed."""

    def __init__(self) -> None:
        self.may_begin = Event()
        self.groups: list[list[int]] = []
        self.error: StoreUnavailable | None = None

    def __call__(self, items: Sequence[int]) -> list[int]:
        assert self.may_begin.wait(10)
        self.groups.append(list(items))
        if self.error is not None:
            raise self.error
        return [2 * each for each in items]


def test_together__many_wait_behind_one__share_goes_and_each_gets_its_own_result() -> None:
    work = Work()

    async def run() -> list[int | None]:
        together = Together(work)
        calls = [asyncio.create_task(together(each)) for each in range(2 * MOST_TOGETHER + 1)]
        await asyncio.sleep(0)
        work.may_begin.set()
        return list(await asyncio.gather(*calls))

    assert asyncio.run(run()) == [2 * each for each in range(2 * MOST_TOGETHER + 1)]
    assert [len(group) for group in work.groups] == [MOST_TOGETHER, MOST_TOGETHER, 1]


def test_together__the_file_cannot_be_written__all_of_the_go_are_told_and_the_next_go_works() -> (
    None
):
    work = Work()
    work.may_begin.set()

    async def run() -> None:
        together = Together(work)
        work.error = StoreUnavailable("journal", "an answer", "none")
        calls = [asyncio.create_task(together(each)) for each in range(3)]
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert found == [work.error] * 3
        work.error = None
        assert await together(4) == 8

    asyncio.run(run())


def test_together__a_caller_is_cancelled__the_others_get_their_results() -> None:
    work = Work()

    async def run() -> None:
        together = Together(work)
        gone, stays = (asyncio.create_task(together(each)) for each in (1, 2))
        await asyncio.sleep(0)
        gone.cancel()
        work.may_begin.set()
        assert await stays == 4
        with pytest.raises(asyncio.CancelledError):
            await gone

    asyncio.run(run())

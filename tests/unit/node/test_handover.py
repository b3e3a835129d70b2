"""Calls and answers that threads hand to the event loop: in order, each once, rarely waking it."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread

import pytest

from chainkit_node.live.handover import Handover


def test_call__many_threads__runs_each_call_once_in_the_order_of_its_thread() -> None:
    got: list[tuple[int, int]] = []

    async def play() -> None:
        handover, done = Handover(asyncio.get_running_loop()), asyncio.Event()

        def hand_over(number: int) -> None:
            for each in range(2000):
                handover.call(lambda each=each: got.append((number, each)))

        with ThreadPoolExecutor(4) as threads:
            work = [asyncio.wrap_future(threads.submit(hand_over, each)) for each in range(4)]
            await asyncio.gather(*work)
        handover.call(done.set)
        await done.wait()

    asyncio.run(play())

    for number in range(4):
        assert [each for who, each in got if who == number] == list(range(2000))


def test_wait__answers_of_one_moment__wake_the_loop_once() -> None:
    async def play() -> list[int]:
        loop, woken = asyncio.get_running_loop(), []
        call = loop.call_soon_threadsafe
        loop.call_soon_threadsafe = lambda *each: woken.append(each) or call(*each)  # type: ignore[method-assign, assignment]
        handover = Handover(loop)
        futures: list[Future[int]] = [Future() for _ in range(100)]
        waiting = [asyncio.create_task(handover.wait(each)) for each in futures]
        await asyncio.sleep(0)

        def answer() -> None:
            for number, each in enumerate(futures):
                each.set_result(number)

        thread = Thread(target=answer)
        thread.start()
        # The loop is busy until all are there.
        thread.join()
        answers = await asyncio.gather(*waiting)
        assert len(woken) == 1
        return answers

    assert asyncio.run(play()) == list(range(100))


def test_wait__error_or_a_caller_that_goes_away__is_told_to_the_other_side() -> None:
    async def play() -> None:
        handover = Handover(asyncio.get_running_loop())
        failed: Future[int] = Future()
        failed.set_exception(ValueError("no"))
        with pytest.raises(ValueError, match="no"):
            await handover.wait(failed)
        left: Future[int] = Future()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(handover.wait(left), 0.01)
        assert left.cancelled()

    asyncio.run(play())

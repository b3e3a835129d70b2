"""How late refusals are, on a clock that the test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from chainkit.service.edge.pace import BYTES_OF_A_REFUSAL, PaceLimits, RefusalPace

LIMITS = PaceLimits(per_second=10, burst=5, seconds=2.0, late=3)
GREEDY, HONEST = "192.0.2.1", "192.0.2.2"


class SetLoop(asyncio.SelectorEventLoop):
    """Its time goes on to the next timer whenever nothing is ready."""

    now = 1000.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


@pytest.fixture
def loop() -> Iterator[SetLoop]:
    loop = SetLoop()
    yield loop
    loop.close()


async def refused(
    pace: RefusalPace, count: int, address: str = GREEDY, seconds_left: float | None = None
) -> list[float]:
    """Refuse requests that come at once; return how late each refusal was."""
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def one() -> float:
        await pace.wait(address, 0, seconds_left)
        return loop.time() - began

    return list(await asyncio.gather(*(one() for _ in range(count))))


def test_wait__few_refusals__are_answered_at_once(loop: SetLoop) -> None:
    assert loop.run_until_complete(refused(RefusalPace(LIMITS), 5)) == [0.0] * 5


def test_wait__beyond_the_burst__are_later_one_by_one(loop: SetLoop) -> None:
    late = loop.run_until_complete(refused(RefusalPace(LIMITS), 8))

    assert late == pytest.approx([0.0] * 5 + [0.1, 0.2, 0.3])


def test_wait__long_after_many__is_answered_at_once_again(loop: SetLoop) -> None:
    pace = RefusalPace(LIMITS)

    async def story() -> list[float]:
        await refused(pace, 8)
        await asyncio.sleep(1.0)
        return await refused(pace, 5)

    assert loop.run_until_complete(story()) == [0.0] * 5


def test_wait__another_address_has_many__is_answered_at_once(loop: SetLoop) -> None:
    pace = RefusalPace(LIMITS)

    async def story() -> list[float]:
        greedy = asyncio.create_task(refused(pace, 8))
        await asyncio.sleep(0)
        found = await refused(pace, 5, HONEST)
        await greedy
        return found

    assert loop.run_until_complete(story()) == [0.0] * 5


@pytest.mark.parametrize(("seconds_left", "most"), [(None, 2.0), (1.0, 0.5)])
def test_wait__beside_any_number__is_bounded_by_the_limit_and_the_deadline(
    loop: SetLoop, seconds_left: float | None, most: float
) -> None:
    pace = RefusalPace(PaceLimits(per_second=10, burst=5, seconds=2.0))

    late = loop.run_until_complete(refused(pace, 200, GREEDY, seconds_left))

    assert max(late) == pytest.approx(most)


def test_wait__address_had_far_too_many__owes_no_more_than_the_limit(loop: SetLoop) -> None:
    pace = RefusalPace(PaceLimits(per_second=10, burst=5, seconds=2.0))

    loop.run_until_complete(refused(pace, 10_000))

    assert pace.late(GREEDY, loop.time()) <= 2.0


@pytest.mark.parametrize(
    "limits", [LIMITS, PaceLimits(per_second=10, burst=5, seconds=2.0, late_of_one=3)]
)
def test_wait__as_many_wait_as_may__answers_others_at_once(
    loop: SetLoop, limits: PaceLimits
) -> None:
    late = loop.run_until_complete(refused(RefusalPace(limits), 20))

    assert sorted(late)[-3:] == pytest.approx([0.1, 0.2, 0.3])
    assert sorted(late)[:-3] == [0.0] * 17


def test_wait__request_of_many_bytes__counts_as_several(loop: SetLoop) -> None:
    pace = RefusalPace(LIMITS)

    async def story() -> float:
        await pace.wait(GREEDY, 6 * BYTES_OF_A_REFUSAL, None)
        return loop.time() - 1000.0

    assert loop.run_until_complete(story()) == pytest.approx(0.2)


def test_end__some_wait__answers_these_and_later_ones(loop: SetLoop) -> None:
    pace = RefusalPace(LIMITS)

    async def story() -> list[float]:
        waiting = asyncio.create_task(refused(pace, 8))
        while not pace.waiting:
            await asyncio.sleep(0)
        pace.end()
        return await waiting + await refused(pace, 3)

    assert loop.run_until_complete(story()) == [0.0] * 11
    assert pace.waiting == 0

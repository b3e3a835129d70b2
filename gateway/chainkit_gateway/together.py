"""Does in one go what waits: many publications share one transaction of the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

MOST_TOGETHER: Final = 100
"""Items of one go; the others wait for the next one."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Together(Generic[_Item, _Result]):
    """Hands all waiting items to a function at once, in a thread; for one event loop."""

    def __init__(self, work: Callable[[Sequence[_Item]], Sequence[_Result | None] | None]) -> None:
        """Take the function, which returns a result for each item, or no result at all.

        An error that the function raises means that it did nothing of the go.
        """
        self._work = work
        self._waiting: list[tuple[_Item, asyncio.Future[_Result | None]]] = []
        self._runs: asyncio.Task[None] | None = None

    async def __call__(self, item: _Item) -> _Result | None:
        """Return the item's result. Raises what the function raised."""
        result: asyncio.Future[_Result | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, result))
        if self._runs is None:
            self._runs = asyncio.create_task(self._run())
        return await result

    async def _run(self) -> None:
        try:
            while self._waiting:
                group = self._waiting[:MOST_TOGETHER]
                del self._waiting[:MOST_TOGETHER]
                await self._do(group)
        finally:
            self._runs = None

    async def _do(self, group: Sequence[tuple[_Item, asyncio.Future[_Result | None]]]) -> None:
        try:
            found = await asyncio.to_thread(self._work, [item for item, _ in group])
        except BaseException as error:
            for _, result in group:
                if not result.done():
                    result.set_exception(error)
            if not isinstance(error, Exception):
                raise
        else:
            for (_, result), one in zip(group, found or [None] * len(group), strict=True):
                # A caller that was cancelled waits no more.
                if not result.done():
                    result.set_result(one)

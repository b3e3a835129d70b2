"""Work of several threads whose results are passed on in order, with few results waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def worked_in_order(
    work: Callable[[Task], Result], tasks: Iterable[Task], threads: int
) -> Generator[Result]:
    """Yield the result of each task, in order, while other tasks are worked on.

    No more than ``2 * threads`` results are there at any time, the yielded one included. Raises the
    error of the next task; then, or once the iterator is closed, no further task is begun, and
    running tasks are waited for.
    """
    pool = ThreadPoolExecutor(threads, thread_name_prefix="export")
    waiting: deque[Future[Result]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(work, task))
            if len(waiting) == 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)

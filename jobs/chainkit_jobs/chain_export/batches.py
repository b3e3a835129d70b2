"""Batches that are as large as an endpoint answers: halved where it refuses, and grown back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from chainkit.chain import BATCH_SIZE
from chainkit.errors import (
    AccessRefused,
    ChainError,
    EndpointTimedOut,
    MethodUnavailable,
    OversizedAnswer,
    RangeRefused,
    RefusedRequest,
)

Key = TypeVar("Key")
"""The key of one answer: a height, or a hash."""

_GROWS_AFTER: Final = 20
"""Answers in a row, until as many calls again are tried at once."""


class Batches:
    """Asks an endpoint for many things, from any number of threads."""

    def __init__(self) -> None:
        """Begin with as many calls per request as providers commonly allow."""
        self._calls = BATCH_SIZE
        self._answered = 0
        self._changing = threading.Lock()

    def results(self, read: Callable[[Sequence[Key]], list[Any]], keys: Sequence[Key]) -> list[Any]:
        """Return the results of a read of the endpoint for each key, in their order.

        Raises ChainError as the endpoint does for a single call; for several calls only an error
        that a smaller batch cannot avoid.
        """
        results: list[Any] = []
        while len(results) < len(keys):
            part = keys[len(results) : len(results) + self._calls]
            try:
                results.extend(read(part))
            except ChainError as error:
                if len(part) == 1 or not _may_be_too_much(error):
                    raise
                self._shrink(len(part))
            else:
                self._count_answer()
        return results

    def _shrink(self, refused: int) -> None:
        with self._changing:
            self._calls = min(self._calls, refused // 2)
            self._answered = 0

    def _count_answer(self) -> None:
        with self._changing:
            self._answered += 1
            if self._answered >= _GROWS_AFTER:
                self._calls = min(2 * self._calls, BATCH_SIZE)
                self._answered = 0


def _may_be_too_much(error: ChainError) -> bool:
    """Return whether a smaller batch may help: few endpoints report too many calls."""
    if isinstance(error, AccessRefused | MethodUnavailable):
        return False
    return isinstance(error, EndpointTimedOut | OversizedAnswer | RefusedRequest | RangeRefused)

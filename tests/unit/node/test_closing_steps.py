"""Steps that close the parts of a process: their order, and failures among them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

import pytest

from chainkit_node.closing_steps import ClosingSteps


class Parts:
    """Steps that note their names, and fail where they are told to."""

    def __init__(self, *failing: str) -> None:
        self.closed: list[str] = []
        self.threads: set[threading.Thread] = set()
        self._failing = failing

    def blocking(self, name: str) -> Callable[[], None]:
        def close() -> None:
            self.threads.add(threading.current_thread())
            self.closed.append(name)
            if name in self._failing:
                raise ValueError(name)

        return close

    def awaited(self, name: str) -> Callable[[], object]:
        async def close() -> None:
            self.blocking(name)()

        return close

    def run(self, error: Exception | None = None) -> None:
        """Run a block that ends with the error, and close three parts behind it."""

        async def run() -> None:
            async with ClosingSteps() as steps:
                steps.add(self.blocking("third"))
                steps.add(self.awaited("second"))
                steps.add(self.blocking("first"))
                if error is not None:
                    raise error

        asyncio.run(run())


def test_closing_steps__no_failure__run_in_reverse_order_and_block_no_loop() -> None:
    parts = Parts()

    parts.run()

    assert parts.closed == ["first", "second", "third"]
    assert len(parts.threads) > 1


@pytest.mark.parametrize("failing", ["first", "second", "third"])
def test_closing_steps__one_fails__the_others_run_and_its_error_is_raised(failing: str) -> None:
    parts = Parts(failing)

    with pytest.raises(ValueError, match=failing):
        parts.run()

    assert parts.closed == ["first", "second", "third"]


def test_closing_steps__several_fail__the_first_error_is_raised_and_others_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    parts = Parts("second", "third")

    with caplog.at_level(logging.ERROR), pytest.raises(ValueError, match="second"):
        parts.run()

    assert parts.closed == ["first", "second", "third"]
    assert caplog.messages == ["not closed: ValueError: third"]


def test_closing_steps__block_failed__its_error_is_raised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    parts = Parts("second")

    with caplog.at_level(logging.ERROR), pytest.raises(KeyError, match="block"):
        parts.run(KeyError("block"))

    assert parts.closed == ["first", "second", "third"]
    assert caplog.messages == ["not closed: ValueError: second"]

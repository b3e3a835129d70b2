"""Looks at the database are left out while nothing changed, and never where something may have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit.errors import ChainkitError, StoreError, StoreUnavailable
from chainkit_indexer.types import StepResult
from chainkit_node.looks import LOOK_SECONDS, Remembered, WhereChanged
from support.chains.fake_chain import FakeChain, Post
from support.indexer.fake_node import FakeNode

AWAY = StoreUnavailable("database", "an answer", "none")


class Clock:
    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


class Heard:
    """An observer that writes into the store at some steps."""

    def __init__(self, node: FakeNode) -> None:
        self.node = node
        self.steps = 0
        self.errors = 0
        self.must_write = False

    def succeeded(self, result: StepResult, seconds: float) -> None:
        self.steps += 1
        if self.must_write:
            write(self.node)

    def failed(self, error: ChainkitError) -> None:
        self.errors += 1


class Followed:
    """A node on a chain, and an observer behind the looks."""

    def __init__(self, path: Path) -> None:
        self.node = FakeNode(FakeChain(), path)
        self.clock = Clock()
        self.heard = Heard(self.node)
        self.is_waiting = False
        self.looks = WhereChanged(
            self.node.store, self.heard, lambda: self.is_waiting, clock=self.clock
        )
        self.step()

    def step(self, times: int = 1) -> int:
        """Take steps, and return how many of them the observer heard."""
        before = self.heard.steps
        for _ in range(times):
            self.looks.succeeded(self.node.step(), 0.0)
        return self.heard.steps - before


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Followed]:
    followed = Followed(tmp_path / "node.db")
    yield followed
    followed.node.store.close()


def write(node: FakeNode) -> None:
    with node.store.writing():
        pass


def test_idle_steps__nothing_changed__are_heard_seldom(followed: Followed) -> None:
    assert followed.step(times=20) == 0

    followed.clock.seconds += LOOK_SECONDS

    assert followed.step(times=20) == 1


def test_idle_step__behind_a_transaction_of_this_process__is_heard(followed: Followed) -> None:
    write(followed.node)

    assert followed.step(times=20) == 1


def test_idle_step__behind_a_transaction_that_was_undone__is_heard(followed: Followed) -> None:
    with pytest.raises(ZeroDivisionError), followed.node.store.writing():
        _ = 1 / 0

    assert followed.step() == 1


def test_step__has_a_block_or_a_reorg__is_heard(followed: Followed) -> None:
    followed.node.chain.mine([Post("a")])
    assert followed.step() == 1

    followed.node.chain.fork(1, [Post("b")], [])

    assert followed.step(times=2) == 2


def test_idle_step__observer_writes__is_heard_until_it_writes_no_more(followed: Followed) -> None:
    followed.heard.must_write = True
    write(followed.node)
    assert followed.step(times=5) == 5

    followed.heard.must_write = False

    assert followed.step(times=5) == 1


def test_idle_step__observer_waits_for_an_answer__is_heard(followed: Followed) -> None:
    followed.is_waiting = True

    assert followed.step(times=5) == 5


def test_idle_step__behind_an_error__is_heard(followed: Followed) -> None:
    followed.looks.failed(AWAY)

    assert (followed.step(times=5), followed.heard.errors) == (1, 1)


def test_idle_step__behind_a_look_that_the_database_ended__is_heard(followed: Followed) -> None:
    with pytest.raises(StoreUnavailable), followed.node.store.reading():
        raise AWAY

    assert followed.step(times=5) == 1


def test_remembered__nothing_changed__is_read_again_after_a_while_or_a_write(
    followed: Followed,
) -> None:
    read = iter(range(100))
    value = Remembered(followed.node.store, lambda: next(read), followed.clock)
    assert [value(), value()] == [0, 0]

    write(followed.node)
    assert [value(), value()] == [1, 1]

    followed.clock.seconds += LOOK_SECONDS
    assert [value(), value()] == [2, 2]


def test_remembered__database_is_away__is_read_again_at_the_next_call(followed: Followed) -> None:
    answers = iter([AWAY, 7])

    def read() -> int:
        answer = next(answers)
        if isinstance(answer, StoreError):
            raise answer
        return answer

    value = Remembered(followed.node.store, read, followed.clock)

    with pytest.raises(StoreUnavailable):
        value()
    assert value() == 7

"""Turns of writing threads: the order, whatever waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from chainkit_indexer.storage.turns import Turns

SECONDS = 60.0


def waits(turns: Turns, count: int) -> None:
    deadline = time.monotonic() + SECONDS
    while len(turns) < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize(
    ("first", "come", "had"),
    [
        (False, "oooo", "oooo"),
        (False, "ooooa", "aoooo"),
        (True, "ooooa", "oaooo"),
        (False, "aaaoo", "aoaoa"),
        (True, "aaaoo", "oaoaa"),
        (True, "aaa", "aaa"),
    ],
)
def test_turn__several_wait__both_kinds_alternate_in_the_order_in_which_they_came(
    first: bool, come: str, had: str
) -> None:
    turns, order = Turns(), list[str]()

    def write(kind: str) -> None:
        with turns.turn(kind == "a"):
            order.append(kind)

    with turns.turn(first):
        threads = []
        for number, kind in enumerate(come, 1):
            threads.append(threading.Thread(target=write, args=(kind,)))
            threads[-1].start()
            waits(turns, number)
    join(threads)
    assert "".join(order) == had
    with turns.turn(True):
        assert len(turns) == 0


def test_turn__many_threads__one_has_it_at_a_time_and_all_have_it() -> None:
    turns, inside, done = Turns(), list[int](), list[int]()

    def write(number: int) -> None:
        for _ in range(200):
            with turns.turn(number % 2 == 0):
                inside.append(number)
                assert len(inside) == 1
                inside.pop()
                done.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    join(threads)
    assert sorted(done) == sorted(list(range(8)) * 200)


class Interrupted(Exception):
    """A signal raises it."""


class InterruptedLock:
    """A lock whose second acquiring a signal interrupts, before or behind the turn."""

    def __init__(self, turns: Turns, has_turn: bool) -> None:
        self._turns, self._has_turn, self._count = turns, has_turn, 0

    def acquire(self) -> bool:
        self._count += 1
        if self._count > 1:
            if self._has_turn:
                self._turns._leave()
            raise Interrupted
        return True

    def release(self) -> None:
        pass


@pytest.mark.parametrize("has_turn", [False, True])
def test_turn__waiting_is_interrupted__keeps_no_place_and_no_turn(
    has_turn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = Turns()
    turns._enter(False)
    module = "chainkit_indexer.storage.turns.Lock"
    monkeypatch.setattr(module, lambda: InterruptedLock(turns, has_turn))
    with pytest.raises(Interrupted):
        turns._enter(True)
    monkeypatch.undo()
    if not has_turn:
        turns._leave()

    assert len(turns) == 0
    with turns.turn(False):
        pass


def join(threads: Sequence[threading.Thread]) -> None:
    for each in threads:
        each.join(SECONDS)
    assert not any(each.is_alive() for each in threads)

"""The two panes of `make chat`: typing goes to one of them, and keys let things happen."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from textual.widgets import Input, Static

from chainkit.errors import ChainkitError
from localnet.chat import TwoPanes


class FakeConversation:
    status = "all is well"

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.said: list[str] = []

    async def say(self, text: str) -> None:
        self.said.append(text)

    async def follow(self) -> None:
        await asyncio.sleep(0)


def test_two_panes__tab_and_keys__go_to_whom_they_are_for() -> None:
    alice, bob = FakeConversation(), FakeConversation()

    async def reorganise() -> str:
        return "the chain took it back"

    async def lie() -> str:
        raise ChainkitError("node 100", "to start", "exit 2")

    async def play() -> None:
        stage = SimpleNamespace(people=(alice, bob), reorganise=reorganise, lie=lie)
        app = TwoPanes(cast(Any, stage))
        async with app.run_test(size=(120, 30)) as pilot:
            told = app.query_one("#told", Static)
            await pilot.press(*"one", "enter", "tab", *"two", "enter", "tab", *"q", "enter")
            await pilot.press("f2")
            await until(lambda: str(told.render()) == "the chain took it back")
            await pilot.press("f3")
            await until(lambda: str(told.render()) == "node 100: expected to start, got exit 2")
            assert len(app.query(Input)) == 2
            await pilot.press("ctrl+c")
        assert not app.is_running

    async def until(is_so: Any) -> None:
        async with asyncio.timeout(20):
            while not is_so():
                await asyncio.sleep(0.01)

    asyncio.run(play())
    assert (alice.said, bob.said) == (["one", "q"], ["two"])

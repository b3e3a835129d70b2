"""Opens a client for one command, and has steps that several commands share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from chainkit.errors import ChainkitError, ConfigurationError, RetryableChainError
from chainkit.nodes.outcomes import NodeLost, NodeUnreached
from chainkit.service.log_lines import one_line
from chainkit.terminal.facts import echo_notice
from chainkit.terminal.waiting import told_while_waiting
from chainkit_client.cli.home import Home
from chainkit_client.home import Client, opened
from chainkit_client.intents.rows import Intent
from chainkit_client.messenger import Messenger, NotSettled
from chainkit_client.mls.engine import EngineFailed
from chainkit_client.network.topic_reader import NodesSilent
from chainkit_client.storage.schema import IntentState
from chainkit_client.storage.store import Store

SETTLE_SECONDS: Final = 90.0
"""Longer than the minute after which a message with a lost answer is sent again."""

PASSING: Final = (EngineFailed, NodeLost, NodesSilent, NodeUnreached, RetryableChainError)
"""Errors that may be gone in the next round."""

_ASKED: Final = "another device of yours asks for what was said: `chainkit client history list`"
_KEPT: Final = "what waits is kept, and goes on with the next command"


class GivenUp(ChainkitError):
    """The network, or the group, refuses the user's wish."""


def open_store(home: Home) -> Store:
    """Open only the database. Raises ConfigurationError where there is none."""
    if not home.database_path.exists():
        expected = "a client's database: `chainkit client init` makes one"
        raise ConfigurationError(f"home {home.home_path}", expected, "none")
    return Store.open(home.database_path, home.password())


def run(home: Home, do: Callable[[Client], Awaitable[int]], tells_asked: bool = True) -> int:
    """Open the client of a home, and run a function on the client; return the exit code.

    It says afterwards where another device of the person asks for history.
    """
    settings = home.read_settings()
    if not home.database_path.exists():
        open_store(home)
    password = home.password()

    async def run_it() -> int:
        async with opened(home, password, settings) as client:
            code = await do(client)
            if tells_asked and client.history.is_asked():
                echo_notice(_ASKED)
            return code

    return asyncio.run(run_it())


async def brought_up_to_date(messenger: Messenger) -> None:
    """Sync once; report an unreachable network, and go on with the database."""
    await _tried(messenger.sync)


async def caught_up(messenger: Messenger) -> None:
    """Sync the groups that have news, as ``brought_up_to_date``."""
    await _tried(messenger.catch_up)


async def _tried(sync: Callable[[], Awaitable[object]]) -> None:
    try:
        with told_while_waiting(lambda: "reading what is new …"):
            await sync()
    except PASSING as error:
        echo_notice(f"not up to date: {one_line(str(error))}")


async def settled(messenger: Messenger) -> None:
    """Sync until nothing waits. Raises the network's errors, and reports that nothing is lost."""
    try:
        with told_while_waiting(lambda: "waiting for the network; Ctrl-C leaves it queued …"):
            await messenger.settle(SETTLE_SECONDS)
    except (*PASSING, NotSettled):
        echo_notice(_KEPT)
        raise


def check_done(intents: list[Intent], subject: str) -> None:
    """Raise GivenUp where one of the intents was given up."""
    for each in intents:
        if each.state is IntentState.ERROR:
            raise GivenUp(subject, None, f"was given up: {one_line(each.reason)}")

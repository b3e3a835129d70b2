"""The view of a group that is followed: lines of the transcript, and a line of status."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from chainkit.errors import ChainkitError
from chainkit.service.log_lines import one_line
from chainkit_client.cli import pages
from chainkit_client.cli.names import short
from chainkit_client.cli.opened import PASSING
from chainkit_client.messenger import Messenger

_MOST_LINES: Final = 500
"""The number of last messages that are shown."""


class Conversation:
    """A group of a messenger; used on one event loop."""

    def __init__(self, messenger: Messenger, group_id: bytes) -> None:
        """Take the messenger, and one of its groups."""
        self.messenger = messenger
        self.group_id = group_id
        self.lines: list[str] = []
        self.status = f"group {short(group_id)}: reading …"
        self.reorgs = 0
        """How often a reorg took payloads of the group back."""
        self._own = messenger.inbox_id.hex()
        self._trouble = ""

    async def say(self, text: str) -> None:
        """Queue a message, which later rounds send. Raises StoreError, and NotAMember."""
        await asyncio.to_thread(self.messenger.send, self.group_id, text)
        await asyncio.to_thread(self._read)

    async def follow(self) -> None:
        """Do one round: sync, and read the view. An error of the network becomes a status."""
        try:
            rounds = await self.messenger.sync()
            if self.group_id in rounds:
                self.reorgs += rounds[self.group_id].reorgs
            self._trouble = ""
        except PASSING as error:
            self._trouble = one_line(str(error))
        await asyncio.to_thread(self._read)

    def _read(self) -> None:
        messages = self.messenger.messages(self.group_id)[-_MOST_LINES:]
        now_ns = time.time_ns()
        self.lines = [pages.message_line(each, self._own, now_ns) for each in messages]
        self.status = "  ".join(self._facts())

    def _facts(self) -> list[str]:
        [group] = [each for each in self.messenger.groups() if each.id == self.group_id]
        facts = [
            f"group {short(group.id)}: {pages.membership(group)}",
            "no epoch yet" if group.epoch is None else f"epoch {group.epoch}",
        ]
        if group.epoch is not None:
            facts.append(self._count_members())
        if waiting := pages.count_waiting(self.messenger.intents(self.group_id)):
            facts.append(f"{waiting} wait")
        if gone := len(self.messenger.expired(self.group_id)):
            facts.append(f"{gone} expired before they came")
        if self.reorgs:
            facts.append(f"reorgs: {self.reorgs}")
        if breaches := self.messenger.breaches():
            last = breaches[-1]
            kind = "a rule" if last.misbehavior is None else last.misbehavior.name
            facts.append(f"node {last.node_id} broke {kind}: {one_line(last.reason)}")
        if self._trouble:
            facts.append(f"trying again: {self._trouble}")
        return facts

    def _count_members(self) -> str:
        try:
            accounts = {each.credential for each in self.messenger.members(self.group_id)}
        except ChainkitError as error:
            return one_line(str(error))
        return f"{len(accounts)} people"

"""A chat on a terminal that no person sees: keys go in, and lines come out."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from textual.widgets import Input, RichLog, Static

from chainkit.misbehavior.types import Misbehavior
from chainkit.types import Place
from chainkit_client.cli.chat import ChatApp, Pane
from chainkit_client.cli.conversation import Conversation
from chainkit_client.groups.overview import Group
from chainkit_client.groups.transcript import Message
from chainkit_client.intents.rows import Intent
from chainkit_client.mls.engine import Member
from chainkit_client.network.topic_reader import NodesSilent
from chainkit_client.storage.evidence import KeptBreach
from chainkit_client.storage.schema import DeliveryStatus, MembershipState, MessageKind

OWN, OTHER = "aa" * 32, "bb" * 32
GROUP = Group(b"\x3f" * 16, 10**18, MembershipState.ALLOWED, 2, True, None)
BREACH = KeptBreach(b"\1" * 32, 200, Misbehavior.DUPLICATE_SEQUENCE_ID, "two of 3", b"report", 1, 0)


def message(number: int, words: str, by: str = OTHER) -> Message:
    return Message(
        id=bytes([number]) * 32,
        group_id=GROUP.id,
        kind=MessageKind.APPLICATION,
        content=words.encode(),
        sent_at_ns=number * 10**9,
        sender=b"\1" * 32,
        sender_account=by,
        delivery=DeliveryStatus.PUBLISHED,
        epoch=2,
        place=(100, number),
    )


class FakeMessenger:
    """A messenger whose network does as the test says."""

    inbox_id = bytes.fromhex(OWN)

    def __init__(self) -> None:
        self.group = GROUP
        self.transcript: list[Message] = []
        self.trouble: Exception | None = None
        self.kept: list[KeptBreach] = []
        self.reorgs = 0
        self.gone: list[Place] = []

    async def sync(self) -> dict[bytes, Any]:
        if self.trouble is not None:
            raise self.trouble
        reorgs, self.reorgs = self.reorgs, 0
        return {GROUP.id: SimpleNamespace(reorgs=reorgs)}

    def send(self, group_id: bytes, text: str) -> bytes:
        sent = replace(message(9, text, OWN), delivery=DeliveryStatus.UNPUBLISHED)
        self.transcript.append(sent)
        return sent.id

    def groups(self) -> list[Group]:
        return [self.group]

    def members(self, group_id: bytes) -> list[Member]:
        return [Member(leaf, each.encode(), bytes(32)) for leaf, each in enumerate((OWN, OTHER))]

    def expired(self, group_id: bytes) -> list[Place]:
        return self.gone

    def messages(self, group_id: bytes) -> list[Message]:
        return list(self.transcript)

    def intents(self, group_id: bytes) -> list[Intent]:
        return []

    def breaches(self) -> list[KeptBreach]:
        return self.kept


def conversation(messenger: FakeMessenger) -> Conversation:
    return Conversation(cast(Any, messenger), GROUP.id)


def status_after_a_round(messenger: FakeMessenger) -> str:
    followed = conversation(messenger)
    asyncio.run(followed.follow())
    return followed.status


def test_follow__all_is_well__status_tells_epoch_and_people() -> None:
    assert status_after_a_round(FakeMessenger()) == "group 3f3f3f3f: in it  epoch 2  2 people"


def test_follow__something_is_wrong__status_tells_it() -> None:
    messenger = FakeMessenger()
    messenger.group = replace(GROUP, forked_at_epoch=2)
    messenger.kept = [BREACH]
    messenger.reorgs = 1
    messenger.gone = [(100, 7)]

    status = status_after_a_round(messenger)

    assert "FORKED at epoch 2" in status
    assert (
        "1 expired before they came  reorgs: 1  node 200 broke DUPLICATE_SEQUENCE_ID: two of 3"
        in status
    )


def test_follow__network_is_away_and_back__transcript_stays_and_trouble_goes() -> None:
    messenger = FakeMessenger()
    messenger.transcript = [message(1, "hello")]
    messenger.trouble = NodesSilent("topic", "an answer of a node", "none")
    followed = conversation(messenger)

    asyncio.run(followed.follow())
    assert "trying again: topic: expected an answer of a node, got none" in followed.status
    assert followed.lines[0].endswith("hello")
    messenger.trouble = None
    asyncio.run(followed.follow())
    assert "trying" not in followed.status


def test_chat__typed_and_received__both_are_shown_in_the_order_of_time() -> None:
    messenger = FakeMessenger()
    messenger.transcript = [message(3, "hello")]

    async def play() -> None:
        app = ChatApp(Pane(conversation(messenger), "alice"))
        async with app.run_test(size=(120, 24)) as pilot:
            await shown(app, "hello")
            await pilot.press(*"hi", "enter")
            lines = await shown(app, "hi")
            assert [line.split("  ")[-1].strip() for line in lines] == ["hello", "(waits)"]
            assert app.query_one(Input).value == ""
            # Another member's message of an earlier time comes late: it stands above.
            messenger.transcript.insert(0, message(1, "[bold]first[/bold] \x1b[2J"))
            lines = await shown(app, "first")
            assert lines[0].endswith("[bold]first[/bold] \\x1b[2J")
            assert "epoch 2" in str(app.query_one(Static).render())
            await pilot.press("ctrl+c")
        assert not app.is_running

    async def shown(app: ChatApp, words: str) -> list[str]:
        async with asyncio.timeout(20):
            while True:
                lines = [strip.text.rstrip() for strip in app.query_one(RichLog).lines]
                if any(words in line for line in lines):
                    return lines
                await asyncio.sleep(0.01)

    asyncio.run(play())

"""Lines that people read: a stranger's words stay on their line, and scripts get all of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from chainkit.types import Place
from chainkit_client.cli import pages
from chainkit_client.cli.doctor import Looked, lines, look_at_clock
from chainkit_client.cli.opened import GivenUp, brought_up_to_date
from chainkit_client.cli.talk import Reader, send
from chainkit_client.groups.overview import Group
from chainkit_client.groups.transcript import KIND_NAMES, Message
from chainkit_client.intents.arguments import SendMessage
from chainkit_client.intents.rows import Intent
from chainkit_client.mls.engine import Member
from chainkit_client.network.topic_reader import NodesSilent
from chainkit_client.storage.payloads import PayloadResult
from chainkit_client.storage.schema import (
    DeliveryStatus,
    IntentState,
    MembershipState,
    MessageKind,
    PayloadStatus,
)

OWN, OTHER = "aa" * 32, "bb" * 32
GROUP = Group(b"\x3f" * 16, 10**18, MembershipState.ALLOWED, 2, True, None)
MESSAGE = Message(
    id=b"\xcd" * 32,
    group_id=GROUP.id,
    kind=MessageKind.APPLICATION,
    content=b"hello",
    sent_at_ns=1_700_000_000 * 10**9,
    sender=b"\1" * 32,
    sender_account=OTHER,
    delivery=DeliveryStatus.PUBLISHED,
    epoch=2,
    place=(100, 7),
)
ADDED = replace(
    MESSAGE,
    id=b"\xce" * 32,
    kind=MessageKind.MEMBER_ADDED,
    content=bytes(9) + b"\xee" * 32 + OWN.encode(),
)
SILENT = NodesSilent("topic", "an answer of a node", "none")


def line_of(message: Message, now_ns: int = MESSAGE.sent_at_ns) -> str:
    return pages.message_line(message, OWN, now_ns)


def intent(state: IntentState, reason: str = "") -> Intent:
    arguments = SendMessage(1, b"hello")
    return Intent(1, GROUP.id, state, arguments, 2, None, b"", False, 0, 1, MESSAGE.id, reason)


class FakeMessenger:
    """Has one group, and does what the test says when it syncs."""

    inbox_id = bytes.fromhex(OWN)

    def __init__(self, *rounds: Exception | Message, done: Intent | None = None) -> None:
        self._rounds = list(rounds)
        self._messages = [] if done is None else [MESSAGE]
        self._done = done
        self.sent: list[str] = []
        self.gone: list[Place] = []

    async def sync(self) -> None:
        came = self._rounds.pop(0)
        if isinstance(came, Exception):
            raise came
        self._messages.append(came)

    async def settle(self, seconds: float) -> None:
        if self._rounds:
            await self.sync()

    def send(self, group_id: bytes, text: str) -> bytes:
        self.sent.append(text)
        return MESSAGE.id

    def imported_groups(self) -> list[Group]:
        return []

    def groups(self) -> list[Group]:
        return [GROUP]

    def expired(self, group_id: bytes) -> list[Place]:
        return self.gone

    def messages(self, group_id: bytes) -> list[Message]:
        return self._messages

    def intents(self, group_id: bytes) -> list[Intent]:
        return [self._done] if self._done else []


def messenger(*rounds: Exception | Message, done: Intent | None = None) -> Any:
    return cast(Any, FakeMessenger(*rounds, done=done))


def test_message_line__message__has_id_time_sender_and_words() -> None:
    assert line_of(MESSAGE) == (f"cdcdcdcd  2023-11-14 22:13:20  {'b' * 20}  hello")
    assert pages.message_line(MESSAGE, OTHER, 0).split("  ", 2)[2].startswith("you ")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("\x1b[2J\nnode: fine", "\\x1b[2J\\nnode: fine"),
        ("\u202eabc", "\\u202eabc"),
        ("Grüße, 你好", "Grüße, 你好"),
    ],
)
def test_message_line__strangers_words__move_no_cursor_and_stay_readable(
    words: str, shown: str
) -> None:
    line = line_of(replace(MESSAGE, content=words.encode()))

    assert line.endswith(shown)
    assert line.isprintable()


def test_message_line__sender_that_is_no_inbox__is_marked() -> None:
    line = line_of(replace(MESSAGE, sender_account="you     "))

    assert "  ?you" in line


@pytest.mark.parametrize("time_ns", [2**63 - 1, -(2**63), 10**30])
def test_message_line__time_of_no_calendar__is_a_number_or_a_date(time_ns: int) -> None:
    assert line_of(replace(MESSAGE, sent_at_ns=time_ns)).endswith("hello")


def test_message_line__sender_claims_another_time__shows_the_originators_and_the_claim() -> None:
    minute_ns = 60 * 10**9
    near = replace(MESSAGE, originator_ns=MESSAGE.sent_at_ns + 4 * minute_ns)
    apart = replace(MESSAGE, originator_ns=MESSAGE.sent_at_ns - 6 * minute_ns)

    assert "  2023-11-14 22:17:20  " in line_of(near)
    assert line_of(near).endswith("hello")
    assert "  2023-11-14 22:07:20  " in line_of(apart)
    assert line_of(apart).endswith("hello  (its sender says 2023-11-14 22:13:20)")
    assert pages.message_as_json(apart)["time_ns"] == apart.originator_ns


def test_message_line__expired__says_that_nodes_need_not_have_it() -> None:
    second = 10**9
    expires = replace(MESSAGE, expires_at=1_700_000_100)

    assert line_of(expires, 1_700_000_099 * second).endswith("hello")
    assert line_of(expires, 1_700_000_100 * second).endswith(f"hello  ({pages.EXPIRED})")
    assert pages.message_as_json(expires)["expires_at"] == 1_700_000_100


def test_message_line__name_that_is_not_proved__is_marked_and_is_never_you() -> None:
    false = replace(MESSAGE, sender_account=OWN, is_proved=False)
    added = replace(ADDED, is_changed_proved=False)

    assert f"  ?{'a' * 20}  hello  ({pages.NOT_PROVED})" in line_of(false)
    assert "* added ?aaaa" in line_of(added)
    assert pages.message_as_json(false)["is_proved"] is False
    assert pages.message_as_json(added)["is_installation_proved"] is False


def test_unopened_lines__a_welcome_that_failed__says_when_and_why() -> None:
    failed = PayloadResult(
        b"", 100, 7, 1_700_000_000 * 10**9, b"", PayloadStatus.FAILED, "MLS: join\x1b"
    )

    [line] = pages.unopened_lines([failed])

    assert line == (
        "an invitation of 2023-11-14 22:13:20 cannot be opened; ask for another one: MLS: join\\x1b"
    )


def test_message_line__waits_failed_or_warned__is_noted() -> None:
    waits = replace(MESSAGE, delivery=DeliveryStatus.UNPUBLISHED, warning="without 3 of 100")
    failed = replace(MESSAGE, delivery=DeliveryStatus.FAILED)

    assert line_of(waits).endswith("hello  (without 3 of 100; waits)")
    assert line_of(failed).endswith("hello  (not sent)")
    assert line_of(ADDED).endswith(f"* added you (device {'e' * 20})")


def test_message_as_json__bytes_that_are_no_text__are_kept_apart() -> None:
    content = pages.message_as_json(replace(MESSAGE, content=b"\xff"))

    assert (content["text"], content["originator"], content["sequence_id"]) == ("\\xff", 100, 7)
    assert pages.message_as_json(ADDED)["installation"] == "ee" * 32


@pytest.mark.parametrize(
    ("group", "told"),
    [
        (GROUP, "in it"),
        (replace(GROUP, membership=MembershipState.PENDING), "invited"),
        (replace(GROUP, epoch=None), "in it, waits for its commit"),
        (replace(GROUP, is_member=False), "removed"),
        (replace(GROUP, forked_at_epoch=3), "in it, FORKED at epoch 3"),
        (replace(GROUP, copied_at_epoch=1), "in it, COPIED at epoch 1"),
        (
            replace(GROUP, copied_at_epoch=2, is_member=False),
            "left behind, COPIED",
        ),
    ],
)
def test_groups_lines__each_standing__is_said(group: Group, told: str) -> None:
    assert pages.groups_lines([group], {group.id: 1})[1].rstrip().endswith(f"1  {told}")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (MessageKind.UNREADABLE, "* a message that cannot be read  (why)"),
        (MessageKind.LEFT_BEHIND, "* a commit that cannot be followed  (why)"),
    ],
)
def test_message_line__cannot_be_read__says_so_and_why(kind: MessageKind, said: str) -> None:
    message = replace(MESSAGE, kind=kind, content=bytes(32), warning="why")

    assert line_of(message).endswith(said)
    assert pages.message_as_json(message)["kind"] == KIND_NAMES[kind]


def test_intents_lines__given_up__says_why() -> None:
    line = pages.intents_lines([intent(IntentState.ERROR, "no key package")])[1]

    assert line.split() == ["1", "SEND_MESSAGE", "ERROR", "1", "no", "key", "package"]


@pytest.mark.parametrize(
    ("apart", "works"),
    [([1.0, -2.0, 9_000.0], True), ([-600.0], False), ([130.0, 140.0, 0], False)],
)
def test_look_at_clock__most_nodes_differ__is_wrong(apart: list[float], works: bool) -> None:
    looked = look_at_clock(apart)

    assert (looked.name, looked.works, bool(looked.advice)) == ("clock", works, not works)


def test_doctor_lines__something_is_wrong__advice_stands_below() -> None:
    told = lines([Looked("chain", True, "head 5"), Looked("gateway", False, "none", "ask")])

    assert [line.split(maxsplit=1)[0] for line in told] == ["ok", "WRONG", "->"]


def test_send__given_up__says_why_and_prints_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    given_up = messenger(done=intent(IntentState.ERROR, "nobody takes it"))

    with pytest.raises(GivenUp, match="message cdcdcdcd was given up: nobody takes it"):
        asyncio.run(send(given_up, "3f", "hello", as_json=False))
    assert capsys.readouterr().out == ""


def test_send__network_is_away__message_is_queued_first_and_that_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    away = messenger(SILENT, done=intent(IntentState.TO_SEND))

    with pytest.raises(NodesSilent):
        asyncio.run(send(away, "3f", "hello", as_json=False))
    assert away.sent == ["hello"]
    assert "what waits is kept" in capsys.readouterr().err


def test_brought_up_to_date__network_is_away__says_so_and_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asyncio.run(brought_up_to_date(messenger(SILENT)))

    assert "not up to date: topic: expected an answer" in capsys.readouterr().err


def test_reader__follows__prints_each_message_once_and_trouble_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    waiting = replace(MESSAGE, id=b"\1" * 32, delivery=DeliveryStatus.UNPUBLISHED)
    reader = Reader(messenger(MESSAGE, SILENT, SILENT, waiting, ADDED), "3f", as_json=False)

    async def follow() -> None:
        for _ in range(5):
            await reader.follow()

    asyncio.run(follow())
    told = capsys.readouterr()
    assert [line[:8] for line in told.out.splitlines()] == ["cdcdcdcd", "cececece"]
    assert [line.split(":")[0] for line in told.err.splitlines()] == [
        "trying again",
        "the network answers again",
    ]


def test_reader__payloads_expired_before_they_came__says_so_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reader = Reader(some := messenger(MESSAGE, ADDED), "3f", as_json=True)
    some.gone = [(100, 7), (100, 9)]

    for _ in range(2):
        reader.tell(is_last=False)

    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith("2 payloads of this group expired before this client had them: ask")


def test_members_lines__doubtful_ones__are_named_in_full_below_the_table() -> None:
    members = [Member(leaf, OWN.encode(), bytes([leaf]) * 32) for leaf in (1, 2, 3)]
    unheard = {members[2].public_key: 1_700_000_000 * 10**9}

    lines = pages.members_lines(members, members[1:2], unheard, OWN)

    assert [line.split()[-1] for line in lines[1:4]] == ["you", "FALSE", "silent"]
    assert lines[4:] == [
        f"FALSE: not of the inbox that it names: {'02' * 32}",
        f"silent: {'03' * 10} may not have joined, added 2023-11-14 22:13:20",
    ]
    told = pages.members_as_json(members, members[1:2], unheard)
    assert [each["is_of_inbox"] for each in told] == [True, False, True]
    assert [each["silent_since_ns"] for each in told] == [None, None, 1_700_000_000 * 10**9]

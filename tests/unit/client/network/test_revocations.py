"""Inboxes of members before a commit: their own revocations count, and not too many are read."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.mls.engine import Member
from chainkit_client.network import revocations
from chainkit_client.network.inboxes import Inbox
from chainkit_client.network.revocations import MOST_INBOXES, PAUSE_SECONDS, Revocations
from chainkit_client.network.topic_reader import NodesSilent

ANN, BEN = b"\1" * 32, b"\2" * 32
LOST, KEPT = b"\x11" * 32, b"\x22" * 32


def member(inbox_id: bytes | str, key: bytes) -> Member:
    name = inbox_id if isinstance(inbox_id, str) else inbox_id.hex()
    return Member(1, name.encode(), key)


class Asked:
    """Inboxes by id; a missing one is of a network that does not answer."""

    def __init__(self, *inboxes: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
        self.inboxes = {each.id: each for each in inboxes}
        self.now_ns = 10**18
        self.asked: list[bytes] = []
        monkeypatch.setattr(revocations, "inbox_of", self.inbox_of)
        session = SimpleNamespace(now_ns=lambda: self.now_ns)
        self.revocations = Revocations(cast(Any, session))

    async def inbox_of(self, session: object, inbox_id: bytes) -> Inbox | None:
        self.asked.append(inbox_id)
        if inbox_id not in self.inboxes:
            raise NodesSilent("topic", "an answer", "none")
        return self.inboxes[inbox_id]

    def of(self, *members: Member) -> frozenset[bytes]:
        return asyncio.run(self.revocations.of(members))


def inbox(inbox_id: bytes, *revoked: bytes) -> Inbox:
    return Inbox(inbox_id, (), (KEPT,), frozenset(revoked))


def test_of__installation_that_its_inbox_revoked__is_found_once_and_again_after_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(inbox(ANN, LOST), inbox(BEN), monkeypatch=monkeypatch)
    members = member(ANN, LOST), member(ANN, KEPT), member(BEN, b"\x33" * 32)

    assert asked.of(*members) == {LOST}
    assert asked.of(*members) == frozenset()
    asked.now_ns += PAUSE_SECONDS * NANOSECONDS_PER_SECOND
    assert asked.of(*members) == {LOST}

    assert asked.asked == [ANN, BEN] * 2


@pytest.mark.parametrize(
    "stranger", [member(BEN, LOST), member("nobody", LOST), member(ANN, b"\x44" * 32)]
)
def test_of__another_inbox_a_made_up_one_or_one_that_never_had_it__revokes_nothing(
    stranger: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(inbox(ANN, LOST), inbox(BEN), monkeypatch=monkeypatch)

    assert asked.of(stranger) == frozenset()


def test_of__nobody_answers_for_one_inbox__the_others_count_and_it_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(inbox(ANN, LOST), monkeypatch=monkeypatch)
    members = member(BEN, KEPT), member(ANN, LOST)

    assert asked.of(*members) == {LOST}
    asked.inboxes[BEN] = inbox(BEN, KEPT)
    assert asked.of(*members) == {KEPT}


def test_of__members_of_many_inboxes__are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch=monkeypatch)
    ids = [number.to_bytes(32, "big") for number in range(3 * MOST_INBOXES)]
    asked.inboxes = {each: inbox(each) for each in ids}
    members = [member(each, each) for each in ids]

    counts = []
    for _ in range(4):
        asked.of(*members)
        counts.append(len(asked.asked))
        asked.now_ns += NANOSECONDS_PER_SECOND

    assert counts == [MOST_INBOXES, 2 * MOST_INBOXES, 3 * MOST_INBOXES, 3 * MOST_INBOXES]
    assert sorted(asked.asked) == ids

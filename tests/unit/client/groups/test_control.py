"""Messages for the program: whose count, and what people see of them."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from chainkit_client.groups.control import CONTROL_PREFIX
from chainkit_client.groups.overview import read_shown_groups
from chainkit_client.intents.arguments import AddMembers
from chainkit_client.mls.engine import Received
from chainkit_client.storage import sync_groups
from chainkit_client.storage.schema import MembershipState
from chainkit_client.storage.sync_groups import (
    MOST_CONTROL_BYTES,
    MOST_CONTROL_MESSAGES,
    forget_group,
    read_control,
)
from support.client.group_network import GROUP_ID, Device, Party
from support.client.toy_engine import ToyEngine

from .conftest import MakeParty

CONTENT = CONTROL_PREFIX + b"{}"


def two_devices(make_party: MakeParty, *others: str) -> Party:
    """Ben's laptop, which made the group, and his phone, which names the same inbox."""
    party = make_party("ben", *others)
    path = party["ben"].path.with_name("phone.db")
    phone = Device(party.logs, path, "ben", ToyEngine(used=party.used))
    party.devices["phone"] = phone
    party["ben"].groups.queue(GROUP_ID, AddMembers((phone.key,)))
    party.settle()
    return party


def said(party: Party, by: str, content: bytes) -> None:
    party[by].groups.send(GROUP_ID, content, party[by].now_ns)
    party.settle()


def control(device: Device) -> list[tuple[bytes, bytes]]:
    with device.store.reading() as connection:
        return [(each.sender, each.content) for each in read_control(connection, device.store.seal)]


def shown(device: Device) -> list[bytes]:
    with device.store.reading() as connection:
        return [each.id for each in read_shown_groups(connection)]


def test_apply__message_for_the_program_of_an_own_device__is_no_message_and_hides_its_group(
    make_party: MakeParty,
) -> None:
    party = two_devices(make_party)

    said(party, "ben", CONTENT)

    assert control(party["phone"]) == [(party["ben"].key, CONTENT)]
    assert (party["phone"].words(), shown(party["phone"])) == ([], [])
    # Its sender has a row, which goes with the group.
    assert control(party["ben"]) == []


@pytest.mark.conforms("H25")
def test_apply__words_of_a_backup__are_no_message(
    make_party: MakeParty, monkeypatch: pytest.MonkeyPatch
) -> None:
    party = two_devices(make_party, "ann")
    receive, key = ToyEngine.receive, party["ann"].key

    def as_backup(self: ToyEngine, state: bytes, message: bytes) -> Received:
        received = receive(self, state, message)
        is_it = received.sender.public_key == key
        return replace(received, sender=replace(received.sender, is_backup=is_it))

    monkeypatch.setattr(ToyEngine, "receive", as_backup)

    said(party, "ann", b"lies")
    said(party, "ben", b"words")

    assert (party["phone"].words(), party["ben"].words()) == ([b"words"], [b"words"])


def test_apply__group_in_which_people_spoke__is_not_hidden(make_party: MakeParty) -> None:
    party = two_devices(make_party)
    said(party, "ben", b"a note to myself")

    said(party, "ben", CONTENT)

    assert (party["phone"].words(), shown(party["phone"])) == ([b"a note to myself"], [GROUP_ID])


def test_apply__message_like_one_for_the_program_where_others_are__is_for_people(
    make_party: MakeParty,
) -> None:
    party = two_devices(make_party, "ann")

    said(party, "ann", CONTENT)
    said(party, "ben", CONTENT)

    assert party["phone"].words() == [CONTENT, CONTENT]
    assert (control(party["phone"]), shown(party["phone"])) == ([], [GROUP_ID])


def test_keep_control__more_than_there_is_room_for__is_dropped(make_party: MakeParty) -> None:
    device = make_party("ben")["ben"]
    with device.store.writing() as connection:
        for size in (MOST_CONTROL_BYTES + 1, *[1] * (MOST_CONTROL_MESSAGES + 5)):
            content = os.urandom(size)
            sync_groups.keep_control(connection, device.store.seal, GROUP_ID, device.key, content)

    kept = control(device)
    assert (len(kept), {len(content) for _, content in kept}) == (MOST_CONTROL_MESSAGES, {1})


def test_forget_group__afterwards__nothing_of_it_is_left_and_nothing_is_read(
    make_party: MakeParty,
) -> None:
    party = two_devices(make_party)
    said(party, "ben", CONTENT)
    phone = party["phone"]
    with phone.store.writing() as connection:
        forget_group(connection, GROUP_ID)

    assert (control(phone), phone.words(), shown(phone)) == ([], [], [])
    [group] = phone.groups.groups()
    assert (group.membership, group.epoch) == (MembershipState.REJECTED, None)
    # Another process may be reading the group meanwhile.
    party["ben"].groups.send(GROUP_ID, CONTENT, party["ben"].now_ns)
    party["ben"].advance()
    phone.read()
    assert control(phone) == []

"""Two copies of one client's database: what one wrote, the other one reads, and neither repeats."""

from __future__ import annotations

import copy
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from chainkit_client.groups.groups import Groups
from chainkit_client.intents.arguments import AddMembers, RemoveMembers
from chainkit_client.storage.schema import IntentKind, IntentState, MessageKind
from chainkit_client.storage.store import Store
from support.client.group_network import BEGIN_NS, GROUP_ID, Device, DeviceNetwork, Party, update
from support.client.toy_engine import ToyEngine

from .conftest import MakeParty


@pytest.fixture
def party(make_party: MakeParty) -> Party:
    return make_party("alice", "bob")


@pytest.fixture
def twin(party: Party) -> Iterator[Device]:
    """A copy of alice's database, as it is after the group was made."""
    alice = party["alice"]
    made = copy.copy(alice)
    made.path = alice.path.with_name("twin.db")
    with closing(sqlite3.connect(alice.path)) as one, closing(sqlite3.connect(made.path)) as other:
        one.backup(other)
    made.engine = ToyEngine()
    made.store = Store.open(made.path, "password", 2)
    made.groups = Groups(made.store, made.engine)
    made.network = DeviceNetwork(party.logs, made)
    yield made
    made.close()


def standing(device: Device) -> tuple[int | None, bool, int | None]:
    group = device.groups.group(GROUP_ID)
    return group.epoch, group.is_member, group.copied_at_epoch


def test_receive__another_copy_wrote__is_shown_and_new_keys_come_before_the_next_message(
    party: Party, twin: Device
) -> None:
    alice, bob = party["alice"], party["bob"]
    for words in (b"one", b"two"):
        alice.groups.send(GROUP_ID, words, BEGIN_NS)
    alice.advance()
    twin.groups.send(GROUP_ID, b"three", BEGIN_NS + 1)

    twin.read()
    twin.advance()
    kinds = [each.kind for each in twin.groups.intents(GROUP_ID, (IntentState.PUBLISHED,))]
    twin.read()
    twin.advance()
    bob.read()

    assert kinds == [IntentKind.KEY_UPDATE]
    assert sorted(twin.words()) == [b"one", b"three", b"two"]
    assert bob.words() == [b"one", b"two", b"three"]
    assert standing(twin) == (2, True, 1)
    rows = {each.content: each for each in twin.groups.messages(GROUP_ID)}
    assert rows[b"one"].warning == "written by another copy of this database"
    assert rows[b"one"].sender == alice.key
    assert alice.groups.group(GROUP_ID).copied_at_epoch is None


def test_receive__another_copy_committed__leaves_the_group_and_says_so(
    party: Party, twin: Device
) -> None:
    update(party["alice"])

    twin.read()

    assert standing(twin) == (2, False, 2)
    assert twin.groups.messages(GROUP_ID)[-1].kind is MessageKind.LEFT_BEHIND


def test_retract__a_commit_of_another_copy__is_in_the_group_again(
    party: Party, twin: Device
) -> None:
    update(party["alice"])
    party["bob"].read()
    update(party["bob"])
    twin.read()

    twin.groups.retract(GROUP_ID, 1)
    is_in_after_one = twin.groups.group(GROUP_ID).is_member
    twin.groups.retract(GROUP_ID, 0)

    assert not is_in_after_one
    assert standing(twin)[:2] == (1, True)
    assert MessageKind.LEFT_BEHIND not in {each.kind for each in twin.groups.messages(GROUP_ID)}


def test_receive__left_behind_and_added_again__follows_and_sends(
    party: Party, twin: Device
) -> None:
    bob = party["bob"]
    update(party["alice"])
    twin.read()
    for arguments in (RemoveMembers((twin.key,)), AddMembers((twin.key,))):
        bob.read()
        bob.groups.queue(GROUP_ID, arguments)
        bob.advance()
    bob.read()
    bob.advance()

    twin.read()
    twin.groups.send(GROUP_ID, b"here again", BEGIN_NS)
    twin.advance()
    bob.read()

    assert twin.groups.group(GROUP_ID).is_member
    assert bob.words() == [b"here again"]

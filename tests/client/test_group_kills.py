"""``kill -9`` after every step of an addition, a removal, a message and a key update."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from chainkit_client.groups.groups import Groups
from chainkit_client.intents.arguments import AddMembers
from chainkit_client.mls.engine import Installation
from chainkit_client.storage.own import insert_installation, insert_key_package
from chainkit_client.storage.schema import IntentState, MessageKind, PayloadStatus
from chainkit_client.storage.store import Store
from support.client.group_network import BEGIN_NS, CHAIN, GROUP_ID, memory_folder
from support.client.group_process import Countdown, FileNetwork, Lives, open_client, read, run
from support.client.toy_engine import ToyEngine
from support.seeds import cases_of_the_day

KILLED = -signal.SIGKILL
EACH = 3
"""One of so many steps is tried, another one each day."""
NAMES = ("alice", "bob", "carol")


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    with Lives() as running:
        yield running


@dataclass
class Stage:
    """Three clients, two of them in a group, on a network of files."""

    root: Path

    def __post_init__(self) -> None:
        self.network.mkdir(parents=True)
        self.installations = {name: self._install(name) for name in NAMES}

    @property
    def network(self) -> Path:
        return self.root / "network"

    def database(self, name: str) -> Path:
        return self.root / f"{name}.db"

    def _install(self, name: str) -> Installation:
        engine, store = ToyEngine(), Store.open(self.database(name), "password", 2)
        installation = engine.new_installation(name.encode())
        offer = engine.new_key_package(installation)
        with store.writing() as connection:
            insert_installation(connection, store.seal, installation)
            insert_key_package(connection, store.seal, offer, 1)
        store.close()
        (self.network / f"offer-{installation.public_key.hex()}").write_bytes(offer.public)
        return installation

    def open(self, name: str) -> tuple[Store, Groups, FileNetwork]:
        return open_client(self.database(name), self.network, Countdown(0))

    def found(self, *others: str) -> None:
        """Let Alice make the group, and add others."""
        store, groups, network = self.open("alice")
        groups.create(GROUP_ID, BEGIN_NS)
        keys = tuple(self.installations[name].public_key for name in others)
        groups.queue(GROUP_ID, AddMembers(keys))
        run(groups, network)
        store.close()
        for name in others:
            self.settle(name)

    def settle(self, name: str) -> None:
        """Let a client read all there is."""
        store, groups, network = self.open(name)
        read(groups, network)
        store.close()

    def life(self, action: str, step: int) -> tuple[str, str, str, str, int]:
        target = self.installations["carol"].public_key.hex()
        return str(self.database("alice")), str(self.network), action, target, step


@pytest.fixture
def root() -> Iterator[Path]:
    with memory_folder() as folder:
        yield folder


@pytest.mark.conforms("R20")
@pytest.mark.conforms("R22")
@pytest.mark.parametrize("action", ["add", "remove", "send", "update"])
def test_run__killed_after_every_step__ends_as_if_it_had_not_been(
    lives: Lives, root: Path, action: str
) -> None:
    others = ("bob", "carol") if action == "remove" else ("bob",)
    for step in cases_of_the_day(count(1), EACH):
        stage = Stage(root / str(step))
        stage.found(*others)
        lives.begin(stage.life(action, step))
        [code] = lives.end()
        lives.begin(stage.life(action, 0))
        assert lives.end() == [0]
        _check(stage, action)
        if code == 0:
            # There was no such step.
            assert step > 20
            return
        assert code == KILLED


def _check(stage: Stage, action: str) -> None:
    for name in NAMES[1:]:
        stage.settle(name)
    opened = {name: stage.open(name) for name in NAMES}
    alice, bob, carol = (opened[name][1] for name in NAMES)
    commits = [one for one, _, _ in opened["alice"][2].payloads() if one == CHAIN]
    assert {each.state for each in alice.intents(GROUP_ID)} == {IntentState.PROCESSED}
    assert alice.view(GROUP_ID).epoch_authenticator == bob.view(GROUP_ID).epoch_authenticator
    names = {each.credential.decode() for each in bob.view(GROUP_ID).members}
    assert names == {"alice", "bob"} | ({"carol"} if action == "add" else set())
    if action == "add":
        assert carol.view(GROUP_ID).epoch_authenticator == bob.view(GROUP_ID).epoch_authenticator
    if action == "remove":
        assert not carol.group(GROUP_ID).is_member
    # Nothing was sent twice: what was sent before the kill was found.
    assert len(commits) == (0 if action == "send" else 1)
    for groups in (alice, bob):
        words = [
            each.content
            for each in groups.messages(GROUP_ID)
            if each.kind is MessageKind.APPLICATION
        ]
        assert words == ([b"words"] if action == "send" else [])
    failed = [each for each in bob.results(GROUP_ID) if each.status is not PayloadStatus.SUCCEEDED]
    assert failed == []
    for store, _, _ in opened.values():
        store.close()


@pytest.mark.conforms("R23")
def test_run__eight_processes_on_one_file__lose_and_repeat_nothing(
    lives: Lives, root: Path
) -> None:
    stage = Stage(root / "stage")
    stage.found("bob")
    store, groups, network = stage.open("bob")
    for number in range(30):
        groups.send(GROUP_ID, b"%d" % number, BEGIN_NS)
    run(groups, network)
    store.close()
    store, groups, network = stage.open("alice")
    for number in range(20):
        groups.send(GROUP_ID, b"of Alice %d" % number, BEGIN_NS)
    groups.queue(GROUP_ID, AddMembers((stage.installations["carol"].public_key,)))
    store.close()

    lives.begin(*[stage.life("update", 0)] * 8)
    assert lives.end() == [0] * 8
    stage.settle("bob")
    stage.settle("carol")

    (store, alice, network), (other, bob, _) = stage.open("alice"), stage.open("bob")
    sent = [b"%d" % number for number in range(30)] + [b"of Alice %d" % one for one in range(20)]
    for groups in (alice, bob):
        words = [
            each.content
            for each in groups.messages(GROUP_ID)
            if each.kind is MessageKind.APPLICATION
        ]
        assert sorted(words) == sorted(sent)
    assert {each.state for each in alice.intents(GROUP_ID)} <= {
        IntentState.PROCESSED,
        IntentState.COMMITTED,
    }
    # Each payload was built and sent once.
    assert len(network.payloads()) == 51
    assert {each.status for each in bob.results(GROUP_ID)} == {PayloadStatus.SUCCEEDED}
    store.close()
    other.close()

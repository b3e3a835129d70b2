"""Bytes of strangers and of members that break rules: all are refused, and none does harm."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from time import time
from typing import Final

import pytest

from chainkit_client.mls.engine import MlsRefused, NotInvited, StateBroken
from chainkit_client.mls.frames import number
from chainkit_client.mls.node_engine import MOST_CHANGES, NodeEngine
from support.client.hostile import Hostile
from support.client.parties import DATA, GROUP_ID, Party, child_pid, founder, group_of
from support.mls import KeyPackageFields

DAMAGES: Final = 60
"""For each kind of bytes; each takes a few milliseconds."""
KEY_PACKAGE_HEAD: Final = b"\0\1\0\5"
_ENCRYPTION_KEY: Final = slice(4 + 2 + 2 + 33 + 1, 4 + 2 + 2 + 33 + 33)
"""In a key package's MLSMessage: behind version, suite and init key."""


@pytest.fixture
def pair(engine: NodeEngine) -> tuple[Party, Party]:
    alice, bob = group_of(engine, b"alice", b"bob")
    return alice, bob


def damaged(data: bytes) -> list[bytes]:
    """Truncated, extended, and with bits flipped; the same on each run."""
    chance = random.Random(len(data))
    cuts = [data[: chance.randrange(len(data))] for _ in range(DAMAGES // 2)]
    flips = []
    for _ in range(DAMAGES):
        at = chance.randrange(len(data))
        flips.append(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
    return [b"", data + b"\0", data * 2, chance.randbytes(len(data)), *cuts, *flips]


@pytest.mark.parametrize(
    "make",
    [
        lambda alice: alice.send(b"hello"),
        lambda alice: alice.engine.update(alice.state, DATA).message,
        lambda alice: alice.engine.remove(alice.state, [1], DATA).message,
    ],
    ids=["message", "update", "removal"],
)
def test_receive__damaged_bytes__refuses_and_still_reads_what_was_sent(
    pair: tuple[Party, Party], make: Callable[[Party], bytes]
) -> None:
    alice, bob = pair
    message = make(alice)

    for bad in damaged(message):
        with pytest.raises(MlsRefused):
            bob.engine.receive(bob.state, bad)
    assert bob.engine.receive(bob.state, message).sender.credential == b"alice"


def test_join__damaged_welcome__refuses_and_still_joins_by_what_was_sent(
    engine: NodeEngine,
) -> None:
    alice = founder(engine)
    bob = engine.new_installation(b"bob")
    package = engine.new_key_package(bob)
    welcome = engine.add(alice.state, [package.public], DATA).welcome
    assert welcome is not None

    for bad in damaged(welcome):
        with pytest.raises(MlsRefused):
            engine.join(bob, package, bad)
    assert engine.view(engine.join(bob, package, welcome)).own_leaf == 1


def test_add__damaged_key_package__is_refused(engine: NodeEngine) -> None:
    alice = founder(engine)
    package = engine.new_key_package(engine.new_installation(b"bob"))

    for bad in damaged(package.public):
        with pytest.raises(MlsRefused):
            engine.add(alice.state, [bad], DATA)


def test_call__with_a_damaged_state__blames_the_state_and_no_message(
    pair: tuple[Party, Party],
) -> None:
    alice, bob = pair
    message = alice.send(b"hello")

    for bad in damaged(bob.state):
        for call in (
            lambda bad=bad: bob.engine.view(bad),
            lambda bad=bad: bob.engine.receive(bad, message),
        ):
            with pytest.raises(StateBroken):
                call()


def test_join__with_a_damaged_secret_of_its_own__blames_no_welcome(engine: NodeEngine) -> None:
    alice = founder(engine)
    bob = engine.new_installation(b"bob")
    package = engine.new_key_package(bob)
    welcome = engine.add(alice.state, [package.public], DATA).welcome
    assert welcome is not None

    other = engine.new_key_package(bob)
    damages = [replace(package, secret=secret) for secret in damaged(package.secret)]
    for own in damages:
        with pytest.raises(StateBroken):
            engine.join(bob, own, welcome)
    for own in (replace(package, public=other.public), replace(package, public=b"")):
        with pytest.raises(NotInvited):
            engine.join(bob, own, welcome)
    with pytest.raises(StateBroken):
        engine.join(replace(bob, secret=bob.secret[1:]), package, welcome)


def test_join__welcome_for_somebody_else__is_refused(engine: NodeEngine) -> None:
    alice = founder(engine)
    bob, carol = (engine.new_installation(name) for name in (b"bob", b"carol"))
    staged = engine.add(alice.state, [engine.new_key_package(bob).public], DATA)
    assert staged.welcome is not None

    with pytest.raises(NotInvited):
        engine.join(carol, engine.new_key_package(carol), staged.welcome)


def test_receive__message_of_another_group__is_refused(
    engine: NodeEngine, pair: tuple[Party, Party]
) -> None:
    _, bob = pair
    other = founder(engine, group_id=bytes(32))

    with pytest.raises(MlsRefused, match="expected a message of this group"):
        bob.read(other.send(b"hello"))


def test_receive__another_kind_of_message__is_refused(
    engine: NodeEngine, pair: tuple[Party, Party]
) -> None:
    alice, bob = pair
    package = engine.new_key_package(engine.new_installation(b"carol")).public
    welcome = engine.add(alice.state, [package], DATA).welcome
    assert welcome is not None

    for other in (package, welcome):
        with pytest.raises(MlsRefused, match="expected mls_private_message"):
            bob.engine.receive(bob.state, other)


def test_receive__message_in_the_name_of_another_member__is_refused(
    hostile: Hostile, engine: NodeEngine
) -> None:
    _, bob, mallory = group_of(engine, b"alice", b"bob", b"mallory")
    [honest] = hostile.call("forgedMessage", mallory.state, number(2), b"I am Mallory")
    [forged] = hostile.call("forgedMessage", mallory.state, number(0), b"I am Alice")
    [nobody] = hostile.call("forgedMessage", mallory.state, number(3), b"I am nobody")

    assert bob.engine.receive(bob.state, honest).sender.credential == b"mallory"
    with pytest.raises(MlsRefused, match="Signature invalid"):
        bob.engine.receive(bob.state, forged)
    with pytest.raises(MlsRefused):
        bob.engine.receive(bob.state, nobody)


@pytest.mark.conforms("R19")
def test_receive__proposal_on_its_own__is_refused(
    hostile: Hostile, pair: tuple[Party, Party]
) -> None:
    _, bob = pair
    [proposal] = hostile.call("loneProposal", pair[0].state)

    with pytest.raises(MlsRefused, match="no proposal on its own"):
        bob.engine.receive(bob.state, proposal)


@pytest.mark.conforms("R19")
def test_receive__commit_of_proposals_by_reference__is_refused(
    hostile: Hostile, engine: NodeEngine
) -> None:
    alice, bob, _ = group_of(engine, b"alice", b"bob", b"carol")
    [commit] = hostile.call("commitByReference", alice.state, number(2))

    with pytest.raises(MlsRefused, match="expected a commit without proposals by reference"):
        bob.engine.receive(bob.state, commit)


@pytest.mark.parametrize("kind", ["extensions", "reinit", "custom"])
def test_receive__commit_that_changes_more_than_members__is_refused(
    hostile: Hostile, pair: tuple[Party, Party], kind: str
) -> None:
    alice, bob = pair
    [commit] = hostile.call("commitOfKind", alice.state, kind.encode())

    with pytest.raises(MlsRefused, match="proposals that add or remove members"):
        bob.engine.receive(bob.state, commit)


def test_receive__commit_with_another_confirmation_tag__is_refused(
    hostile: Hostile, pair: tuple[Party, Party]
) -> None:
    alice, bob = pair
    [commit] = hostile.call("commitWithWrongTag", alice.state)

    with pytest.raises(MlsRefused, match="Could not verify confirmation tag"):
        bob.engine.receive(bob.state, commit)


def test_receive__commit_in_the_clear__is_refused(
    hostile: Hostile, pair: tuple[Party, Party]
) -> None:
    alice, bob = pair
    [commit] = hostile.call("publicCommit", alice.state)

    with pytest.raises(MlsRefused, match="expected mls_private_message"):
        bob.engine.receive(bob.state, commit)


def test_receive__commit_that_gives_its_sender_another_identity__is_refused(
    hostile: Hostile, engine: NodeEngine, pair: tuple[Party, Party]
) -> None:
    alice, bob = pair
    other = engine.new_installation(b"alice")
    renamed = hostile.call("commitAsSomebodyElse", alice.state, b"bob")
    rekeyed = hostile.call("commitOfAnotherKey", alice.state, other.secret, other.public_key)
    unchanged = hostile.call("commitAsSomebodyElse", alice.state, b"alice")

    for [commit] in (renamed, rekeyed):
        with pytest.raises(MlsRefused, match="a committer with the credential and key that it had"):
            bob.engine.receive(bob.state, commit)
    assert bob.engine.receive(bob.state, unchanged[0]).sender.credential == b"alice"


def test_commit__that_adds_a_key_of_another_member__is_neither_made_nor_accepted(
    hostile: Hostile, engine_of_suite_1: NodeEngine
) -> None:
    engine = engine_of_suite_1
    alice = founder(engine)
    bob_installation = engine.new_installation(b"bob")
    bob_package = engine.new_key_package(bob_installation)
    staged = engine.add(alice.state, [bob_package.public], DATA)
    assert staged.welcome is not None
    bob = Party(
        engine, bob_installation, engine.join(bob_installation, bob_package, staged.welcome)
    )
    alice.commit(staged)
    now = int(time())
    fields = KeyPackageFields(
        lifetime=(now - 60, now + 3600), encryption_key=bob_package.public[_ENCRYPTION_KEY]
    )
    twin = KEY_PACKAGE_HEAD + fields.written()
    own = KEY_PACKAGE_HEAD + replace(fields, encryption_key=b"\7" * 32).written()

    with pytest.raises(MlsRefused, match="expected new keys for the tree"):
        engine.add(alice.state, [twin], DATA)
    [commit] = hostile.call("commitAdding", alice.state, twin)
    with pytest.raises(MlsRefused, match="expected new keys for the tree"):
        engine.receive(bob.state, commit)
    with pytest.raises(MlsRefused):
        engine.add(alice.state, [own, own], DATA)
    assert bob.apply(engine.add(alice.state, [own], DATA).message).added[0].credential == b"inbox"


def test_add__who_is_a_member_already__is_refused(pair: tuple[Party, Party]) -> None:
    alice, bob = pair
    again = alice.engine.new_key_package(bob.installation)

    with pytest.raises(MlsRefused, match="expected members with keys of their own"):
        alice.engine.add(alice.state, [again.public], DATA)


@pytest.mark.parametrize("leaf", [0, 2, 1000, 2**31, 2**40])
def test_remove__itself_or_nobody__is_refused(pair: tuple[Party, Party], leaf: int) -> None:
    alice, _ = pair

    with pytest.raises(MlsRefused):
        alice.engine.remove(alice.state, [leaf], DATA)


@pytest.mark.parametrize(
    ("kind", "count", "expected"),
    [
        ("wide", 2**21 - 1, "a tree of at most 1024 leaves"),
        ("wide", 2048, "a tree of at most 1024 leaves"),
        ("unmerged", 5_000, "unmerged leaves below their node, in order"),
        ("elsewhere", 1, "unmerged leaves below their node, in order"),
        ("capabilities", 257, "a leaf with fewer capabilities and extensions"),
    ],
)
def test_join__welcome_of_a_stranger_that_would_take_hours__is_refused_at_once(
    hostile: Hostile, engine: NodeEngine, kind: str, count: int, expected: str
) -> None:
    stranger = founder(engine)
    bob = engine.new_installation(b"bob")
    package = engine.new_key_package(bob)
    [welcome] = hostile.call(
        "craftedWelcome", stranger.state, package.public, kind.encode(), number(count)
    )
    child = child_pid(engine)

    with pytest.raises(MlsRefused, match=expected):
        engine.join(bob, package, welcome)
    assert child_pid(engine) == child


@pytest.mark.parametrize(
    ("kind", "count", "expected"),
    [
        ("removals", MOST_CHANGES + 1, f"at most {MOST_CHANGES} proposals"),
        ("path", 33, "a path of at most 32 nodes"),
        ("capabilities", 257, "a leaf with fewer capabilities and extensions"),
    ],
)
def test_receive__commit_that_would_take_hours__is_refused_at_once(
    hostile: Hostile, pair: tuple[Party, Party], kind: str, count: int, expected: str
) -> None:
    alice, bob = pair
    [commit] = hostile.call("craftedCommit", alice.state, kind.encode(), number(count))

    with pytest.raises(MlsRefused, match=expected):
        bob.engine.receive(bob.state, commit)


def test_add__more_members_than_one_commit_may__is_refused(engine: NodeEngine) -> None:
    alice = founder(engine)
    packages = [
        engine.new_key_package(engine.new_installation(b"%d" % each)).public
        for each in range(MOST_CHANGES + 1)
    ]

    with pytest.raises(MlsRefused, match=f"addition: expected 1 to {MOST_CHANGES} members"):
        engine.add(alice.state, packages, DATA)
    staged = engine.add(alice.state, packages[1:], DATA)
    alice.commit(staged)
    assert len(alice.view.members) == MOST_CHANGES + 1


def test_commit__that_makes_a_group_larger_than_the_bound__is_refused(hostile: Hostile) -> None:
    assert hostile.call("addToGroupOf", number(1023)) == []
    with pytest.raises(AssertionError, match="expected at most 1024 members"):
        hostile.call("addToGroupOf", number(1024))


def test_replay__of_everything_that_was_sent__is_refused(engine: NodeEngine) -> None:
    alice, bob = group_of(engine, b"alice", b"bob")
    sent = [alice.send(b"one"), alice.update(), alice.send(b"two"), alice.update()]
    for message in sent:
        bob.state = engine.receive(bob.state, message).state

    for message in sent:
        with pytest.raises(MlsRefused):
            engine.receive(bob.state, message)
    assert bob.view.group_id == GROUP_ID
    assert bob.view.epoch_authenticator == alice.view.epoch_authenticator

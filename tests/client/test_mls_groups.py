"""Members of a group, all with the engine as it is shipped."""

from dataclasses import replace
from time import time

import pytest

from chainkit.protocol.mls.message import ContentType, WireFormat, parse_message_header
from chainkit_client.mls.engine import CommitReceived, EpochAhead, KeyUsed, MlsRefused, OwnCommit
from chainkit_client.mls.node_engine import MOST_PLAINTEXT_BYTES, NodeEngine
from support.client.parties import DATA, GROUP_ID, Party, founder, group_of, joined


@pytest.fixture(params=[3, 1])
def either(
    request: pytest.FixtureRequest, engine: NodeEngine, engine_of_suite_1: NodeEngine
) -> NodeEngine:
    return engine if request.param == 3 else engine_of_suite_1


def names(party: Party) -> list[bytes]:
    return [member.credential for member in party.view.members]


def test_create__a_new_group__has_its_founder_in_epoch_0(either: NodeEngine) -> None:
    alice = founder(either)

    view = alice.view
    assert (view.group_id, view.epoch, view.own_leaf, view.is_member) == (GROUP_ID, 0, 0, True)
    [member] = view.members
    assert (member.leaf, member.credential) == (0, b"alice")
    assert member.public_key == alice.installation.public_key


def test_add__two_installations__join_with_the_same_view(either: NodeEngine) -> None:
    alice, bob, carol = group_of(either, b"alice", b"bob", b"carol")

    views = [each.view for each in (alice, bob, carol)]
    assert len({view.epoch_authenticator for view in views}) == 1
    assert [view.own_leaf for view in views] == [0, 1, 2]
    assert {view.epoch for view in views} == {1}
    assert names(carol) == [b"alice", b"bob", b"carol"]


def test_commit__that_adds__names_sender_added_and_authenticated_data(
    either: NodeEngine,
) -> None:
    alice, bob, carol = group_of(either, b"alice", b"bob", b"carol")
    newcomer = either.new_installation(b"dave")
    package = either.new_key_package(newcomer)
    staged = either.add(bob.state, [package.public], DATA)
    bob.commit(staged, [carol])
    dave = joined(either, newcomer, package, staged)
    added = alice.apply(staged.message)

    assert (added.sender.leaf, added.sender.credential) == (1, b"bob")
    assert [(each.leaf, each.credential) for each in added.added] == [(3, b"dave")]
    assert added.removed == ()
    assert added.authenticated_data == DATA
    assert added.view == alice.view
    assert added.view.epoch_authenticator == dave.view.epoch_authenticator


def test_remove__two_members__tells_them_and_the_others(either: NodeEngine) -> None:
    alice, bob, carol, dave = group_of(either, b"alice", b"bob", b"carol", b"dave")
    staged = either.remove(alice.state, [bob.leaf, dave.leaf], DATA)
    before = bob.view

    told = [each.apply(staged.message) for each in (bob, carol, dave)]
    alice.commit(staged)

    assert staged.welcome is None
    for each in told:
        assert sorted(member.credential for member in each.removed) == [b"bob", b"dave"]
        assert each.added == ()
    assert [each.view.is_member for each in told] == [False, True, False]
    assert (bob.view.epoch, bob.view.epoch_authenticator) == (1, before.epoch_authenticator)
    assert carol.view.epoch_authenticator == alice.view.epoch_authenticator
    assert names(alice) == [b"alice", b"carol"]


def test_removed_member__afterwards__reads_and_makes_nothing(engine: NodeEngine) -> None:
    alice, bob = group_of(engine, b"alice", b"bob")
    bob.apply(alice.remove([bob.leaf]))
    [carol] = alice.invite(engine, [b"carol"])

    attempts = [
        lambda: bob.read(alice.send(b"secret")),
        lambda: bob.send(b"still here"),
        lambda: bob.update(),
    ]
    for attempt in attempts:
        with pytest.raises(MlsRefused, match="a group of which this installation is a member"):
            attempt()
    assert carol.view.epoch_authenticator == alice.view.epoch_authenticator


def test_update__of_each_member__changes_the_epoch_and_not_the_members(either: NodeEngine) -> None:
    alice, bob, carol = group_of(either, b"alice", b"bob", b"carol")
    keys = [member.public_key for member in alice.view.members]

    bob.update([alice, carol])
    alice.update([bob, carol])
    carol.update([alice, bob])

    assert [each.view.epoch for each in (alice, bob, carol)] == [4, 4, 4]
    assert len({each.view.epoch_authenticator for each in (alice, bob, carol)}) == 1
    assert [member.public_key for member in bob.view.members] == keys


def test_message__with_authenticated_data__is_read_by_each_other_member(
    either: NodeEngine,
) -> None:
    alice, bob, carol = group_of(either, b"alice", b"bob", b"carol")
    message = bob.send(b"hello", b"digest")

    for reader in (alice, carol):
        received = reader.read(message)
        assert received.plaintext == b"hello"
        assert received.authenticated_data == b"digest"
        assert (received.sender.credential, received.epoch) == (b"bob", 1)
        assert received.sender.public_key == bob.installation.public_key


def test_receive__another_copy_of_the_state_wrote_it__is_read_once_and_no_key_is_used_twice(
    either: NodeEngine,
) -> None:
    alice, bob = group_of(either, b"alice", b"bob")
    copy = replace(bob)
    first, second = bob.send(b"first"), bob.send(b"second")

    assert copy.read(second).sender.public_key == bob.installation.public_key
    assert copy.read(first).plaintext == b"first"
    with pytest.raises(KeyUsed) as caught:
        copy.read(second)
    assert caught.value.leaf == bob.leaf
    third = copy.send(b"third")
    assert [alice.read(each).plaintext for each in (first, second, third)] == [
        *(b"first", b"second", b"third")
    ]


def test_receive__another_copy_of_the_state_committed__is_told_apart(either: NodeEngine) -> None:
    alice, bob = group_of(either, b"alice", b"bob")
    before = bob.state

    commit = bob.update([alice])

    with pytest.raises(OwnCommit, match="a commit of another member"):
        either.receive(before, commit)


def test_receive__two_copies_of_a_state_use_one_key__names_the_leaf(either: NodeEngine) -> None:
    alice, bob = group_of(either, b"alice", b"bob")
    copy = replace(bob)
    first, again = bob.send(b"first"), copy.send(b"again")

    alice.read(first)

    with pytest.raises(KeyUsed, match="a key that was not used before, got one of leaf 1"):
        alice.read(again)


def test_commit__on_the_wire__is_a_private_message_that_hides_who_joins(
    engine: NodeEngine,
) -> None:
    alice, _ = group_of(engine, b"alice", b"bob")
    newcomer = engine.new_installation(b"carol of the inbox")
    staged = engine.add(alice.state, [engine.new_key_package(newcomer).public], DATA)

    header = parse_message_header(staged.message)
    assert (header.wire_format, header.content_type) == (
        WireFormat.PRIVATE_MESSAGE,
        ContentType.COMMIT,
    )
    assert (header.group_id, header.epoch) == (GROUP_ID, 1)
    for hidden in (newcomer.credential, newcomer.public_key, alice.installation.public_key):
        assert hidden not in staged.message


def test_staged_commit__that_is_not_accepted__leaves_the_state_in_use(engine: NodeEngine) -> None:
    alice, bob = group_of(engine, b"alice", b"bob")
    lost = engine.update(alice.state, DATA)
    alice.apply(bob.update())

    assert alice.view.epoch == 2
    with pytest.raises(MlsRefused, match="expected a commit of epoch 2, got 1"):
        bob.apply(lost.message)
    bob.apply(alice.update())
    assert alice.view.epoch_authenticator == bob.view.epoch_authenticator


@pytest.mark.conforms("R2")
def test_message__of_three_epochs_ago__is_read_and_of_four_is_refused(engine: NodeEngine) -> None:
    alice, bob = group_of(engine, b"alice", b"bob")
    old = [alice.send(b"first"), alice.send(b"second")]
    for _ in range(3):
        bob.apply(alice.update())

    assert bob.read(old[0]).plaintext == b"first"
    bob.apply(alice.update())
    with pytest.raises(MlsRefused, match="expected an epoch from 2, got 1"):
        bob.read(old[1])


@pytest.mark.conforms("R2")
def test_state__after_four_commits__has_no_key_of_the_first_epoch() -> None:
    with NodeEngine() as engine, NodeEngine(past_epochs=9) as patient:
        alice, bob = group_of(engine, b"alice", b"bob")
        old = alice.send(b"old")
        for _ in range(4):
            bob.apply(alice.update())

        with pytest.raises(MlsRefused, match="an epoch since this installation joined, got 1"):
            patient.receive(bob.state, old)


def test_past_epochs__of_0__keeps_no_earlier_keys() -> None:
    with NodeEngine(past_epochs=0) as engine:
        alice, bob = group_of(engine, b"alice", b"bob")
        old = alice.send(b"old")
        bob.apply(alice.update())

        with pytest.raises(MlsRefused, match="expected an epoch from 2, got 1"):
            bob.read(old)
        assert bob.read(alice.send(b"new")).plaintext == b"new"


@pytest.mark.conforms("R3")
def test_message__of_a_later_epoch__waits_for_a_later_state(engine: NodeEngine) -> None:
    alice, bob = group_of(engine, b"alice", b"bob")
    commit = alice.update()
    message = alice.send(b"later")
    second = alice.update()

    for ahead in (message, second):
        with pytest.raises(EpochAhead, match="expected an epoch up to 1, got 2"):
            engine.receive(bob.state, ahead)
    bob.apply(commit)
    assert bob.read(message).plaintext == b"later"
    assert bob.apply(second).view.epoch == 3


@pytest.mark.conforms("R3")
def test_message__whose_header_claims_another_epoch__is_refused(engine: NodeEngine) -> None:
    alice, bob = group_of(engine, b"alice", b"bob")
    bob.apply(alice.update())
    message = alice.send(b"hello")
    epoch = message.index((2).to_bytes(8, "big"))

    for claimed in (0, 1):
        with pytest.raises(MlsRefused):
            bob.read(message[:epoch] + claimed.to_bytes(8, "big") + message[epoch + 8 :])
    assert bob.read(message).plaintext == b"hello"


@pytest.mark.conforms("R5")
def test_commit__of_another_epoch_than_the_current_one__is_refused(engine: NodeEngine) -> None:
    alice, bob, carol = group_of(engine, b"alice", b"bob", b"carol")
    late = engine.update(carol.state, DATA).message
    bob.apply(first := alice.update())

    for other in (late, first):
        with pytest.raises(MlsRefused, match="expected a commit of epoch 2, got 1"):
            engine.receive(bob.state, other)
    ahead = alice.update()
    with pytest.raises(EpochAhead):
        engine.receive(carol.state, ahead)


@pytest.mark.conforms("R24")
def test_message__decrypted__is_refused_by_the_new_state_and_read_again_by_the_old(
    engine: NodeEngine,
) -> None:
    alice, bob = group_of(engine, b"alice", b"bob")
    message = alice.send(b"once")
    old = bob.state
    first = bob.read(message)

    for _ in range(2):
        with pytest.raises(MlsRefused):
            engine.receive(bob.state, message)
    assert engine.receive(old, message) == first


@pytest.mark.conforms("R24")
def test_message__of_an_earlier_epoch__is_refused_the_second_time(engine: NodeEngine) -> None:
    alice, bob = group_of(engine, b"alice", b"bob")
    message = alice.send(b"once")
    bob.apply(alice.update())

    assert bob.read(message).plaintext == b"once"
    with pytest.raises(MlsRefused):
        bob.read(message)


def test_receive__the_same_state_twice__gives_the_same_answer(engine: NodeEngine) -> None:
    alice, bob = group_of(engine, b"alice", b"bob")
    commit = engine.update(alice.state, DATA).message

    first, second = (engine.receive(bob.state, commit) for _ in range(2))

    assert isinstance(first, CommitReceived)
    assert first == second


def test_messages__of_one_sender_in_another_order__are_all_read(engine: NodeEngine) -> None:
    alice, bob = group_of(engine, b"alice", b"bob")
    messages = [alice.send(b"%d" % number) for number in range(40)]

    assert [bob.read(each).plaintext for each in reversed(messages)] == [
        b"%d" % number for number in reversed(range(40))
    ]


def test_reinvited__with_another_key_package__is_a_member_again(engine: NodeEngine) -> None:
    alice, bob = group_of(engine, b"alice", b"bob")
    bob.apply(alice.remove([bob.leaf]))
    package = engine.new_key_package(bob.installation)
    staged = engine.add(alice.state, [package.public], DATA)
    alice.commit(staged)

    again = joined(engine, bob.installation, package, staged)

    assert again.read(alice.send(b"welcome back")).plaintext == b"welcome back"


def test_add__at_another_time__goes_by_the_clock_that_was_handed_in(engine: NodeEngine) -> None:
    in_ten_years = int(time()) + 3_650 * 86_400
    with NodeEngine(now=lambda: in_ten_years) as later:
        alice, bob = group_of(later, b"alice", b"bob")
        package = later.new_key_package(later.new_installation(b"carol"))

        # A member stays valid whatever the clock says, or clocks would part a group.
        assert engine.receive(bob.state, alice.send(b"hello")).sender.credential == b"alice"
        commit = later.add(alice.state, [package.public], DATA).message
        assert engine.receive(bob.state, commit).sender.credential == b"alice"
        with pytest.raises(MlsRefused, match="a lifetime that contains"):
            engine.add(bob.state, [package.public], DATA)


def test_message__of_the_largest_size__is_read_and_no_larger_one_is_made(
    engine: NodeEngine,
) -> None:
    alice, bob = group_of(engine, b"alice", b"bob")
    plaintext = bytes(MOST_PLAINTEXT_BYTES - len(DATA))

    assert bob.read(alice.send(plaintext)).plaintext == plaintext
    with pytest.raises(MlsRefused, match="plaintext: expected at most"):
        alice.send(plaintext + b"!")

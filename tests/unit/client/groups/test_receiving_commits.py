"""Commits of a group: which one counts, who is told of a fork, and what a late one changes."""

from __future__ import annotations

import pytest

from chainkit.errors import ReorgTooDeep
from chainkit_client.groups.groups import Groups
from chainkit_client.groups.payload import group_topic
from chainkit_client.groups.plaintext import Plaintext
from chainkit_client.storage.schema import (
    IntentState,
    PayloadStatus,
)
from support import mls
from support.client.group_network import (
    BEGIN_NS,
    CHAIN,
    GROUP_ID,
    NODE,
    Device,
    epochs_of,
    taken_apart,
)
from support.client.received import (
    forged,
    garbage,
    put_commit,
    put_message,
    statuses,
)

from .conftest import MakeParty

S = PayloadStatus


def with_sparse_ids(device: Device) -> Device:
    """Let a device's groups be on a chain whose payloads come under any ids."""
    chain = frozenset({CHAIN})
    device.groups = Groups(device.store, device.engine, chain, chain)
    return device


@pytest.mark.conforms("R1")
def test_apply__commits_of_all_members__each_makes_the_next_epoch(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    for name in ("alice", "bob", "bob", "alice"):
        put_commit(party[name])
        party.settle()

    epochs = epochs_of(party["bob"].groups)

    assert [(each.number, each.previous) for each in epochs] == [
        (5, 4),
        (4, 3),
        (3, 2),
        (2, 1),
        (1, None),
    ]
    assert [each.place for each in epochs] == [(CHAIN, 4), (CHAIN, 3), (CHAIN, 2), (CHAIN, 1), None]


@pytest.mark.conforms("R5")
@pytest.mark.parametrize("epoch", [0, 1, 3, 2**64 - 1])
def test_apply__a_commit_of_another_epoch__is_refused_by_its_header(
    make_party: MakeParty, epoch: int
) -> None:
    party = make_party("alice", "bob")
    put_commit(party["alice"])
    party.settle()
    party.logs.add(CHAIN, garbage(epoch))

    [outcome] = party["bob"].read()

    assert (outcome.status, outcome.reason) == (S.FAILED, f"a commit of epoch {epoch} in epoch 2")


@pytest.mark.conforms("R6")
def test_apply__two_commits_of_one_epoch__the_chain_decides_for_all(make_party: MakeParty) -> None:
    party = make_party("alice", "bob", "carol")
    # Each is published before its author read the other's, and is timed by nobody.
    put_commit(party["bob"])
    put_commit(party["alice"])

    party.read()

    histories = [party[name].authenticators()[2] for name in ("alice", "bob", "carol")]
    assert len(set(histories)) == 1
    assert party["bob"].states() == [IntentState.COMMITTED]
    assert party["alice"].states()[-1] is IntentState.TO_SEND


@pytest.mark.conforms("R8")
def test_apply__garbage_claims_the_epoch_first__the_first_valid_commit_wins(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    party.logs.add(CHAIN, garbage(1))
    put_commit(party["alice"])

    outcomes = [statuses(party[name].read()) for name in ("alice", "bob")]

    assert outcomes == [[S.FAILED, S.SUCCEEDED]] * 2
    assert party["alice"].authenticators()[2] == party["bob"].authenticators()[2]


def test_apply__a_commit_in_a_nodes_log__is_refused(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    commit = put_commit(party["alice"])
    party.logs.reorg(0, [])
    party.logs.add(NODE, commit)

    [outcome] = party["bob"].read()

    assert (outcome.status, outcome.reason) == (S.FAILED, "a commit belongs to the chain")


@pytest.mark.conforms("R19")
def test_apply__a_proposal_of_another_member__is_discarded(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    party.logs.add(CHAIN, garbage(1, mls.PROPOSAL))

    [outcome] = party["bob"].read()

    assert (outcome.status, outcome.reason) == (S.FAILED, "a proposal on its own is discarded")
    assert party["bob"].groups.view(GROUP_ID).epoch == 1


@pytest.mark.conforms("R4")
def test_apply__a_member_with_another_history__names_the_first_differing_commit(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    for _ in range(3):
        put_commit(party["alice"])
        party.settle()
    history = party["bob"].authenticators()
    told = (b"4" * 32, b"3" * 32, history[2], history[1])
    words = Plaintext(BEGIN_NS, 4, told, b"words").encoded()
    party.logs.add(NODE, forged(party["bob"], words))

    [outcome] = party["bob"].read()

    fork = outcome.fork
    assert fork is not None
    assert (fork.epoch, fork.commit, fork.ours, fork.theirs) == (
        3,
        (CHAIN, 2),
        history[3],
        b"3" * 32,
    )
    assert fork.member == party["alice"].key
    assert party["bob"].groups.group(GROUP_ID).forked_at_epoch == 3


@pytest.mark.conforms("R4")
def test_apply__members_with_one_history__show_no_fork(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    for _ in range(5):
        put_commit(party["alice"])
        party.settle()
        put_message(party["alice"], b"words")
        [outcome] = party["bob"].read()
        assert (outcome.status, outcome.fork) == (S.SUCCEEDED, None)

    assert party["bob"].groups.group(GROUP_ID).forked_at_epoch is None


@pytest.mark.conforms("R6")
def test_apply__a_hidden_commit_comes_late__what_lies_behind_it_is_read_again(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", "carol")
    hidden = put_commit(party["alice"])
    shown = put_commit(party["bob"])
    carol = party["carol"]
    carol.groups.apply(GROUP_ID, [taken_apart(shown, CHAIN, 2, BEGIN_NS)])
    party["alice"].read()
    wrong = carol.authenticators()[2]

    [outcome] = carol.groups.apply(GROUP_ID, [taken_apart(hidden, CHAIN, 1, BEGIN_NS)])
    cursor = carol.groups.cursor(group_topic(GROUP_ID))
    [loser] = carol.read()

    assert (outcome.status, outcome.epoch, cursor) == (S.SUCCEEDED, 2, {CHAIN: 1})
    assert loser.status is S.FAILED
    assert carol.authenticators()[2] == party["alice"].authenticators()[2] != wrong


def test_apply__another_payload_where_a_final_one_stood__is_an_error(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    put_commit(party["alice"])
    bob = party["bob"]
    bob.read()
    bob.groups.finalize(GROUP_ID, 1)
    other = taken_apart(garbage(1), CHAIN, 1, BEGIN_NS)

    with pytest.raises(ReorgTooDeep, match="the final payload 1"):
        bob.groups.apply(GROUP_ID, [other])

    assert bob.groups.view(GROUP_ID).epoch == 2


def test_apply__sparse_ids_and_a_commit_comes_below_what_is_final__is_applied(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", "carol")
    commit = put_commit(party["alice"])
    carol = with_sparse_ids(party["carol"])
    carol.groups.apply(GROUP_ID, [taken_apart(garbage(1), CHAIN, 1000, BEGIN_NS)])
    carol.groups.finalize(GROUP_ID, 1000)

    [outcome] = carol.groups.apply(GROUP_ID, [taken_apart(commit, CHAIN, 17, BEGIN_NS)])

    assert (outcome.status, outcome.epoch) == (S.SUCCEEDED, 2)
    party["alice"].read()
    assert carol.authenticators()[2] == party["alice"].authenticators()[2]


def test_apply__sparse_ids_and_a_payload_comes_below_a_final_commit__is_refused_and_known(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", "carol")
    commit = put_commit(party["alice"])
    carol = with_sparse_ids(party["carol"])
    carol.groups.apply(GROUP_ID, [taken_apart(commit, CHAIN, 1000, BEGIN_NS)])
    carol.groups.finalize(GROUP_ID, 1000)
    before = carol.authenticators()
    late = taken_apart(garbage(1), CHAIN, 17, BEGIN_NS)

    [outcome] = carol.groups.apply(GROUP_ID, [late])
    [again] = carol.groups.apply(GROUP_ID, [late])

    assert (outcome.status, outcome.reason[:9]) == (S.FAILED, "came late")
    assert again.is_repeated
    assert carol.authenticators() == before

"""The history of a sequence id, through reorgs."""

import pytest

from chainkit_indexer.inspection.history import read_history
from support.chains.fake_chain import Post
from support.indexer.fake_node import FakeNode
from support.indexer.six_blocks import F

pytest_plugins = ["support.indexer.node_fixtures"]


def test_history__never_touched__is_what_is_served(node: FakeNode) -> None:
    history = read_history(node.store, 0, 2)

    assert (history.retracted, history.arrived) == ((), ())
    assert history.current is not None and history.current.is_served
    assert (history.current.block_number, history.is_final, history.confirmations) == (4, True, 5)


def test_history__quarantined__says_why(node: FakeNode) -> None:
    history = read_history(node.store, 0, 3)

    assert history.current is not None and not history.current.is_served
    assert (history.current.reason, history.current.envelope) == ("not a ClientEnvelope", None)


def test_history__kept_then_moved_then_replaced__tells_all_in_order(node: FakeNode) -> None:
    node.chain.fork(1, [F])
    node.catch_up()
    node.chain.fork(1, [Post("x"), F])
    node.catch_up()

    sixth, seventh = (read_history(node.store, 0, number) for number in (6, 7))

    outcomes = [
        (each.reorg_id, each.outcome, each.new_sequence_id, each.ancestor_number)
        for each in sixth.retracted
    ]
    assert outcomes == [(1, "kept", None, 7), (2, "moved", 7, 7)]
    assert {each.payload.transaction_hash for each in sixth.retracted} == {F.transaction_hash}
    assert sixth.retracted[0].payload.block_hash != sixth.retracted[1].payload.block_hash
    assert sixth.current is not None
    assert sixth.current.transaction_hash == Post("x").transaction_hash
    assert (sixth.is_final, sixth.confirmations) == (False, 1)
    assert [each.payload.sequence_id for each in seventh.arrived] == [6]
    assert seventh.retracted == ()


def test_history__dropped_and_nothing_since__has_nothing_now(node: FakeNode) -> None:
    node.chain.fork(1, [])
    node.catch_up()

    history = read_history(node.store, 0, 6)

    assert history.current is None
    assert history.is_known
    assert [each.outcome for each in history.retracted] == ["dropped"]
    assert (history.is_final, history.confirmations) == (False, 0)


@pytest.mark.parametrize(("originator_id", "sequence_id"), [(0, 7), (0, 0), (1, 1)])
def test_history__never_known__says_so(
    node: FakeNode, originator_id: int, sequence_id: int
) -> None:
    assert not read_history(node.store, originator_id, sequence_id).is_known

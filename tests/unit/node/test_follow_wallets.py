"""Identity updates that contract wallets signed: undecided while no chain answers for them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chainkit.errors import ChainError, EndpointUnavailable, WalletUnanswered, WrongChain
from chainkit_node.types import Selection
from support.identity import ContractWallet, add, update
from support.indexer.followed_inboxes import (
    ANN,
    BEN,
    BEN_ADDED,
    BEN_ADDED_TO_OTHER,
    CLEO,
    CREATED,
    INBOX,
    OTHER_CREATED,
    OTHER_INBOX,
    Node,
    UpdatePost,
)

SAFE = ContractWallet("safe")
SAFE_ADDED = UpdatePost("add safe", update=update(INBOX, add(SAFE, ANN)))
UNANSWERED = WalletUnanswered("wallet", "an answer", "none")


@pytest.mark.conforms("I15")
@pytest.mark.parametrize(
    "error",
    [UNANSWERED, EndpointUnavailable("node", "an answer", "none"), WrongChain("node", "1", "2")],
)
def test_follow__wallet_without_an_answer__waits_with_all_behind_it_and_then_goes_on(
    node: Node, error: ChainError
) -> None:
    inbox = INBOX.hex()
    node.chains.answer = error
    node.mine(OTHER_CREATED, CREATED, SAFE_ADDED, BEN_ADDED, BEN_ADDED_TO_OTHER)

    assert node.inbox_of(ANN, CLEO, SAFE, BEN) == [inbox, OTHER_INBOX.hex(), None, None]
    assert node.refused() == []
    assert node.cursor() == 2
    assert node.said == [1]
    with node.log.reading() as connection:
        assert dict(node.log.judged_cursor(connection)) == {0: 2}

    node.chains.answer = True
    node.idle(1)
    assert node.inbox_of(SAFE, BEN) == [inbox, OTHER_INBOX.hex()]
    assert node.cursor() == 5
    assert node.said == [1, 0]


@pytest.mark.conforms("I15")
def test_follow__wallet_says_no_in_the_end__is_refused_and_what_waited_is_judged(
    node: Node,
) -> None:
    node.chains.answer = UNANSWERED
    node.mine(CREATED, SAFE_ADDED, BEN_ADDED)
    assert node.refused() == []

    node.chains.answer = False
    node.idle(1)

    assert [sequence_id for sequence_id, _ in node.refused()] == [2]
    assert node.inbox_of(SAFE, BEN) == [None, INBOX.hex()]


@pytest.mark.conforms("I15")
def test_follow__idle_steps_while_an_update_waits__ask_after_pauses_that_grow_to_a_minute(
    node: Node,
) -> None:
    node.chains.answer = UNANSWERED
    node.mine(CREATED, SAFE_ADDED)
    moments: list[float] = []
    for _ in range(4 * 600):
        count = len(node.chains.asked)
        node.chains.now += 0.25
        node.follower.succeeded(node.indexer.step(), 0)
        if len(node.chains.asked) > count:
            moments.append(node.chains.now)

    assert moments[:7] == [1, 3, 7, 15, 31, 63, 123]
    assert {after - before for before, after in pairwise(moments[6:])} == {60}
    assert node.said == [1]


def test_follow__update_that_waits__is_asked_about_at_its_own_time(node: Node) -> None:
    node.mine(CREATED)
    node.mine(SAFE_ADDED)

    (row,) = node.log.page(
        Selection(originator_ids=frozenset([0]), cursor={0: 1}), 10, 1 << 30
    ).rows
    assert node.chains.asked == [(row.originator_ns, SAFE.identifier.value)]


@pytest.mark.conforms("I15")
def test_follow__reorg_takes_back_what_waits__goes_on_at_once(node: Node) -> None:
    node.chains.answer = UNANSWERED
    node.mine(CREATED)
    node.mine(SAFE_ADDED, BEN_ADDED)
    assert node.inbox_of(BEN) == [None]

    node.chain.fork(1, [BEN_ADDED], [])
    node.catch_up()

    assert node.inbox_of(SAFE, BEN) == [None, INBOX.hex()]
    assert node.cursor() == 2
    assert node.said == [1, 0]


@pytest.mark.conforms("I15")
def test_follow__reorg_moves_what_waits__waits_at_its_new_place(node: Node) -> None:
    node.chains.answer = UNANSWERED
    node.mine(CREATED)
    node.mine(SAFE_ADDED)
    count = len(node.chains.asked)

    node.chain.fork(1, [BEN_ADDED, SAFE_ADDED], [OTHER_CREATED])
    node.catch_up()
    assert len(node.chains.asked) > count
    assert node.inbox_of(BEN, CLEO) == [INBOX.hex(), None]
    assert node.cursor() == 2

    node.chains.answer = True
    node.idle(60)
    assert node.inbox_of(SAFE, CLEO) == [INBOX.hex(), OTHER_INBOX.hex()]
    assert node.said[-1] == 0


def test_follow__killed_while_an_update_waits__goes_on_with_it(node: Node) -> None:
    node.chains.answer = UNANSWERED
    node.mine(CREATED, SAFE_ADDED, BEN_ADDED)
    node.start()
    node.idle()
    assert node.cursor() == 1

    node.start()
    node.chains.answer = True
    node.idle()
    assert node.inbox_of(SAFE, BEN) == [INBOX.hex(), INBOX.hex()]


@pytest.mark.conforms("I15")
def test_follow__answers_that_take_long__leaves_the_rest_to_the_next_step(node: Node) -> None:
    safes = [ContractWallet(f"safe {number}") for number in range(5)]
    posts = [UpdatePost(each.name, update=update(INBOX, add(each, ANN))) for each in safes]
    node.chains.seconds = 2
    node.chain.mine([CREATED, *posts])
    node.indexer.catch_up()

    node.catch_up()
    assert node.cursor() == 4
    node.catch_up()
    assert node.cursor() == 6
    assert node.said == []
    assert node.inbox_of(*safes) == [INBOX.hex()] * 5


def test_follow__update_waits_and_goes_on__is_logged_once_each(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "chainkit")
    node.chains.answer = UNANSWERED
    node.mine(CREATED, SAFE_ADDED)
    for _ in range(3):
        node.idle(60)
    node.chains.answer = True
    node.idle(60)

    assert [record.getMessage() for record in caplog.records] == [
        "identity update 2 of originator 0 waits, and all behind it: "
        "wallet: expected an answer, got none",
        "identity updates of originator 0 go on: 2 waits no longer",
    ]

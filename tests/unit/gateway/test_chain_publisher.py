"""Transactions of the payer's account: one for each payload, whatever the chain does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit.council.signing.key import KeySigner
from chainkit.errors import (
    ChainError,
    ConfigurationError,
    EndpointUnavailable,
    RefusedRequest,
    TransactionFailed,
)
from chainkit.service.refusals import InvalidRequest, NotNow, Overloaded
from chainkit_gateway.chain_publisher import ChainPublisher
from chainkit_gateway.payer_account import REPLACE_SECONDS, PayerAccount, PendingOutcome
from chainkit_gateway.transactions import raised
from chainkit_gateway.types import Publication
from support.gateway.fake_chain import (
    CHAIN_ID,
    CONTRACTS,
    GWEI,
    fees_of,
    nonce_of,
    reverted,
)
from support.gateway.payer_world import COMMIT, LATER, UPDATE, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "gateway.db")
    yield made
    made.journal.close()


def test_publish__payloads__get_one_nonce_each(world: World) -> None:
    first = world.publisher.publish(COMMIT)
    second = world.publisher.publish(UPDATE)

    assert (first.sequence_id, second.sequence_id) == (1, 2)
    assert [each.nonce for each in world.journal.transactions_from(0)] == [0, 1]


def test_publish__again__sends_nothing(world: World) -> None:
    first = world.publisher.publish(COMMIT)
    world.restart()

    assert world.publisher.publish(COMMIT) == first
    assert len(world.chain.sent) == 1


def test_publish__depth__waits_for_blocks_on_top_also_after_a_reorg(world: World) -> None:
    world.publisher = ChainPublisher(
        world.account, CHAIN_ID, CONTRACTS, depth=3, seconds=4, pause=lambda _: pause()
    )
    heads: list[int] = []

    def pause() -> None:
        heads.append(world.chain.head().number)
        if len(heads) == 3:
            # One block lies on top, and both are taken back: the payload is mined once more.
            world.chain.reorg(is_dropped=False)
            world.chain.reorg(is_dropped=False)
        else:
            world.chain.mine()

    mined = world.publisher.publish(COMMIT)

    receipt = world.account.find_receipt(COMMIT.digest, 0)
    assert receipt is not None and receipt.transaction_hash == mined.transaction_hash
    assert world.account.depth(receipt) == 3
    assert len(heads) > 4


def test_publish__depth_not_reached_in_time__is_told_and_waited_for_again(world: World) -> None:
    world.publisher = ChainPublisher(
        world.account, CHAIN_ID, CONTRACTS, depth=1, seconds=1, pause=lambda _: world.wait()
    )
    with pytest.raises(TransactionFailed, match="expected a receipt at depth 1 within 1 s"):
        world.publisher.publish(COMMIT)
    world.chain.mine()

    assert world.publisher.publish(COMMIT).transaction_hash in world.chain.sent
    assert len(world.chain.sent) == 1


def test_publish__not_mined_in_time__is_waited_for_and_not_sent_twice(world: World) -> None:
    world.send()
    world.restart()

    mined = world.publisher.publish(COMMIT)

    assert world.chain.sent == [mined.transaction_hash]


def test_publish__killed_between_journal_and_chain__sends_the_journalled_one(
    world: World,
) -> None:
    def die(_: bytes) -> None:
        raise KeyboardInterrupt

    world.chain.on_send = die
    with pytest.raises(KeyboardInterrupt):
        world.publisher.publish(COMMIT)
    world.chain.on_send = lambda _: None
    world.restart()

    mined = world.publisher.publish(COMMIT)

    assert world.chain.sent == [mined.transaction_hash] * 2
    assert len(world.journal.transactions_from(0)) == 1


def test_publish__answer_to_the_sending_was_lost__is_published_once(world: World) -> None:
    def lose(raw: bytes) -> None:
        raise EndpointUnavailable("chain", "an answer", "none")

    world.chain.on_send = lose
    with pytest.raises(TransactionFailed, match="no clear answer"):
        world.publisher.publish(COMMIT)
    world.chain.on_send = lambda _: None

    world.publisher.publish(COMMIT)

    assert len(set(world.chain.sent)) == 1


@pytest.mark.parametrize(
    ("refusal", "kind", "words"),
    [
        (reverted("GroupMessages", "EnforcedPause"), NotNow, r"got EnforcedPause\(\)"),
        (
            reverted("GroupMessages", "PayloadSizeOutOfBounds", 9, 1, 8),
            InvalidRequest,
            r"PayloadSizeOutOfBounds\(size=9, minimum=1, maximum=8\)",
        ),
        (RefusedRequest("chain", "a result", "insufficient funds"), RefusedRequest, "funds"),
    ],
)
def test_publish__chain_refuses__says_why_and_keeps_no_nonce(
    world: World, refusal: ChainError, kind: type[Exception], words: str
) -> None:
    world.chain.refusal = refusal

    with pytest.raises(kind, match=words):
        world.publisher.publish(COMMIT)

    assert world.journal.next_nonce() == 0
    assert world.chain.sent == []


def test_publish__endpoint_refuses_the_transaction__frees_its_nonce(world: World) -> None:
    def refuse(_: bytes) -> None:
        raise RefusedRequest("chain", "a result", "insufficient funds")

    world.chain.on_send = refuse
    with pytest.raises(RefusedRequest):
        world.publisher.publish(COMMIT)

    assert world.journal.find(COMMIT.digest) is None
    assert world.journal.next_nonce() == 0


def test_publish__transaction_reverted__is_told_and_the_next_try_is_a_new_one(
    world: World,
) -> None:
    world.send()
    world.chain.mine(succeeded=False)
    with pytest.raises(NotNow, match="expected the payload to be taken, got a revert"):
        world.publisher.publish(COMMIT)

    mined = world.publisher.publish(COMMIT)

    sent = world.journal.transactions_from(0)
    assert [each.nonce for each in sent] == [0, 1]
    assert mined.transaction_hash == sent[1].hash
    assert [each.settlement and each.settlement.succeeded for each in sent] == [False, True]


def test_publish__more_than_it_may_cost__is_not_sent(world: World) -> None:
    world.chain.base_fee = 10**15

    with pytest.raises(ConfigurationError, match="cost of the transaction"):
        world.publisher.publish(COMMIT)

    assert world.chain.sent == []


def test_process_pending__reorg_dropped_it__sends_it_again_before_later_ones(world: World) -> None:
    first = world.publisher.publish(COMMIT)
    world.chain.reorg()

    assert world.account.process_pending() == PendingOutcome(
        resent=1, replaced=0, waiting=1, oldest_seconds=0
    )
    second = world.publisher.publish(UPDATE)

    assert world.chain.sent == [first.transaction_hash] * 2 + [second.transaction_hash]
    assert world.publisher.publish(COMMIT).transaction_hash == first.transaction_hash


def test_fallen__reorg_gave_a_lower_id__is_sent_again_with_its_own_bytes(world: World) -> None:
    world.chain.mine()
    first = world.publisher.publish(COMMIT)
    world.chain.reorg(is_dropped=False)
    world.chain.reorg(is_dropped=False)
    world.chain.mine()
    world.account.process_pending()

    assert world.account.fallen() == [(COMMIT, first.sequence_id)]

    world.account.send_again(COMMIT)
    assert world.account.fallen() == []
    world.chain.mine()
    world.account.process_pending()

    assert world.account.fallen() == []
    assert len(world.chain.sent) == 2
    assert world.publisher.publish(COMMIT).sequence_id == first.sequence_id


def test_process_pending__not_mined_in_time__is_replaced_with_higher_fees(world: World) -> None:
    world.send()
    [first] = world.chain.waiting.values()
    world.now_ns += LATER - 1
    assert world.account.process_pending().replaced == 0
    world.now_ns += 1

    assert world.account.process_pending() == PendingOutcome(
        resent=0, replaced=1, waiting=1, oldest_seconds=REPLACE_SECONDS
    )

    second = world.chain.waiting[world.chain.sent[-1]]
    assert nonce_of(second) == nonce_of(first)
    assert fees_of(second) == tuple(raised(fee) for fee in fees_of(first))
    assert all(8 * new >= 9 * old for new, old in zip(fees_of(second), fees_of(first), strict=True))
    # A replacement is new: it is not late at once.
    assert world.account.process_pending().replaced == 0


def test_process_pending__fees_have_risen_more__takes_todays(world: World) -> None:
    world.send()
    world.now_ns += LATER
    world.chain.tip, world.chain.base_fee = 5 * GWEI, 20 * GWEI

    world.account.process_pending()

    assert fees_of(world.chain.waiting[world.chain.sent[-1]]) == (5 * GWEI, 45 * GWEI)


@pytest.mark.parametrize("mined", [0, 1])
def test_publish__replaced__either_ones_receipt_counts(world: World, mined: int) -> None:
    world.send()
    world.now_ns += LATER
    world.account.process_pending()
    world.restart()
    world.chain.mine(world.chain.sent[mined])

    assert world.publisher.publish(COMMIT).transaction_hash == world.chain.sent[mined]
    assert len(world.chain.blocks) == 1
    paid = [each.settlement is not None for each in world.journal.transactions_from(0)]
    assert paid == [mined == 0, mined == 1]


def test_process_pending__killed_before_the_replacement_was_sent__still_publishes_once(
    world: World,
) -> None:
    def die(_: bytes) -> None:
        raise KeyboardInterrupt

    world.send()
    world.now_ns += LATER
    world.chain.on_send = die
    with pytest.raises(KeyboardInterrupt):
        world.account.process_pending()
    world.chain.on_send = lambda _: None
    world.restart()
    assert len(world.journal.transactions_from(0)) == 2

    world.publisher.publish(COMMIT)

    assert len(world.chain.blocks) == 1


def test_process_pending__replacement_is_refused__keeps_waiting_for_the_first(world: World) -> None:
    def refuse(_: bytes) -> None:
        raise RefusedRequest("chain", "a result", "insufficient funds")

    world.send()
    world.now_ns += LATER
    world.chain.on_send = refuse

    assert world.account.process_pending().replaced == 0
    assert len(world.journal.transactions_from(0)) == 1


def test_process_pending__replacement_would_cost_too_much__leaves_the_first(world: World) -> None:
    world.send()
    world.now_ns += LATER
    world.chain.base_fee = 10**15

    assert world.account.process_pending() == PendingOutcome(
        resent=0, replaced=0, waiting=1, oldest_seconds=REPLACE_SECONDS
    )


def test_process_pending__nobody_waited_for_the_receipt__writes_what_was_paid(world: World) -> None:
    world.send()
    world.chain.mine()

    assert world.account.process_pending() == PendingOutcome(0, 0, 0)

    [sent] = world.journal.transactions_from(0)
    assert sent.settlement is not None
    assert sent.settlement.cost == 50_000 * 3 * GWEI


def test_process_pending__reorg_mined_it_elsewhere__writes_the_new_block(world: World) -> None:
    world.publisher.publish(COMMIT)
    world.chain.reorg(is_dropped=False)
    world.chain.mine()

    world.account.process_pending()

    [sent] = world.journal.transactions_from(0)
    assert sent.settlement is not None
    assert sent.settlement.block == world.chain.header(1).reference


def test_publish__client_has_spent_its_limit__is_refused_and_nothing_sent(world: World) -> None:
    def refuse(publication: Publication, wei: int) -> None:
        asked.append((publication.client, wei))
        raise Overloaded("spending of ann", "less", "more")

    asked: list[tuple[str, int]] = []
    signer = KeySigner("payer", b"\7" * 32)
    account = PayerAccount(world.chain, signer, world.journal, CONTRACTS.values(), permit=refuse)

    with pytest.raises(Overloaded):
        ChainPublisher(account, CHAIN_ID, CONTRACTS).publish(COMMIT)

    assert asked == [("ann", 62_500 * 3 * GWEI)]
    assert (world.chain.sent, world.journal.next_nonce()) == ([], 0)


def test_stop__payload_waits_to_be_mined__ends_at_once_and_is_found_again(world: World) -> None:
    publisher = ChainPublisher(
        world.account, CHAIN_ID, CONTRACTS, seconds=60, pause=lambda _: publisher.stop()
    )
    with pytest.raises(TransactionFailed, match="expected a receipt, got the end"):
        publisher.publish(COMMIT)

    world.publisher.publish(COMMIT)

    assert len(world.chain.sent) == 1

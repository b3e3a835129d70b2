"""Refused transactions: a pool may have them, or no transaction carries their payload."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit.errors import RefusedRequest
from chainkit.service.refusals import InvalidRequest
from chainkit.signatures import keccak256
from support.gateway.fake_chain import FINAL_BLOCKS
from support.gateway.payer_world import COMMIT, LATER, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "gateway.db")
    yield made
    made.journal.close()


@pytest.mark.parametrize(
    "words", ["already known", "nonce too low", "replacement transaction underpriced"]
)
def test_publish__pool_may_have_it_and_the_look_up_lags__is_waited_for_and_sent_once(
    world: World, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(raw: bytes) -> None:
        world.chain.waiting[keccak256(raw)] = raw
        raise RefusedRequest("chain", "a result", words)

    world.chain.on_send = refuse
    monkeypatch.setattr(world.chain, "transaction", lambda _: None)

    mined = world.publisher.publish(COMMIT)

    assert [each.hash for each in world.journal.transactions_from(0)] == [mined.transaction_hash]


@pytest.mark.parametrize(
    "words",
    [
        "oversized data: transaction size 131500, limit 131072",
        "insufficient gas for floor data gas cost: gas 5300000, minimum needed 5400000",
        "transaction gas limit too high (cap: 16777216, tx: 20000000)",
        "intrinsic gas too high -- tx.gas_limit > env.cfg.tx_gas_limit_cap",
        "exceeds block gas limit",
        "tx fee (1.20 ether) exceeds the configured cap (1.00 ether)",
    ],
)
def test_publish__payload_that_no_transaction_carries__is_an_invalid_argument(
    world: World, words: str
) -> None:
    def refuse(_: bytes) -> None:
        raise RefusedRequest("chain", "a result", words)

    world.chain.on_send = refuse

    with pytest.raises(InvalidRequest, match="expected a payload that fits a transaction, got"):
        world.publisher.publish(COMMIT)

    assert world.journal.find(COMMIT.digest) is None


def test_process_pending__taken_and_kept_in_no_pool__is_sent_again_without_higher_fees(
    world: World,
) -> None:
    world.send()
    [raw] = world.chain.waiting.values()
    world.now_ns += LATER

    for _ in range(3):
        world.chain.waiting.clear()
        outcome = world.account.process_pending()
        assert (outcome.resent, outcome.replaced, outcome.not_kept) == (1, 0, 1)

    assert set(world.chain.sent) == {keccak256(raw)}
    world.chain.mine()
    assert world.publisher.publish(COMMIT).transaction_hash == keccak256(raw)


def test_process_pending__lost_a_moment_ago__is_no_transaction_that_is_not_kept(
    world: World,
) -> None:
    world.send()
    world.chain.waiting.clear()

    assert world.account.process_pending().not_kept == 0


@pytest.mark.parametrize(
    ("code", "delegate"),
    [("", None), ("ef0100" + "07" * 20, b"\7" * 20), ("ef0100" + "07" * 19, None), ("6001", None)],
)
def test_delegate__code_of_the_account__is_read_as_eip_7702(
    world: World, code: str, delegate: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.chain, "code", lambda *_: bytes.fromhex(code))

    assert world.account.delegate() == delegate


def test_publish__foreign_transaction_used_the_nonce__is_published_again_once_that_is_final(
    world: World,
) -> None:
    def displace(raw: bytes) -> None:
        world.chain.blocks.append([(b"foreign", raw, True)])

    world.chain.on_send = displace
    world.send()
    world.chain.on_send = lambda _: None
    world.send()
    assert world.journal.next_nonce() == 1

    world.chain.blocks += [[] for _ in range(FINAL_BLOCKS)]
    world.publisher.publish(COMMIT)

    assert [each.nonce for each in world.journal.transactions_of(COMMIT.digest)] == [0, 1]

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from sqlalchemy import delete, select

from chainkit.chain import Endpoint
from chainkit.contracts.followed import FollowedDeployment
from chainkit.signatures import keccak256
from chainkit_indexer.finality import NOTHING_FINAL
from chainkit_indexer.replay.keeper import RawTransactionKeeper
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from localnet.anvil import Anvil
from support import payloads
from support.chains.chain import REGISTRY_OWNER, LocalChain, dev_address
from support.command_line import Outcome, run
from support.endpoints.fault_proxy import Fault, FaultProxy
from support.endpoints.faults import error

from .conftest import GROUP, Node

SENDERS = (3, 4, 5)
COUNCIL = REGISTRY_OWNER


@contextmanager
def store_of(node: Node) -> Iterator[Store]:
    deployment = FollowedDeployment.of(node.chain.record)
    store = Store.open(str(node.database), Identity.of(deployment, node.key.public_key))
    try:
        yield store
    finally:
        store.close()


def keep(node: Node, final_block: int = NOTHING_FINAL) -> int:
    with store_of(node) as store:
        return RawTransactionKeeper(store).keep(node.chain.endpoint, final_block)


def publish_from(chain: LocalChain, senders: Sequence[int]) -> list[bytes]:
    """Post a commit from each sender, each in a block of its own; leave mining to be told."""
    chain.pause_mining()
    hashes = []
    for seed, sender in enumerate(senders):
        hashes.append(chain.publish_message(GROUP, payloads.commit(GROUP, seed=seed), sender))
        chain.mine()
    return hashes


def drop(node: Node, depth: int) -> None:
    """Take the last blocks back with all that they held, and let the indexer see it."""
    node.chain.reorg(depth)
    node.chain.mine()
    node.catch_up()


def replay(node: Node, *options: object) -> Outcome:
    return run("index", "replay", "--database", node.database, "--rpc", node.chain.url, *options)


def fates(outcome: Outcome) -> list[tuple[str, str]]:
    return [(each["transaction_hash"], each["fate"]) for each in outcome.content["transactions"]]


def hexed(hashes: Sequence[bytes]) -> list[str]:
    return ["0x" + each.hex() for each in hashes]


def pool_size(chain: LocalChain) -> int:
    status = chain.anvil.request("txpool_status")
    return int(status["pending"], 16) + int(status["queued"], 16)


@pytest.fixture
def dropped(node: Node) -> list[bytes]:
    """Three senders' transactions, kept and then dropped; mining is paused."""
    hashes = publish_from(node.chain, SENDERS)
    node.catch_up()
    assert keep(node) == 3
    drop(node, 3)
    assert [row["outcome"] for row in node.rows(schema.journal)] == ["dropped"] * 3
    return hashes


def test_replay__dry_run__says_what_would_be_sent_and_sends_nothing(
    node: Node, dropped: list[bytes]
) -> None:
    outcome = replay(node, "--json")

    assert outcome.code == 0, outcome.err
    assert fates(outcome) == [(each, "would be sent") for each in hexed(dropped)]
    assert [each["sender"] for each in outcome.content["transactions"]] == [
        dev_address(number) for number in SENDERS
    ]
    assert pool_size(node.chain) == 0
    text = replay(node).out
    assert f"would be sent: nonce 0 of {dev_address(3)}" in text
    assert "dropped transactions: 3 would be sent\nnothing was sent: add --broadcast" in text


def test_replay__broadcast__mines_them_in_the_original_order(
    node: Node, dropped: list[bytes]
) -> None:
    node.chain.resume_mining()

    outcome = replay(node, "--broadcast", "--json")

    assert outcome.code == 0, outcome.err
    assert fates(outcome) == [(each, "sent") for each in hexed(dropped)]
    # anvil mines by itself, but not before it answers.
    node.chain.mine()
    assert {fate for _, fate in fates(replay(node, "--json"))} == {"mined again"}
    node.catch_up()
    envelopes = node.rows(schema.chain_envelopes)
    assert [row["transaction_hash"] for row in envelopes] == dropped
    assert [row["sequence_id"] for row in envelopes] == [1, 2, 3]
    assert [row["outcome"] for row in node.rows(schema.journal)] == ["kept"] * 3
    after = replay(node)
    assert (after.code, after.out) == (0, "dropped transactions: none\n")


def test_replay__each_obstacle__is_said_and_the_others_are_sent(
    node: Node, dropped: list[bytes]
) -> None:
    chain = node.chain
    chain.publish_message(GROUP, payloads.commit(GROUP, seed=99), SENDERS[0])
    chain.mine()
    forget(node, dropped[1])

    outcome = replay(node, "--broadcast", "--json")

    assert outcome.code == 1
    assert fates(outcome) == list(
        zip(hexed(dropped), ("not replayed", "not replayed", "sent"), strict=True)
    )
    replaced, unkept, _ = [each["why"] for each in outcome.content["transactions"]]
    assert replaced == f"replaced: another transaction has nonce 0 of {dev_address(SENDERS[0])}"
    assert unkept == "its signed transaction was not kept"
    chain.mine()
    assert chain.endpoint.receipt(dropped[2]) is not None


def forget(node: Node, transaction_hash: bytes) -> None:
    raws = schema.raw_transactions
    with store_of(node) as store, store.writing() as connection:
        connection.execute(delete(raws).where(raws.c.transaction_hash == transaction_hash))


def test_replay__contract_paused__says_the_contract_s_own_error(
    node: Node, dropped: list[bytes]
) -> None:
    chain = node.chain
    chain.send(chain.record.group_messages.address, keccak256(b"pause()")[:4], COUNCIL)
    chain.mine()

    outcome = replay(node, "--broadcast", "--json")

    assert outcome.code == 1
    assert whys(outcome) == {"would revert: EnforcedPause()"}
    assert pool_size(chain) == 0


def whys(outcome: Outcome) -> set[str]:
    return {each["why"] for each in outcome.content["transactions"]}


def test_replay__already_waiting__is_left_alone(node: Node, dropped: list[bytes]) -> None:
    replay(node, "--broadcast")
    assert pool_size(node.chain) == 3

    outcome = replay(node, "--broadcast", "--json")

    assert (outcome.code, whys(outcome)) == (0, {"in the endpoint's pool"})
    assert pool_size(node.chain) == 3


def test_replay__sender_without_money__is_said(node: Node, dropped: list[bytes]) -> None:
    node.chain.anvil.request("anvil_setBalance", dev_address(SENDERS[1]), hex(10**16))

    outcome = replay(node, "--json")

    assert outcome.code == 1
    first, poor, last = outcome.content["transactions"]
    assert (first["fate"], last["fate"]) == ("would be sent", "would be sent")
    assert poor["why"] == f"may cost {5_000_000 * 10**11} wei, its sender has {10**16}"


def test_replay__fee_below_what_a_block_asks__is_said(node: Node, dropped: list[bytes]) -> None:
    node.chain.anvil.request("anvil_setNextBlockBaseFeePerGas", hex(10**13))
    node.chain.mine(2)

    outcome = replay(node, "--json")

    assert outcome.code == 1
    (why,) = whys(outcome)
    assert why.startswith(f"pays at most {10**11} wei per gas, the next block asks ")


def test_replay__one_sender__needs_every_nonce_before(node: Node) -> None:
    hashes = publish_from(node.chain, (3, 3, 3))
    node.catch_up()
    keep(node)
    drop(node, 3)

    assert fates(replay(node, "--json")) == [(each, "would be sent") for each in hexed(hashes)]

    forget(node, hashes[1])
    outcome = replay(node, "--broadcast", "--json")

    assert outcome.code == 1
    assert [fate for _, fate in fates(outcome)] == ["sent", "not replayed", "not replayed"]
    assert outcome.content["transactions"][2]["why"] == (
        f"no transaction has nonce 1 of {dev_address(3)} before it"
    )


def test_replay__one_reorg_of_two__leaves_the_other(node: Node, dropped: list[bytes]) -> None:
    (later,) = publish_from(node.chain, (6,))
    node.catch_up()
    keep(node)
    drop(node, 1)

    assert [each for each, _ in fates(replay(node, "--json"))] == hexed([*dropped, later])
    assert [each for each, _ in fates(replay(node, "--json", "--reorg", 2))] == hexed([later])
    unknown = replay(node, "--reorg", 3)
    assert (unknown.code, unknown.out) == (2, "")
    assert "reorg 3: expected one that this database saw, got none" in unknown.err


def test_replay__beside_the_indexer__neither_locks_nor_writes(
    node: Node, dropped: list[bytes]
) -> None:
    tables = (schema.journal, schema.raw_transactions)
    before = [node.rows(table) for table in tables]
    with store_of(node) as store, store.writing() as connection:
        connection.execute(select(schema.cursor))

        assert replay(node, "--broadcast").code == 0

    assert [node.rows(table) for table in tables] == before


def test_replay__endpoint_of_another_chain__is_refused(node: Node, dropped: list[bytes]) -> None:
    with Anvil("--timestamp", "1600000000") as other:
        outcome = run("index", "replay", "--database", node.database, "--rpc", other.url)

    assert outcome.code == 2
    assert "block 0 at" in outcome.err


def test_keep__final_or_dropped__forgets_the_one_and_not_the_other(
    node: Node, database_url: str
) -> None:
    chain = node.chain
    node.database = database_url  # type: ignore[assignment]
    dropped = publish_from(chain, SENDERS)
    node.catch_up()
    keep(node)
    drop(node, 3)
    (mined,) = publish_from(chain, (6,))
    chain.publish_message(GROUP, b"\xff not an envelope", 7)
    chain.mine()
    node.catch_up()
    head = chain.head().number

    assert keep(node) == 2
    assert keep(node) == 0
    assert mined in kept_hashes(node)
    assert keep(node, head) == 0
    assert kept_hashes(node) == set(dropped)
    assert keep(node, head) == 0
    assert fates(replay(node, "--json")) == [(each, "would be sent") for each in hexed(dropped)]


def kept_hashes(node: Node) -> set[bytes]:
    return {row["transaction_hash"] for row in node.rows(schema.raw_transactions)}


def test_keep__endpoint_without_the_method__puts_them_together_itself(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    hashes = publish_from(node.chain, SENDERS)
    node.catch_up()
    refusals = error(-32601, "the method does not exist")
    with FaultProxy(node.chain.url) as proxy, store_of(node) as store:
        methods = frozenset({"eth_getRawTransactionByHash"})
        proxy.arm(Fault("no raw", refusals, methods=methods))
        keeper = RawTransactionKeeper(store, clock=lambda: 0.0)
        endpoint = Endpoint.connect(proxy.url)
        # The first call finds out that the endpoint does not offer the method.
        assert keeper.keep(endpoint, NOTHING_FINAL) == 0
        assert keeper.keep(endpoint, NOTHING_FINAL) == 3
        assert proxy.delivered["no raw"] > 0

    assert {row["transaction_hash"]: row["raw"] for row in node.rows(schema.raw_transactions)} == {
        each: node.chain.raw_transaction(each) for each in hashes
    }
    assert caplog.records == []

"""An endpoint that contradicts itself, one contradiction at a time."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import eth_abi
import pytest

from chainkit.decode import MESSAGE_SENT_TOPIC
from chainkit.deployment import DeployedContract, DeploymentRecord
from chainkit.errors import InconsistentAnswer
from chainkit.exports import Manifest
from chainkit.signatures import keccak256
from chainkit.types import BlockReference
from chainkit_jobs.export_chain import export_chain, fetch_blocks, parse_block
from support.fake_endpoint import FakeProvider, RpcError

Answer = dict[str, Any]


def hash_hex(number: int) -> str:
    return "0x" + number.to_bytes(32, "big").hex()


def block(number: int = 5, transactions: int = 2) -> Answer:
    return {
        "number": hex(number),
        "hash": hash_hex(1000 + number),
        "parentHash": hash_hex(999 + number),
        "timestamp": hex(1_700_000_000),
        "receiptsRoot": hash_hex(1),
        "logsBloom": "0x" + "00" * 256,
        "gasLimit": hex(30_000_000),
        "gasUsed": hex(100_000),
        "baseFeePerGas": hex(7),
        "transactions": [hash_hex(number * 100 + index) for index in range(transactions)],
    }


def log(number: int, index: int, log_index: int) -> Answer:
    return {
        "address": "0x" + "11" * 20,
        "topics": [hash_hex(2)],
        "data": "0x00",
        "blockNumber": hex(number),
        "blockHash": hash_hex(1000 + number),
        "transactionHash": hash_hex(number * 100 + index),
        "transactionIndex": hex(index),
        "logIndex": hex(log_index),
    }


def receipts(number: int = 5) -> list[Answer]:
    """The first transaction has no log, the second has two."""
    return [
        {
            "blockNumber": hex(number),
            "blockHash": hash_hex(1000 + number),
            "transactionHash": hash_hex(number * 100 + index),
            "transactionIndex": hex(index),
            "type": "0x2",
            "status": "0x1",
            "from": "0x" + "44" * 20,
            "to": None if index else "0x" + "11" * 20,
            "contractAddress": "0x" + "55" * 20 if index else None,
            "gasUsed": hex(50_000),
            "cumulativeGasUsed": hex(50_000 * (index + 1)),
            "effectiveGasPrice": hex(2**70),
            "logs": [log(number, index, n) for n in range(2)] if index else [],
        }
        for index in range(2)
    ]


def test_parse_block__consistent__gives_rows_of_all_three_tables() -> None:
    rows = parse_block("block 5", 5, block(), receipts())

    assert (rows.row["base_fee_per_gas"], rows.row["transaction_count"]) == (7, 2)
    assert [row["effective_gas_price"] for row in rows.receipts] == [2**70, 2**70]
    assert [row["to_address"] is None for row in rows.receipts] == [False, True]
    assert [row["log_index"] for row in rows.logs] == [0, 1]
    assert rows.logs[0]["transaction_hash"] == rows.receipts[1]["transaction_hash"]


def changed(path: list[Any], value: Any) -> Callable[[Answer, list[Answer]], None]:
    """Set one value inside the receipts."""

    def change(_: Answer, answers: list[Answer]) -> None:
        target: Any = answers
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b, r: b.update(number="0x6"), "expected height 5, got 6"),
        (lambda b, r: r.pop(), "expected 2 receipts, got 1"),
        (lambda b, r: r.reverse(), "transaction 0x"),
        (changed([0, "blockHash"], hash_hex(7)), "block hash 0x"),
        (changed([0, "transactionIndex"], "0x1"), "expected transaction index 0, got 1"),
        (changed([1, "logs", 0, "blockHash"], hash_hex(7)), "block hash 0x"),
        (changed([1, "logs", 0, "transactionHash"], hash_hex(7)), "transaction 0x"),
        (lambda b, r: r[1]["logs"].pop(0), "expected log index 0, got 1"),
        (lambda b, r: r[1]["logs"].reverse(), "expected log index 0, got 1"),
    ],
)
def test_parse_block__one_contradiction__is_inconsistent(
    change: Callable[[Answer, list[Answer]], None], message: str
) -> None:
    header, answers = block(), receipts()
    change(header, answers)

    with pytest.raises(InconsistentAnswer, match=message):
        parse_block("block 5", 5, header, answers)


@pytest.mark.parametrize(
    "answers",
    [
        {"eth_getBlockByNumber": None, "eth_getBlockReceipts": []},
        {"eth_getBlockByNumber": block(transactions=0), "eth_getBlockReceipts": None},
        {"eth_getBlockByNumber": {"number": "0x5"}, "eth_getBlockReceipts": []},
        {"eth_getBlockByNumber": block(), "eth_getBlockReceipts": [{}, {}]},
        {"eth_getBlockByNumber": block() | {"gasUsed": 5}, "eth_getBlockReceipts": receipts()},
    ],
)
def test_fetch_blocks__nothing_or_malformed__is_inconsistent(answers: Answer) -> None:
    with pytest.raises(InconsistentAnswer, match="block 5 at"):
        list(fetch_blocks(FakeProvider(answers).endpoint(), [5]))


def payload_log(number: int, sequence_id: int) -> Answer:
    data = eth_abi.encode(("bytes32", "bytes", "uint64"), (b"\x01" * 32, b"payload", sequence_id))
    topics = ["0x" + MESSAGE_SENT_TOPIC.hex()]
    return log(number, 0, 0) | {"topics": topics, "data": "0x" + data.hex()}


class Chain(FakeProvider):
    """Blocks by number; ``forked_from`` on they belong to another branch.

    ``posts`` are the sequences by the block that holds them, at most one each. ``counters`` is
    what the contract's counter answers, by the block's hash; 0 for others.
    """

    def __init__(
        self,
        forked_from: int | None = None,
        posts: Mapping[int, int] = MappingProxyType({}),
        counters: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(
            {
                "eth_getBlockByNumber": self.block_at,
                "eth_getBlockReceipts": self.receipts_at,
                "eth_call": self.counter_at,
            }
        )
        self.forked_from = forked_from
        self.posts = posts
        self.counters = counters

    def block_at(self, number: str, *_: Any) -> Answer:
        answer = block(int(number, 16), transactions=int(int(number, 16) in self.posts))
        if self.forked_from is not None and int(number, 16) >= self.forked_from:
            answer |= {"hash": hash_hex(int(number, 16)), "parentHash": hash_hex(0)}
        return answer

    def receipts_at(self, number: str) -> list[Answer]:
        sequence_id = self.posts.get(height := int(number, 16))
        if sequence_id is None:
            return []
        return [receipts(height)[0] | {"logs": [payload_log(height, sequence_id)]}]

    def counter_at(self, call: Answer, pinned: Answer) -> Any:
        assert call == {"to": "0x" + "33" * 20, "data": "0x" + keccak256(b"last()")[:4].hex()}
        answer = self.counters.get(pinned["blockHash"], 0)
        return hash_hex(answer) if isinstance(answer, int) else answer


def contract(name: str, byte: str, number: int) -> DeployedContract:
    return DeployedContract(name, bytes.fromhex(byte * 20), number, b"\x00" * 32)


RECORD = DeploymentRecord(
    chain_id=1,
    genesis_hash=b"\x00" * 32,
    group_messages=contract("GroupMessages", "11", 2),
    identity_updates=contract("IdentityUpdates", "22", 2),
    node_registry=contract("NodeRegistry", "44", 1),
    originator_sequence=contract("OriginatorSequence", "33", 2),
    deployer=bytes(20),
)


def run(provider: FakeProvider, out: Path, end: BlockReference, first_block: int = 3) -> Manifest:
    return export_chain(provider.endpoint(), RECORD, first_block, end, out)


END = BlockReference(6, (1006).to_bytes(32, "big"))


def test_export_chain__linked_blocks__are_written(tmp_path: Path) -> None:
    run(Chain(), tmp_path / "chain", END)

    assert (tmp_path / "chain" / "manifest.json").exists()


@pytest.mark.parametrize("forked_from", [3, 5, 6])
def test_export_chain__answers_of_two_branches__are_refused(
    tmp_path: Path, forked_from: int
) -> None:
    with pytest.raises(InconsistentAnswer, match="the chain was reorganised meanwhile"):
        run(Chain(forked_from), tmp_path / "chain", END)

    assert list(tmp_path.iterdir()) == []


BEFORE, AFTER = hash_hex(1002), hash_hex(1006)


def test_export_chain__payloads_fill_the_counter__both_numbers_stand_in_the_manifest(
    tmp_path: Path,
) -> None:
    provider = Chain(posts={4: 8, 6: 9}, counters={BEFORE: 7, AFTER: 9})

    manifest = run(provider, tmp_path / "chain", END)

    assert (manifest.sequence_before, manifest.sequence_after) == (7, 9)
    assert manifest.first_block == 1


def test_export_chain__begins_below_the_counters_deployment__begins_with_0(tmp_path: Path) -> None:
    provider = Chain(posts={4: 1}, counters={hash_hex(1001): RpcError(3), AFTER: 1})

    manifest = run(provider, tmp_path / "chain", END, first_block=2)

    assert (manifest.sequence_before, manifest.sequence_after) == (0, 1)


def test_export_chain__ends_below_the_counters_deployment__ends_with_0(tmp_path: Path) -> None:
    end = BlockReference(1, (1001).to_bytes(32, "big"))

    manifest = run(Chain(counters={hash_hex(1001): RpcError(3)}), tmp_path / "chain", end, 0)

    assert (manifest.sequence_before, manifest.sequence_after) == (0, 0)


@pytest.mark.parametrize(
    ("posts", "message"),
    [
        ({}, "expected all up to sequence id 9, got up to 7"),
        ({4: 8}, "expected all up to sequence id 9, got up to 8"),
        ({6: 9}, r"expected sequence id 8, got 9 \(block 6, log 0\)"),
        ({4: 8, 5: 8, 6: 9}, r"expected sequence id 9, got 8 \(block 5, log 0\)"),
        ({4: 9, 6: 8}, "expected sequence id 8, got 9"),
        ({4: 8, 5: 9, 6: 10}, "expected all up to sequence id 9, got up to 10"),
    ],
    ids=["none", "last cut", "first cut", "repeated", "swapped", "one too many"],
)
def test_export_chain__payloads_contradict_the_counter__is_refused_and_leaves_nothing(
    tmp_path: Path, posts: dict[int, int], message: str
) -> None:
    with pytest.raises(InconsistentAnswer, match=message):
        run(Chain(posts=posts, counters={BEFORE: 7, AFTER: 9}), tmp_path / "chain", END)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("answer", [RpcError(3), "0x", "0x07", 2**64], ids=str)
@pytest.mark.parametrize("block_hash", [BEFORE, AFTER], ids=["before", "after"])
def test_export_chain__no_counter_is_answered__is_refused_and_leaves_nothing(
    tmp_path: Path, answer: Any, block_hash: str
) -> None:
    counters = {BEFORE: 7, AFTER: 8, block_hash: answer}

    with pytest.raises(InconsistentAnswer, match="counter at"):
        run(Chain(posts={4: 8}, counters=counters), tmp_path / "chain", END)

    assert list(tmp_path.iterdir()) == []

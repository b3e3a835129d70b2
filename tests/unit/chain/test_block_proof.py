"""Blocks as endpoints answer them: a hash proves each field, or it is said not to be proved."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from chainkit.chain import ANY_LOG, Endpoint, LogFilter, RetryPolicy
from chainkit.chain.block_proof import proved_logs
from chainkit.errors import (
    Disproved,
    InconsistentAnswer,
    OversizedAnswer,
    Unprovable,
)
from chainkit.ethereum.bloom import bloom_of
from chainkit.types import BlockHeader, Log
from support.chains.sealed import BareLog, BareTransaction, SealedBlock, resealed, seal
from support.endpoints.fake_endpoint import FakeProvider
from support.endpoints.liar import changed, places
from support.vectors import case_name, from_hex, load

CASES: list[dict[str, Any]] = [
    case for name in ("blocks", "anvil_blocks", "amsterdam_blocks") for case in load(name)["cases"]
]
HEADERS = [case for case in CASES if "hash" in case.get("block", {})]
WHOLE = [case for case in HEADERS if {"transactions", "receipts"} <= case.keys()]

A, B = b"\xaa" * 20, b"\xbb" * 20
TOPIC, OTHER = b"\x01" * 32, b"\x02" * 32
BLOCK = seal(
    7,
    b"\x06" * 32,
    1_700_000_000,
    [
        BareTransaction("one", (BareLog(A, (TOPIC,), b"first"), BareLog(B, (), b""))),
        BareTransaction("two"),
        BareTransaction("three", (BareLog(A, (OTHER,), b"x" * 60), BareLog(A, (TOPIC,), b"2"))),
    ],
)
"""Three transactions, four logs."""


CHAIN_ID = 1337


def read_proved_logs(
    endpoint: Endpoint, headers: list[BlockHeader], wanted: LogFilter
) -> list[Log]:
    return [log for logs in proved_logs(endpoint, headers, wanted, CHAIN_ID) for log in logs]


def answering(block: Any, transactions: Any, receipts: Any) -> Endpoint:
    """An endpoint that has one block, whole or not."""

    def block_at(height: str, is_whole: bool) -> Any:
        return copy.deepcopy(block | {"transactions": transactions} if is_whole else block)

    answers = {"eth_getBlockByNumber": block_at, "eth_getBlockReceipts": lambda height: receipts}
    return FakeProvider(answers).endpoint()


def endpoint_of(block: SealedBlock) -> Endpoint:
    return answering(block.header, list(block.transactions), list(block.receipts))


def header_of(endpoint: Endpoint, number: int = 7) -> BlockHeader:
    [header] = endpoint.headers([number])
    assert header is not None
    return header


def number_of(case: dict[str, Any]) -> int:
    return int(case["block"]["number"], 16)


def without(answer: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in names}


@pytest.mark.parametrize("case", HEADERS, ids=case_name)
def test_header__of_a_real_block__is_proved(case: dict[str, Any]) -> None:
    header = header_of(answering(case["block"], [], []), number_of(case))

    assert header.hash == from_hex(case["block"]["hash"])
    assert header.roots is not None
    assert header.roots.receipts == from_hex(case["block"]["receiptsRoot"])
    assert header.roots.transactions == from_hex(case["block"]["transactionsRoot"])


def bloom(logs: list[dict[str, Any]]) -> str:
    values = [from_hex(text) for log in logs for text in (log["address"], *log["topics"])]
    return "0x" + bloom_of(values).hex()


@pytest.mark.parametrize("case", WHOLE, ids=case_name)
def test_logs__of_a_real_block__are_proved_with_their_places(case: dict[str, Any]) -> None:
    block_hash = case["block"]["hash"]
    receipts = [
        receipt | {"blockHash": block_hash, "logsBloom": bloom(receipt["logs"])}
        for receipt in case["receipts"]
    ]
    endpoint = answering(case["block"], case["transactions"], receipts)
    header = header_of(endpoint, number_of(case))

    logs = read_proved_logs(endpoint, [header], ANY_LOG)

    expected = [
        (index, from_hex(transaction["hash"]), from_hex(log["address"]), from_hex(log["data"]))
        for index, (transaction, receipt) in enumerate(
            zip(case["transactions"], receipts, strict=True)
        )
        for log in receipt["logs"]
    ]
    found = [(log.transaction_index, log.transaction_hash, log.address, log.data) for log in logs]
    assert found == expected
    assert [log.log_index for log in logs] == list(range(len(expected)))


WITH_ALL_FIELDS = resealed(
    BLOCK.header,
    **dict.fromkeys(("withdrawalsRoot", "parentBeaconBlockRoot", "requestsHash"), "0x" + "01" * 32),
    blobGasUsed="0x0",
    excessBlobGas="0x0",
    blockAccessListHash="0x" + "02" * 32,
    slotNumber="0x10",
)
"""A header after Amsterdam."""


@pytest.mark.parametrize("path", places(WITH_ALL_FIELDS), ids=str)
def test_header__one_bit_changed__is_disproved(path: tuple[Any, ...]) -> None:
    lying = answering(changed(WITH_ALL_FIELDS, path), [], [])

    with pytest.raises(InconsistentAnswer) as caught:
        header_of(lying)

    # Another height is no answer to what was asked.
    assert isinstance(caught.value, Disproved) != (path == ("number",))


@pytest.mark.parametrize("path", places(BLOCK.header), ids=str)
def test_header__one_bit_changed_before_the_newest_hard_fork__is_not_proved(
    path: tuple[Any, ...],
) -> None:
    lying = answering(changed(BLOCK.header, path), [], [])

    if path == ("number",):
        with pytest.raises(InconsistentAnswer):
            header_of(lying)
        return
    # The endpoint may have left out what later hard forks added.
    assert header_of(lying).roots is None
    assert "blockAccessListHash, slotNumber (Amsterdam)" in header_of(lying).doubt


@pytest.mark.parametrize("path", places(list(BLOCK.transactions)), ids=str)
def test_transactions__one_bit_changed__are_disproved_or_not_read(path: tuple[Any, ...]) -> None:
    honest = endpoint_of(BLOCK)
    header = header_of(honest)
    transactions = changed(list(BLOCK.transactions), path)
    lying = answering(BLOCK.header, transactions, list(BLOCK.receipts))

    if path[1] in ("hash", "blockHash", "blockNumber", "transactionIndex", "from"):
        # The transaction itself says these: its place, its bytes, its signature.
        assert read_proved_logs(lying, [header], ANY_LOG) == read_proved_logs(
            honest, [header], ANY_LOG
        )
        return
    # As another type, it lacks fields of that one.
    expected = Unprovable if path[1] == "type" else Disproved
    with pytest.raises(expected):
        read_proved_logs(lying, [header], ANY_LOG)


_NO_PART = (
    *("blockNumber", "transactionHash", "transactionIndex", "logIndex", "removed"),
    *("from", "to", "contractAddress", "gasUsed", "effectiveGasPrice"),
)
"""Fields that no root commits to: nothing is read from them."""


@pytest.mark.parametrize("path", places(list(BLOCK.receipts)), ids=str)
def test_receipts__one_bit_changed__are_disproved_or_not_read(path: tuple[Any, ...]) -> None:
    honest = endpoint_of(BLOCK)
    header = header_of(honest)
    receipts = changed(list(BLOCK.receipts), path)
    lying = answering(BLOCK.header, list(BLOCK.transactions), receipts)

    if path[-1] in _NO_PART or (path[1:2] == ("logs",) and path[-1] == "blockHash"):
        assert read_proved_logs(lying, [header], ANY_LOG) == read_proved_logs(
            honest, [header], ANY_LOG
        )
        return
    with pytest.raises((InconsistentAnswer, Unprovable)):
        read_proved_logs(lying, [header], ANY_LOG)


@pytest.mark.parametrize("name", ["transactions", "receipts"])
@pytest.mark.parametrize(
    "change",
    [lambda all_: all_[:-1], lambda all_: [*all_, all_[0]], lambda all_: all_[::-1]],
    ids=["fewer", "more", "reversed"],
)
def test_block__parts_missing_added_or_moved__is_disproved(
    name: str, change: Callable[[list[Any]], list[Any]]
) -> None:
    parts = {"transactions": list(BLOCK.transactions), "receipts": list(BLOCK.receipts)}
    header = header_of(endpoint_of(BLOCK))
    lying = answering(BLOCK.header, **(parts | {name: change(parts[name])}))

    with pytest.raises(Disproved, match=f"{name} of block 7"):
        read_proved_logs(lying, [header], ANY_LOG)


def test_logs__some_wanted__keep_their_places_among_all() -> None:
    endpoint = endpoint_of(BLOCK)

    logs = read_proved_logs(endpoint, [header_of(endpoint)], LogFilter((A,), (TOPIC,)))

    places = [(log.transaction_index, log.log_index, log.data) for log in logs]
    assert places == [(0, 0, b"first"), (2, 3, b"2")]


def test_header__field_that_is_not_known_here__is_not_proved() -> None:
    later = resealed(BLOCK.header) | {"newRoot": "0x" + "07" * 32}
    unknown = later | {"hash": "0x" + "77" * 32}

    assert header_of(answering(unknown, [], [])).roots is None
    assert header_of(answering(unknown, [], [])).doubt == (
        "with fields that are not known here: newRoot (of a hard fork after Amsterdam, perhaps: "
        "a newer version of chainkit may know them)"
    )
    # A name alone changes nothing: the hash decides.
    assert header_of(answering(later, [], [])).roots is not None


@pytest.mark.parametrize("path", places(BLOCK.header), ids=str)
def test_header__one_bit_changed_below_a_proved_one_of_the_same_fields__is_disproved(
    path: tuple[Any, ...],
) -> None:
    above = resealed(BLOCK.header, number="0x8")
    blocks = {"0x7": changed(BLOCK.header, path), "0x8": above}
    endpoint = FakeProvider({"eth_getBlockByNumber": lambda height, _: blocks[height]}).endpoint()

    assert header_of(endpoint, 8).roots is not None
    with pytest.raises(InconsistentAnswer) as caught:
        header_of(endpoint, 7)

    assert isinstance(caught.value, Disproved) != (path == ("number",))


def test_header__field_left_out_above_proved_ones__is_no_lie() -> None:
    later = resealed(BLOCK.header, number="0x8", withdrawalsRoot="0x" + "01" * 32)
    blocks = {"0x7": BLOCK.header, "0x8": without(later, "withdrawalsRoot")}
    endpoint = FakeProvider({"eth_getBlockByNumber": lambda height, _: blocks[height]}).endpoint()

    assert header_of(endpoint, 7).roots is not None
    assert header_of(endpoint, 8).roots is None


@pytest.mark.parametrize("name", ["stateRoot", "extraData", "logsBloom", "receiptsRoot"])
def test_header__field_left_out__is_not_proved(name: str) -> None:
    header = header_of(answering(without(BLOCK.header, name), [], []))

    assert header.roots is None
    # Without a filter, each block is read.
    assert name == "logsBloom" or header.logs_bloom is not None
    assert f"field {name}" in header.doubt


@pytest.mark.parametrize(
    ("name", "hardfork"),
    [
        ("baseFeePerGas", "London"),
        ("withdrawalsRoot", "Shanghai"),
        ("requestsHash", "Prague"),
        ("slotNumber", "Amsterdam"),
    ],
)
def test_header__field_of_a_hard_fork_left_out__is_no_lie_and_names_both(
    name: str, hardfork: str
) -> None:
    header = header_of(answering(without(WITH_ALL_FIELDS, name), [], []))

    assert header.roots is None
    assert header.doubt == f"whose fields do not have its hash: it may lack {name} ({hardfork})"


@pytest.mark.parametrize("receipts", [None, [{}], "0x"])
def test_receipts__not_there_or_no_receipts__are_asked_again(receipts: Any) -> None:
    header = header_of(endpoint_of(BLOCK))

    with pytest.raises(InconsistentAnswer):
        read_proved_logs(
            answering(BLOCK.header, list(BLOCK.transactions), receipts), [header], ANY_LOG
        )


def test_receipts__none_for_a_block_with_transactions__is_not_proved_and_no_lie() -> None:
    header = header_of(endpoint_of(BLOCK))

    with pytest.raises(Unprovable, match="expected 3 receipts, got none"):
        read_proved_logs(answering(BLOCK.header, list(BLOCK.transactions), []), [header], ANY_LOG)


@pytest.mark.parametrize("receipts", [[None], [*BLOCK.receipts[:2], None]])
def test_receipts__null_among_them__are_not_proved_and_no_lie(receipts: list[Any]) -> None:
    header = header_of(endpoint_of(BLOCK))
    endpoint = answering(BLOCK.header, list(BLOCK.transactions), receipts)

    with pytest.raises(Unprovable, match="expected 3 receipts, got null for 1 of them"):
        read_proved_logs(endpoint, [header], ANY_LOG)


def test_receipts__of_another_block_at_the_height__are_asked_again_and_not_disproved() -> None:
    header = header_of(endpoint_of(BLOCK))
    other = seal(7, b"\x06" * 32, 1_700_000_001, [BareTransaction("one")])

    with pytest.raises(InconsistentAnswer, match="the same block twice") as caught:
        read_proved_logs(endpoint_of(other), [header], ANY_LOG)

    assert not isinstance(caught.value, Disproved)


@pytest.mark.parametrize("part", ["transactions", "receipts"])
def test_block__type_that_is_not_known_here__is_not_proved(part: str) -> None:
    parts = {"transactions": list(BLOCK.transactions), "receipts": list(BLOCK.receipts)}
    header = header_of(endpoint_of(BLOCK))
    parts[part] = [parts[part][0] | {"type": "0x50"}, *parts[part][1:]]

    with pytest.raises(Unprovable, match="a type that this version knows, got 0x50"):
        read_proved_logs(answering(BLOCK.header, **parts), [header], ANY_LOG)


class Narrow(FakeProvider):
    """Answers batches of few calls only."""

    def __init__(self, blocks: list[SealedBlock], most: int) -> None:
        by_height = {block.header["number"]: block for block in blocks}
        super().__init__(
            {
                "eth_getBlockByNumber": lambda height, whole: by_height[height].answer(whole),
                "eth_getBlockReceipts": lambda height: list(by_height[height].receipts),
            }
        )
        self.most = most
        self.sizes: list[int] = []

    def make_batch_request(self, batch_requests: Any) -> Any:
        self.sizes.append(len(batch_requests))
        if len(batch_requests) > self.most:
            raise OversizedAnswer("answer", "one of bounded size", "more")
        return super().make_batch_request(batch_requests)


def test_blocks__answer_too_large__are_asked_for_in_halves() -> None:
    blocks = [
        seal(number, bytes(32), number, [BareTransaction(f"{number}", (BareLog(A, (), b"x"),))])
        for number in range(5)
    ]
    provider = Narrow(blocks, most=100)
    endpoint = Endpoint(provider, "narrow", RetryPolicy(attempts=1))
    headers = [header_of(endpoint, number) for number in range(5)]
    provider.most, provider.sizes = 4, []

    logs = read_proved_logs(endpoint, headers, ANY_LOG)

    assert [log.block_number for log in logs] == [0, 1, 2, 3, 4]
    assert provider.sizes == [10, 4, 6, 2, 4]


def test_block__answers_too_large_together__are_asked_for_each_alone() -> None:
    blocks = [seal(0, bytes(32), 0, [BareTransaction("0", (BareLog(A, (), b"x"),))])]
    provider = Narrow(blocks, most=100)
    endpoint = Endpoint(provider, "narrow", RetryPolicy(attempts=1))
    headers = [header_of(endpoint, 0)]
    provider.most = 1

    assert [log.block_number for log in read_proved_logs(endpoint, headers, ANY_LOG)] == [0]

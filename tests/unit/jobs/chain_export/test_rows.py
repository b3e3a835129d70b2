"""JSON of one block to rows, and each way in which it may contradict itself."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import InconsistentAnswer, Unconfirmed
from chainkit.ethereum import transaction_bytes
from chainkit.exports import tables
from chainkit.signatures import keccak256
from chainkit_jobs.chain_export.block_rows import parse_body, parse_receipts
from support.endpoints.transaction_answers import (
    ACCESS_LIST,
    ARBITRUM_INTERNAL,
    BLOB,
    BLOCK_HASH,
    DYNAMIC_FEE,
    EVERY_TYPE,
    LEGACY,
    NUMBER,
    OPTIMISM_DEPOSIT,
    SET_CODE,
    Answer,
    block_with,
    placed,
    receipt_of,
)

Row = dict[str, Any]

CHAIN_ID = 31337


def body(*transactions: Answer, **changes: Any) -> Any:
    return parse_body("block 5", NUMBER, CHAIN_ID, block_with(*transactions, **changes))


def transaction_row(transaction: Answer) -> Row:
    [row] = body(transaction).transactions
    return dict(row)


def set_columns(row: Row) -> set[str]:
    always = {name for name in tables.TRANSACTIONS.names if not nullable(name)}
    return {name for name, value in row.items() if value is not None} - always - {"to_address"}


def nullable(name: str) -> bool:
    return bool(tables.TRANSACTIONS.field(name).nullable)


# ------------------------------------------------------------------------- rows


@pytest.mark.parametrize("transaction", EVERY_TYPE.values(), ids=EVERY_TYPE)
def test_parse_body__transaction_of_each_type__row_gives_its_hash(transaction: Answer) -> None:
    row = transaction_row(transaction)

    assert keccak256(transaction_bytes(row)) == row["transaction_hash"]
    assert list(row) == tables.TRANSACTIONS.names


SIGNATURE = {"v", "r", "s"}
FEES = {"max_fee_per_gas", "max_priority_fee_per_gas", "access_list", "chain_id", *SIGNATURE}


@pytest.mark.parametrize(
    ("transaction", "columns"),
    [
        (LEGACY, {"chain_id", "gas_price", *SIGNATURE}),
        (ACCESS_LIST, {"chain_id", "gas_price", "access_list", *SIGNATURE}),
        (DYNAMIC_FEE, FEES),
        (BLOB, FEES | {"max_fee_per_blob_gas", "blob_versioned_hashes"}),
        (SET_CODE, FEES | {"authorization_list"}),
        (OPTIMISM_DEPOSIT, {"source_hash", "mint", "is_system_transaction"}),
        (ARBITRUM_INTERNAL, {"chain_id"}),
        (LEGACY | {"type": "0x55", "mint": "0x1"}, {"chain_id", "gas_price", "mint", *SIGNATURE}),
    ],
)
def test_parse_body__each_type__has_its_own_columns_and_no_others(
    transaction: Answer, columns: set[str]
) -> None:
    everything = {"gasPrice": "0x5", "accessList": [], "maxFeePerGas": "0x6"}
    known = {} if transaction["type"] == "0x55" else everything

    assert set_columns(transaction_row(transaction)) == columns
    assert set_columns(transaction_row(known | transaction)) <= columns


def test_parse_body__lists_and_signature__are_kept_as_bytes() -> None:
    access = transaction_row(ACCESS_LIST)
    delegation = transaction_row(SET_CODE)["authorization_list"][0]

    assert access["access_list"] == [{"address": b"\x22" * 20, "storage_keys": [b"\x33" * 32]}]
    assert (len(access["r"]), access["v"]) == (32, 0)
    assert transaction_row(DYNAMIC_FEE)["r"][:2] == b"\x05\x18"
    assert delegation["chain_id"] == (31337).to_bytes(32, "big")
    assert (delegation["nonce"], delegation["y_parity"], len(delegation["s"])) == (4, 0, 32)
    assert transaction_row(BLOB)["blob_versioned_hashes"][0][:2] == b"\x01\x06"


def test_parse_body__parity_and_v__parity_is_v_but_for_a_legacy_one() -> None:
    without = {name: value for name, value in DYNAMIC_FEE.items() if name != "yParity"}

    assert transaction_row(without)["v"] == 1
    assert transaction_row(DYNAMIC_FEE | {"v": "0x1c"})["v"] == 1
    assert transaction_row(LEGACY | {"yParity": "0x0"})["v"] == 0xF4F5


def test_parse_body__delegation_with_v__is_its_parity() -> None:
    [delegation] = SET_CODE["authorizationList"]
    renamed = {name: value for name, value in delegation.items() if name != "yParity"}

    row = transaction_row(SET_CODE | {"authorizationList": [renamed | {"v": "0x1"}]})

    assert row["authorization_list"][0]["y_parity"] == 1


def test_parse_body__deposit_without_what_is_zero__is_the_same_transaction() -> None:
    bare = {k: v for k, v in OPTIMISM_DEPOSIT.items() if k not in ("nonce", "mint")}
    system = transaction_row(OPTIMISM_DEPOSIT | {"isSystemTx": True})

    row = transaction_row(bare)

    assert (row["nonce"], row["mint"], row["is_system_transaction"]) == (0, None, False)
    assert keccak256(transaction_bytes(row)) == row["transaction_hash"]
    assert system["is_system_transaction"] is True


def test_parse_body__no_type__is_a_legacy_transaction() -> None:
    row = transaction_row({name: value for name, value in LEGACY.items() if name != "type"})

    assert (row["type"], row["gas_price"]) == (0, 3 * 10**9)


def test_parse_body__whole_header__is_kept_field_by_field() -> None:
    row = body(LEGACY).block

    assert {name for name in tables.BLOCKS.names if row[name] is None} == set()
    assert (row["nonce"], row["extra_data"]) == (bytes.fromhex("000000000016a24e"), b"boo")
    assert (row["gas_limit"], row["blob_gas_used"], row["difficulty"]) == (2**50, 2**17, 7)
    assert row["requests_hash"] == b"\x0e" * 32
    assert row["transaction_count"] == 1


def test_parse_body__header_before_london__later_fields_are_null() -> None:
    since = ("baseFeePerGas", "withdrawalsRoot", "blobGasUsed", "excessBlobGas")
    later = (*since, "parentBeaconBlockRoot", "requestsHash", "blockAccessListHash", "slotNumber")

    row = body(**dict.fromkeys(later)).block

    assert [row["base_fee_per_gas"], row["requests_hash"]] == [None, None]
    assert sum(value is None for value in row.values()) == len(later)


ROLLUP = {
    "l1Fee": "0xae8f1995",
    "l1GasUsed": "0x640",
    "l1GasPrice": "0xcdb8f78",
    "l1FeeScalar": "0.684",
    "l1BaseFeeScalar": "0x146b",
    "l1BlobBaseFee": "0xa92fc3",
    "l1BlobBaseFeeScalar": "0xf79c5",
    "gasUsedForL1": "0x2c906",
    "depositNonce": "0x2c28b94",
    "depositReceiptVersion": "0x1",
}


def test_parse_receipts__rollup_fields__are_kept() -> None:
    [row], _ = parse_receipts(body(DYNAMIC_FEE), [receipt_of(DYNAMIC_FEE, **ROLLUP)])

    assert [row[name] for name in tables.RECEIPTS.names[-10:]] == [
        *(0xAE8F1995, 0x640, 0xCDB8F78, "0.684", 0x146B, 0xA92FC3, 0xF79C5),
        *(0x2C906, 0x2C28B94, 1),
    ]


def test_parse_receipts__other_chain__rollup_fields_are_null() -> None:
    [row], _ = parse_receipts(body(DYNAMIC_FEE), [receipt_of(DYNAMIC_FEE)])

    assert {row[name] for name in tables.RECEIPTS.names[-10:]} == {None}


def test_parse_receipts__two_transactions__rows_of_both_and_their_logs() -> None:
    answers = [receipt_of(LEGACY), receipt_of(BLOB, 1, logs=2, to=None)]

    receipts, logs = parse_receipts(body(LEGACY, BLOB), answers)

    assert [row["effective_gas_price"] for row in receipts] == [2**70, 2**70]
    assert [row["to_address"] is None for row in receipts] == [False, True]
    assert [row["log_index"] for row in logs] == [0, 1]
    assert [row["transaction_hash"] for row in logs] == [receipts[1]["transaction_hash"]] * 2
    assert (logs[0]["topics"], logs[0]["data"]) == ([b"\x88" * 32], b"\x99")
    assert list(receipts[0]) == tables.RECEIPTS.names
    assert list(logs[0]) == tables.LOGS.names


def test_parse_receipts__no_type__is_the_transactions() -> None:
    [row], _ = parse_receipts(body(BLOB), [receipt_of(BLOB, type=None)])

    assert row["type"] == 3


# --------------------------------------------------------------- contradictions


OTHER = "0x" + "ff" * 32


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"number": "0x6"}, r"expected height 5, got 6 \(header\)"),
        ({"transactions": None}, "expected a list of transactions, got NoneType"),
        ({"transactions": [LEGACY["hash"]]}, r"a JSON object, got '0x35.*\(transaction 0\)"),
        ({"transactions": [placed(LEGACY) | {"blockHash": OTHER}]}, "block hash 0xb5"),
        ({"transactions": [placed(LEGACY) | {"blockNumber": "0x6"}]}, "block number 5, got 6"),
        ({"transactions": [placed(LEGACY, 1)]}, "transaction index 0, got 1"),
    ],
)
def test_parse_body__one_contradiction__is_inconsistent(changes: Answer, message: str) -> None:
    with pytest.raises(InconsistentAnswer, match=message):
        body(**changes)


def test_parse_body__no_block__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer, match="block 5: expected a block, got nothing"):
        parse_body("block 5", NUMBER, CHAIN_ID, None)


def changed(path: list[Any], value: Any) -> Callable[[list[Answer]], None]:
    """Set one value inside the receipts."""

    def change(answers: Any) -> None:
        for step in path[:-1]:
            answers = answers[step]
        answers[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.pop(), "expected 2 receipts, got 1"),
        (lambda r: r.append(r[0]), "expected 2 receipts, got 3"),
        (lambda r: r.reverse(), "transaction 0x"),
        (changed([0], None), r"a JSON object, got nothing \(receipt 0\)"),
        (changed([0, "blockHash"], OTHER), "block hash 0x"),
        (changed([0, "blockNumber"], "0x6"), "expected block number 5, got 6"),
        (changed([0, "transactionHash"], OTHER), "transaction 0x"),
        (changed([0, "transactionIndex"], "0x1"), "expected transaction index 0, got 1"),
        (changed([1, "type"], "0x2"), "expected type 3, got 2"),
        (changed([1, "logs"], {}), "expected a list of logs, got dict"),
        (changed([1, "logs", 0], []), r"a JSON object, got \[\]"),
        (changed([1, "logs", 0, "blockHash"], OTHER), "block hash 0x"),
        (changed([1, "logs", 0, "blockNumber"], "0x6"), "expected block number 5, got 6"),
        (changed([1, "logs", 0, "transactionHash"], OTHER), "transaction 0x"),
        (changed([1, "logs", 0, "transactionIndex"], "0x0"), "transaction index 1, got 0"),
        (changed([1, "logs", 0, "removed"], True), "expected a log of this chain"),
        (lambda r: r[1]["logs"].pop(0), r"expected log index 0, got 1 \(log 0\)"),
        (lambda r: r[1]["logs"].reverse(), "expected log index 0, got 1"),
    ],
)
def test_parse_receipts__one_contradiction__is_inconsistent(
    change: Callable[[list[Answer]], None], message: str
) -> None:
    answers = [receipt_of(LEGACY), receipt_of(BLOB, 1, logs=2)]
    change(answers)

    with pytest.raises(InconsistentAnswer, match=message):
        parse_receipts(body(LEGACY, BLOB), answers)


@pytest.mark.parametrize(("answer", "got"), [(None, "nothing"), ({}, "dict"), ("", "str")])
def test_parse_receipts__no_list__is_inconsistent(answer: Any, got: str) -> None:
    with pytest.raises(InconsistentAnswer, match=f"expected a list of receipts, got {got}"):
        parse_receipts(body(), answer)


# ----------------------------------------------------------- what fits no column


def damaged(field: str, value: Any, place: str) -> Any:
    return pytest.param(field, value, place, id=f"{field} {value!r}"[:40])


@pytest.mark.parametrize(
    ("field", "value", "place"),
    [
        damaged("hash", "0x" + "b5" * 31, "header"),
        damaged("parentHash", 7, "header"),
        damaged("miner", "0x" + "02" * 32, "header"),
        damaged("logsBloom", "0x06", "header"),
        damaged("nonce", "0x0", "header"),
        damaged("gasUsed", 5, "header"),
        damaged("gasLimit", hex(2**63), "header"),
        damaged("timestamp", "0x", "header"),
        damaged("timestamp", "-0x1", "header"),
        damaged("difficulty", hex(10**38), "header"),
        damaged("baseFeePerGas", hex(2**256), "header"),
        damaged("extraData", "0x6", "header"),
        damaged("extraData", [], "header"),
        damaged("value", hex(10**38), "transaction 0"),
        damaged("value", True, "transaction 0"),
        damaged("nonce", hex(2**64), "transaction 0"),
        damaged("from", "0x", "transaction 0"),
        damaged("to", "", "transaction 0"),
        damaged("type", "0x", "transaction 0"),
        damaged("r", hex(2**256), "transaction 0"),
        damaged("accessList", {}, "transaction 0"),
        damaged("accessList", [[]], "transaction 0"),
        damaged("accessList", [{"address": "0x" + "22" * 20}], "transaction 0"),
        damaged("accessList", [{"address": "0x", "storageKeys": []}], "transaction 0"),
        damaged("blobVersionedHashes", ["0x01"], "transaction 0"),
        damaged("authorizationList", [{}], "transaction 0"),
        damaged("authorizationList", [None], "transaction 0"),
        damaged("isSystemTx", "0x1", "transaction 0"),
        damaged("status", "1", "receipt 0"),
        damaged("gasUsed", hex(2**63), "receipt 0"),
        damaged("l1Fee", "684", "receipt 0"),
        damaged("l1FeeScalar", 0.684, "receipt 0"),
        damaged("l1FeeScalar", "0x1", "receipt 0"),
        damaged("depositNonce", hex(2**64), "receipt 0"),
        damaged("topics", {}, "log 0"),
        damaged("topics", "0x", "log 0"),
        damaged("data", "0x0", "log 0"),
    ],
)
def test_parse__value_that_fits_no_column__names_field_and_place(
    field: str, value: Any, place: str
) -> None:
    with pytest.raises(InconsistentAnswer) as caught:
        parse_changed(field, value, place)

    assert str(caught.value).startswith(f"block 5: expected {field}: ")
    assert caught.value.place == place


def parse_changed(field: str, value: Any, place: str) -> None:
    change = {field: value}
    block = block_with(DYNAMIC_FEE | (change if place == "transaction 0" else {}))
    receipt = receipt_of(DYNAMIC_FEE, logs=1) | (change if place == "receipt 0" else {})
    receipt["logs"][0] |= change if place == "log 0" else {}
    block |= change if place == "header" else {}

    parse_receipts(parse_body("block 5", NUMBER, CHAIN_ID, block), [receipt])


def test_parse_body__very_long_value__is_shown_in_part() -> None:
    with pytest.raises(InconsistentAnswer) as caught:
        body(gasUsed="0x" + "z" * 10**6)

    assert len(str(caught.value)) < 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(data=st.data(), value=JSON)
def test_parse__any_json_in_any_field__is_rows_or_inconsistent(
    data: st.DataObject, value: Any
) -> None:
    transaction = data.draw(st.sampled_from(list(EVERY_TYPE.values())))
    block, receipt = block_with(transaction), receipt_of(transaction, logs=1, **ROLLUP)
    target = data.draw(
        st.sampled_from([block, block["transactions"][0], receipt, receipt["logs"][0]])
    )
    target[data.draw(st.sampled_from(sorted(target)))] = value

    try:
        parsed = parse_body("block 5", NUMBER, CHAIN_ID, block)
        parse_receipts(parsed, [receipt])
    except (InconsistentAnswer, Unconfirmed):
        return
    assert parsed.block["hash"] == bytes.fromhex(BLOCK_HASH[2:])

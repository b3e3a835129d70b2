"""Transactions and receipts from which endpoints leave something out: what follows is filled in."""

from __future__ import annotations

from typing import Any

import pytest

from chainkit.chain.block_encoding import encode_receipt, encode_transaction
from chainkit.chain.completion import Completed, completed_receipt, completed_transaction
from chainkit.errors import Unprovable
from chainkit.ethereum import decode_call
from chainkit.ethereum.transaction import COMMITTED_COLUMNS
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x
from support.endpoints.transaction_answers import (
    ACCESS_LIST,
    BLOB,
    DYNAMIC_FEE,
    EVERY_TYPE,
    LEGACY,
    OPTIMISM_DEPOSIT,
    SET_CODE,
    Answer,
    receipt_of,
)
from support.vectors import from_hex

SIGNED = {
    "access list": ACCESS_LIST,
    "dynamic fee": DYNAMIC_FEE,
    "blob": BLOB,
    "set code": SET_CODE,
}
CONTRACT, RETRY, SUBMIT = (
    EVERY_TYPE[name] for name in ("contract 0x66", "retry 0x68", "submit 0x69")
)


def without(answer: Answer, *names: str) -> Answer:
    return {name: value for name, value in answer.items() if name not in names}


def completed(answer: Answer) -> Completed:
    chain_id = EVERY_TYPE["internal"] if int(answer.get("type") or "0x0", 16) > 0x60 else LEGACY
    return completed_transaction(answer, int(chain_id["chainId"], 16))


def hash_of(answer: Answer) -> str:
    return hex0x(keccak256(encode_transaction(completed(answer).answer, "transaction")))


@pytest.mark.parametrize("transaction", EVERY_TYPE.values(), ids=EVERY_TYPE)
def test_encode__transaction_of_each_type__has_its_hash(transaction: Answer) -> None:
    assert hash_of(transaction) == transaction["hash"]


@pytest.mark.parametrize("transaction", EVERY_TYPE.values(), ids=EVERY_TYPE)
def test_decode_call__transaction_of_each_type__is_what_it_calls(transaction: Answer) -> None:
    found = decode_call(encode_transaction(completed(transaction).answer, "transaction"))

    names = COMMITTED_COLUMNS[int(transaction["type"], 16)]
    assert found.to == (from_hex(transaction["to"]) if "to_address" in names else None)
    assert found.input == (from_hex(transaction["input"]) if "input" in names else b"")


@pytest.mark.parametrize("transaction", SIGNED.values(), ids=SIGNED)
@pytest.mark.parametrize(
    "omit",
    [("v",), ("yParity",), ("chainId",), ("v", "chainId"), ("yParity", "chainId")],
    ids=" ".join,
)
def test_encode__typed_transaction_without_what_follows__has_its_hash(
    transaction: Answer, omit: tuple[str, ...]
) -> None:
    assert hash_of(without(transaction, *omit)) == transaction["hash"]


@pytest.mark.parametrize("transaction", SIGNED.values(), ids=SIGNED)
@pytest.mark.parametrize("offset", [27, 35 + 2 * 31337])
@pytest.mark.parametrize("omit", [(), ("yParity",)], ids=["with parity", "without"])
def test_encode__typed_transaction_with_v_of_a_legacy_one__has_its_hash(
    transaction: Answer, offset: int, omit: tuple[str, ...]
) -> None:
    v = hex(offset + int(transaction["yParity"], 16))

    assert hash_of(without(transaction, *omit) | {"v": v}) == transaction["hash"]


@pytest.mark.parametrize("transaction", EVERY_TYPE.values(), ids=EVERY_TYPE)
def test_encode__data_for_input__has_its_hash(transaction: Answer) -> None:
    if "input" in transaction:
        told = without(transaction, "input") | {"data": transaction["input"]}
        assert hash_of(told) == transaction["hash"]


def test_encode__legacy_without_v__follows_from_parity_and_chain() -> None:
    parity = hex(1 - int(LEGACY["v"], 16) % 2)

    assert hash_of(without(LEGACY, "v") | {"yParity": parity}) == LEGACY["hash"]
    # Any chain: 27 or 28 is assumed, and may be wrong.
    guessed = completed(without(LEGACY, "v", "chainId") | {"yParity": parity})
    assert guessed.assumed == ("v",)
    assert guessed.answer["v"] == hex(27 + int(parity, 16))


@pytest.mark.parametrize(
    ("transaction", "name"),
    [
        (DYNAMIC_FEE, "accessList"),
        (OPTIMISM_DEPOSIT, "mint"),
        (OPTIMISM_DEPOSIT, "isSystemTx"),
        (LEGACY, "type"),
        (CONTRACT, "maxFeePerGas"),
        (RETRY, "maxFeePerGas"),
        (SUBMIT, "maxFeePerGas"),
    ],
)
def test_encode__field_left_out_that_is_most_likely_nothing__is_assumed(
    transaction: Answer, name: str
) -> None:
    told = without(transaction, name)

    assert hash_of(told) == transaction["hash"]
    assert name in completed(told).assumed


def test_completed__nullable_field_left_out_or_null__is_assumed_or_told() -> None:
    assert completed(without(LEGACY, "to")).assumed == ("to",)
    assert completed(LEGACY | {"to": None}).assumed == ()
    assert completed(without(SUBMIT, "retryTo")).assumed == ("retryTo",)


def every_needed_field() -> list[Any]:
    follows = {"type", "input", "data", "v", "yParity", "chainId", "accessList", "mint", "to"}
    follows |= {"isSystemTx", "retryTo", "maxFeePerGas", "hash"}
    return [
        pytest.param(transaction, name, id=f"{kind} {name}")
        for kind, transaction in EVERY_TYPE.items()
        for name in transaction
        # The price of the unsigned one stands for its fee cap.
        if name not in follows and name != "gasPrice" and hash_changes(transaction, name)
    ]


def hash_changes(transaction: Answer, name: str) -> bool:
    value = transaction[name]
    if not isinstance(value, str):
        return True
    return hash_of(transaction | {name: value[:-1] + "7f"[value[-1] == "7"]}) != transaction["hash"]


@pytest.mark.parametrize(("transaction", "name"), every_needed_field())
def test_encode__field_left_out_that_nothing_tells__is_unprovable_and_names_it(
    transaction: Answer, name: str
) -> None:
    with pytest.raises(
        Unprovable, match=rf"transaction: expected .*, got nothing \(field {name}\)"
    ):
        hash_of(without(transaction, name))
    with pytest.raises(Unprovable, match=rf"transaction: expected .*, got 7 \(field {name}\)"):
        hash_of(transaction | {name: 7})


def encoded(receipt: Answer, transaction: Answer = DYNAMIC_FEE) -> bytes:
    return encode_receipt(completed_receipt(receipt, transaction).answer, "receipt")


RECEIPT = receipt_of(DYNAMIC_FEE, logs=3)


@pytest.mark.parametrize(
    "told",
    [
        without(RECEIPT, "type"),
        RECEIPT | {"status": "0x01"},
        RECEIPT | {"cumulativeGasUsed": "0x0005208"},
        without(RECEIPT, "gasUsed", "effectiveGasPrice", "from", "to", "contractAddress"),
    ],
)
def test_encode__receipt_without_what_follows__is_the_same(told: Answer) -> None:
    assert encoded(told) == encoded(RECEIPT)


def test_encode__receipt_with_and_without_filter__is_the_same() -> None:
    whole = encoded(RECEIPT)
    # RLP: the list of the receipt begins with status, gas, then 256 bytes of filter.
    at = whole.index(b"\xb9\x01\x00") + 3

    assert encoded(RECEIPT | {"logsBloom": hex0x(whole[at : at + 256])}) == whole
    assert any(whole[at : at + 256])


@pytest.mark.parametrize(
    ("told", "field"),
    [
        (without(RECEIPT, "status"), "status"),
        (RECEIPT | {"status": "0x2"}, "status"),
        (without(RECEIPT, "cumulativeGasUsed"), "cumulativeGasUsed"),
        (without(RECEIPT, "logs"), "logs"),
        (RECEIPT | {"logs": [without(RECEIPT["logs"][0], "data")]}, "data"),
        (RECEIPT | {"logs": [without(RECEIPT["logs"][0], "topics")]}, "topics"),
        (RECEIPT | {"logsBloom": "0x"}, "logsBloom"),
    ],
)
def test_encode__receipt_without_what_nothing_tells__is_unprovable_and_names_it(
    told: Answer, field: str
) -> None:
    with pytest.raises(Unprovable, match=rf"\(field {field}\)"):
        encoded(told)


def test_encode__deposit_receipt__has_its_nonce_since_canyon() -> None:
    receipt = receipt_of(OPTIMISM_DEPOSIT, depositNonce="0x7")
    later = receipt | {"depositReceiptVersion": "0x1"}

    assert completed_receipt(receipt, OPTIMISM_DEPOSIT).assumed == ("depositReceiptVersion",)
    assert completed_receipt(later, OPTIMISM_DEPOSIT).assumed == ()
    assert encoded(receipt) != encoded(later)
    with pytest.raises(Unprovable, match=r"\(field depositNonce\)"):
        encoded(without(later, "depositNonce"))


def test_encode__very_long_value__is_shown_in_part() -> None:
    with pytest.raises(Unprovable) as caught:
        hash_of(DYNAMIC_FEE | {"nonce": "0x" + "\x1b" * 10**6})

    assert len(str(caught.value)) < 600
    assert "\x1b" not in str(caught.value)

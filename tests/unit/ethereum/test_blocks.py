"""Blocks of real chains, and of anvil: their hashes and roots, computed from rows."""

from typing import Any

import pytest

from chainkit.ethereum import (
    bloom_of_logs,
    create_address,
    header_bytes,
    inclusion_proofs,
    receipt_bytes,
    recover_sender,
    transaction_bytes,
    trie_root,
    verify_inclusion,
)
from chainkit.ethereum.bloom import bloom_of
from chainkit.signatures import keccak256
from support.audit.execution_rows import block_row, receipt_rows, transaction_rows
from support.vectors import case_name, from_hex, load

CASES: list[dict[str, Any]] = load("blocks")["cases"] + load("anvil_blocks")["cases"]


def with_parts(*parts: str) -> list[dict[str, Any]]:
    return [case for case in CASES if all(part in case for part in parts)]


HEADERS = [case for case in with_parts("block") if "hash" in case["block"]]


@pytest.mark.parametrize("case", HEADERS, ids=case_name)
def test_header__of_a_real_block__has_its_hash(case: dict[str, Any]) -> None:
    assert keccak256(header_bytes(block_row(case["block"]))) == from_hex(case["block"]["hash"])


@pytest.mark.parametrize("case", with_parts("transactions"), ids=case_name)
def test_transaction__of_a_real_block__has_its_hash_and_sender(case: dict[str, Any]) -> None:
    for row, answer in zip(transaction_rows(case), case["transactions"], strict=True):
        assert keccak256(transaction_bytes(row)) == from_hex(answer["hash"])
        assert recover_sender(row) == from_hex(answer["from"])


@pytest.mark.parametrize("case", with_parts("block", "transactions"), ids=case_name)
def test_transactions__of_a_real_block__have_its_root(case: dict[str, Any]) -> None:
    root = from_hex(case["block"]["transactionsRoot"])
    values = [transaction_bytes(row) for row in transaction_rows(case)]

    assert trie_root(values) == root
    _, proofs = inclusion_proofs(values, range(len(values)))
    for index, value in enumerate(values):
        assert verify_inclusion(root, index, proofs[index]) == value


@pytest.mark.parametrize("case", with_parts("receipts"), ids=case_name)
def test_receipts__of_a_real_block__have_its_root(case: dict[str, Any]) -> None:
    root = from_hex(case["block"]["receiptsRoot"])
    values = [receipt_bytes(receipt, logs) for receipt, logs in receipt_rows(case)]

    assert trie_root(values) == root
    _, proofs = inclusion_proofs(values, range(len(values)))
    for index, value in enumerate(values):
        assert verify_inclusion(root, index, proofs[index]) == value


@pytest.mark.parametrize("case", with_parts("receipts"), ids=case_name)
def test_bloom__of_a_real_block__is_the_filter_of_its_header(case: dict[str, Any]) -> None:
    logs = [log for _, logs in receipt_rows(case) for log in logs]

    if "logsBloom" in case["block"]:
        assert bloom_of_logs(logs) == from_hex(case["block"]["logsBloom"])
    values = [value for log in logs for value in (log["address"], *log["topics"])]
    assert bloom_of_logs(logs) == bloom_of(values)


def test_create_address__of_mined_creations__is_their_contract() -> None:
    created = [
        (recover_sender(row), row["nonce"], answer)
        for case in with_parts("transactions")
        for row, answer in zip(transaction_rows(case), case["transactions"], strict=True)
        if row["to_address"] is None and row["type"] == 0
    ]
    contracts = [answer.get("creates") for _, _, answer in created]
    contracts += [
        receipt["contractAddress"]
        for case in with_parts("transactions", "receipts")
        for receipt in case["receipts"]
        if receipt["type"] == "0x0" and receipt.get("contractAddress")
    ]

    addresses = {create_address(sender, nonce) for sender, nonce, _ in created}

    assert addresses == {from_hex(contract) for contract in contracts if contract}
    assert len(addresses) == 2


def test_vectors__all_together__hold_every_type() -> None:
    transactions = {
        row["type"] for case in with_parts("transactions") for row in transaction_rows(case)
    }
    receipts = {row["type"] for case in with_parts("receipts") for row, _ in receipt_rows(case)}

    assert transactions == {0, 1, 2, 3, 4, 0x7E, 0x6A}
    assert receipts == {0, 1, 2, 3, 4, 0x7E, 0x6A}

"""A trie's content is taken apart again: every type of transaction and receipt, and headers."""

from __future__ import annotations

from typing import Any

import pytest
import rlp

from chainkit.errors import MalformedData, Unprovable
from chainkit.ethereum import (
    decode_call,
    decode_header,
    decode_receipt,
    header_bytes,
    inclusion_proofs,
    receipt_bytes,
    transaction_bytes,
    trie_root,
)
from chainkit.ethereum.transaction import ARBITRUM_INTERNAL
from support.audit.execution_rows import block_row, receipt_rows, transaction_rows
from support.chains.proved_chain import every_kind, proved_chain
from support.vectors import case_name, load

CASES: list[dict[str, Any]] = load("blocks")["cases"] + load("anvil_blocks")["cases"]
HEADERS = [case for case in CASES if "hash" in case.get("block", {})]


def test_decode__every_kind_of_a_chain__gives_back_what_was_encoded() -> None:
    chain = proved_chain(every_kind(block=5))
    for row in chain.rows["transactions"]:
        call = decode_call(transaction_bytes(row))
        assert (call.to, call.input) == (row["to_address"], row["input"])
    for row in chain.rows["receipts"]:
        place = (row["block_number"], row["transaction_index"])
        logs = [
            log
            for log in chain.rows["logs"]
            if (log["block_number"], log["transaction_index"]) == place
        ]
        found = decode_receipt(receipt_bytes(row, logs))
        assert found.succeeded == bool(row["status"])
        assert [(log.address, list(log.topics), log.data) for log in found.logs] == [
            (log["address"], log["topics"], log["data"]) for log in logs
        ]
    for row in chain.rows["blocks"]:
        decoded = decode_header(header_bytes(row))
        assert decoded.header.reference.hash == row["hash"]
        assert (decoded.header.number, decoded.header.timestamp) == (
            row["number"],
            row["timestamp"],
        )
        assert (decoded.header.parent_hash, decoded.transactions_root, decoded.receipts_root) == (
            row["parent_hash"],
            row["transactions_root"],
            row["receipts_root"],
        )


@pytest.mark.parametrize("case", HEADERS, ids=case_name)
def test_decode_header__of_a_real_block__gives_back_what_was_encoded(case: dict[str, Any]) -> None:
    header = block_row(case["block"])

    decoded = decode_header(header_bytes(header))

    assert decoded.header.hash == header["hash"]
    assert decoded.receipts_root == header["receipts_root"]


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_decode__of_a_real_block__gives_back_what_was_encoded(case: dict[str, Any]) -> None:
    for row in transaction_rows(case) if "transactions" in case else []:
        call = decode_call(transaction_bytes(row))
        # Nothing commits to whom an internal transaction of Arbitrum calls.
        to = None if row["type"] == ARBITRUM_INTERNAL else row["to_address"]
        assert (call.to, call.input) == (to, row["input"])
    for row, logs in receipt_rows(case) if "receipts" in case else []:
        found = decode_receipt(receipt_bytes(row, logs)).logs
        assert [(log.address, log.data) for log in found] == [
            (log["address"], log["data"]) for log in logs
        ]


NESTED = b"\xf9\x13\x89" + b"\xc1" * 5000 + b"\xc0"


@pytest.mark.parametrize("decode", [decode_call, decode_receipt, decode_header])
@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\x00", b"\x80", b"\xc0", b"\x02\xc0", b"\x02\xc1\xc0", b"\xff" * 9, b"\x02" * 50),
        *(NESTED, rlp.encode([b"x"] * 40)),
    ],
)
def test_decode__other_bytes__is_malformed(decode: Any, data: bytes) -> None:
    with pytest.raises(MalformedData):
        decode(data)


@pytest.mark.parametrize("decode", [decode_call, decode_receipt])
@pytest.mark.parametrize("type_", [5, 0x64 - 1, 0x7F])
def test_decode__type_that_nobody_knows__is_unprovable(decode: Any, type_: int) -> None:
    with pytest.raises(Unprovable, match="that this version knows"):
        decode(bytes([type_]) + rlp.encode([b"x"]))


@pytest.mark.parametrize("logs", [b"x", [b"x"], [[b"a" * 20, b"", b""]], [[b"a", [], b""]]])
def test_decode_receipt__logs_that_are_none__is_malformed(logs: Any) -> None:
    with pytest.raises(MalformedData):
        decode_receipt(rlp.encode([b"\x01", b"\x01", bytes(256), logs]))


def test_decode_receipt__from_before_statuses__is_malformed() -> None:
    with pytest.raises(MalformedData, match="status"):
        decode_receipt(rlp.encode([b"\x07" * 32, b"\x01", bytes(256), []]))


def test_inclusion_proofs__several_at_one_go__are_those_of_one_after_the_other() -> None:
    values = [b"value %d" % n * 9 for n in range(300)]

    root, proofs = inclusion_proofs(values, [0, 127, 128, 299])

    assert root == trie_root(values)
    for index in (0, 127, 128, 299):
        assert inclusion_proofs(values, [index]) == (root, {index: proofs.pop(index)})
    assert not proofs
    with pytest.raises(MalformedData, match="an index below 300"):
        inclusion_proofs(values, [3, 300])

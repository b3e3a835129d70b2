"""Blocks in memory whose hash and roots are those of their content, as JSON-RPC shows them.

They are sealed by the encoders of ``chainkit.ethereum``, which tests hold against real blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa

from chainkit.ethereum import (
    bloom_of_logs,
    header_bytes,
    receipt_bytes,
    transaction_bytes,
    trie_root,
)
from chainkit.exports import tables
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x

Answer = dict[str, Any]

SENDER, TARGET = b"\x44" * 20, b"\x55" * 20
_GAS = 50_000


@dataclass(frozen=True)
class BareLog:
    """A log before it has a place in a block."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes

    @property
    def row(self) -> Answer:
        return {"address": self.address, "topics": list(self.topics), "data": self.data}


@dataclass(frozen=True)
class BareTransaction:
    """A transaction and what it emitted; its name is its calldata, so its hash follows from it."""

    name: str
    logs: tuple[BareLog, ...] = ()

    @property
    def hash(self) -> bytes:
        return transaction_hash(self.name)


@dataclass(frozen=True)
class SealedBlock:
    """A block as an endpoint answers it."""

    header: Answer
    transactions: tuple[Answer, ...]
    receipts: tuple[Answer, ...]

    @property
    def hash(self) -> bytes:
        return bytes.fromhex(self.header["hash"][2:])

    @property
    def logs(self) -> list[Answer]:
        return [log for receipt in self.receipts for log in receipt["logs"]]

    def answer(self, is_whole: bool) -> Answer:
        """The answer to eth_getBlockByNumber."""
        shown = [each if is_whole else each["hash"] for each in self.transactions]
        return self.header | {"transactions": shown}


def transaction_hash(name: str) -> bytes:
    """The hash of the transaction of that name."""
    return keccak256(raw_transaction(name))


def resealed(answer: Answer, **fields: str) -> Answer:
    """An endpoint's block with other fields, and the resulting hash."""
    changed = answer | fields
    row: Answer = dict.fromkeys(tables.BLOCKS.names)
    for name in row:
        if name != "hash" and (value := changed.get(_json_name(name))) is not None:
            is_bytes = tables.BLOCKS.field(name).type == pa.binary()
            row[name] = bytes.fromhex(value[2:]) if is_bytes else int(value, 16)
    return changed | {"hash": hex0x(keccak256(header_bytes(row)))}


def seal(
    number: int, parent_hash: bytes, timestamp: int, transactions: Sequence[BareTransaction]
) -> SealedBlock:
    """Return a block of these transactions with its true hash and roots."""
    receipts = [
        receipt_bytes(_receipt_row(number, index, each), [log.row for log in each.logs])
        for index, each in enumerate(transactions)
    ]
    row: Answer = dict.fromkeys(tables.BLOCKS.names)
    row |= {
        "number": number,
        "parent_hash": parent_hash,
        "timestamp": timestamp,
        "logs_bloom": bloom_of_logs([log.row for each in transactions for log in each.logs]),
        "transactions_root": trie_root([raw_transaction(each.name) for each in transactions]),
        "receipts_root": trie_root(receipts),
        "gas_limit": 30_000_000,
        "gas_used": _GAS * len(transactions),
        "difficulty": Decimal(0),
        "base_fee_per_gas": Decimal(7),
        "extra_data": b"",
        "nonce": bytes(8),
        "miner": bytes(20),
        **dict.fromkeys(("sha3_uncles", "state_root", "mix_hash"), bytes(32)),
    }
    block_hash = keccak256(header_bytes(row))
    header = {
        _json_name(name): _json_value(value) for name, value in row.items() if value is not None
    }
    return SealedBlock(
        header | {"hash": hex0x(block_hash)},
        tuple(
            _transaction(each, index, number, block_hash) for index, each in enumerate(transactions)
        ),
        tuple(_receipts(transactions, number, block_hash)),
    )


@cache
def raw_transaction(name: str) -> bytes:
    """The signed bytes of the transaction of that name."""
    row: Answer = dict.fromkeys(tables.TRANSACTIONS.names)
    return transaction_bytes(
        row
        | {
            "type": 0,
            "block_number": 0,
            "transaction_index": 0,
            "nonce": Decimal(0),
            "gas_price": Decimal(7),
            "gas_limit": _GAS,
            "to_address": TARGET,
            "value": Decimal(0),
            "input": name.encode(),
            "v": Decimal(27),
            "r": bytes(31) + b"\x01",
            "s": bytes(31) + b"\x02",
        }
    )


def _receipt_row(number: int, index: int, transaction: BareTransaction) -> Answer:
    row: Answer = dict.fromkeys(tables.RECEIPTS.names)
    place = {"block_number": number, "transaction_index": index, "type": 0}
    return row | place | {"status": 1, "cumulative_gas_used": _GAS * (index + 1)}


def _place(number: int, block_hash: bytes, index: int) -> Answer:
    return {
        "blockNumber": hex(number),
        "blockHash": hex0x(block_hash),
        "transactionIndex": hex(index),
    }


def _transaction(
    transaction: BareTransaction, index: int, number: int, block_hash: bytes
) -> Answer:
    return _place(number, block_hash, index) | {
        "hash": hex0x(transaction.hash),
        "type": "0x0",
        "nonce": "0x0",
        "gasPrice": "0x7",
        "gas": hex(_GAS),
        "from": hex0x(SENDER),
        "to": hex0x(TARGET),
        "value": "0x0",
        "input": hex0x(transaction.name.encode()),
        "v": "0x1b",
        "r": "0x1",
        "s": "0x2",
    }


def _receipts(
    transactions: Sequence[BareTransaction], number: int, block_hash: bytes
) -> list[Answer]:
    receipts = []
    log_index = 0
    for index, transaction in enumerate(transactions):
        place = _place(number, block_hash, index) | {"transactionHash": hex0x(transaction.hash)}
        logs = []
        for log in transaction.logs:
            shown = {
                "address": hex0x(log.address),
                "topics": [hex0x(topic) for topic in log.topics],
                "data": hex0x(log.data),
                "logIndex": hex(log_index),
                "removed": False,
            }
            logs.append(place | shown)
            log_index += 1
        receipts.append(
            place
            | {
                "type": "0x0",
                "status": "0x1",
                "from": hex0x(SENDER),
                "to": hex0x(TARGET),
                "contractAddress": None,
                "gasUsed": hex(_GAS),
                "cumulativeGasUsed": hex(_GAS * (index + 1)),
                "effectiveGasPrice": "0x7",
                "logsBloom": hex0x(bloom_of_logs([log.row for log in transaction.logs])),
                "logs": logs,
            }
        )
    return receipts


def _json_name(column: str) -> str:
    first, *others = column.split("_")
    return first + "".join(map(str.capitalize, others))


def _json_value(value: Any) -> str:
    return hex0x(value) if isinstance(value, bytes) else hex(int(value))

"""A chain export whose hashes, signatures and roots are real: all hang on its last block."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.audit.exports.administration import CONTRACTS
from benchmarks.audit.exports.batch import Batch, log_data, make_batch
from benchmarks.audit.exports.columns import Bytes
from benchmarks.audit.exports.generate import chain_manifest
from benchmarks.audit.exports.shape import Blocks, Shape, hash_of, time_of
from chainkit.contracts.interface import shipped_interface
from chainkit.ethereum import (
    bloom_of_logs,
    header_bytes,
    receipt_bytes,
    signing_hash,
    transaction_bytes,
    trie_root,
)
from chainkit.exports import ExportFolder, tables
from chainkit.protocol.events import IDENTITY_UPDATE_CREATED_TOPIC, MESSAGE_SENT_TOPIC
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import HASH_LENGTH

_PAYER: Final = SigningKey(keccak256(b"benchmark payer"))
_PAYER_ADDRESS: Final = keccak256(_PAYER.public_key[1:])[-20:]
_CHAIN_ID: Final = 31337
_BASE_FEE: Final = 10**9
_GAS: Final = 90_000
_EMPTY_ROOT: Final = trie_root([])
_ZEROS: Final = bytes(HASH_LENGTH)

Row = dict[str, Any]


def generate_proved(directory: Path, shape: Shape) -> bytes:
    """Write a chain's export and return the hash of its last block.

    Raises StoreError where the folder holds anything else.
    """
    parent_hash = hash_of(0)
    files: dict[str, Mapping[str, Any]] = {}
    with ExportFolder(directory, "chain", tables.CHAIN_TABLES) as folder:
        for blocks in shape.ranges():
            rows: dict[str, list[Row]] = {name: [] for name in tables.CHAIN_TABLES}
            for number in range(blocks.first, blocks.last + 1):
                block = _sealed(shape, number, parent_hash)
                parent_hash = block["blocks"][0]["hash"]
                for name, more in block.items():
                    rows[name] += more
            place = {"from_block": blocks.first, "to_block": blocks.last}
            for name, schema in tables.CHAIN_TABLES.items():
                held = [tuple(row[column] for column in schema.names) for row in rows[name]]
                chunks = [held] if held else []
                file, about = folder.write(f"{name}/{blocks.name}", schema, chunks, True)
                files[file] = about | place | {"finished": True}
        folder.publish(chain_manifest(shape, files, parent_hash))
    return parent_hash


def _sealed(shape: Shape, number: int, parent_hash: bytes) -> dict[str, list[Row]]:
    """Return the rows of one block, which all get its hash when everything else is known."""
    batch = make_batch(shape, Blocks(number, number))
    transactions = [_transaction(batch, index) for index in range(len(batch))]
    receipts = [_receipt(row) for row in transactions]
    logs = [_log(batch, data, row) for data, row in zip(log_data(batch), transactions, strict=True)]
    encoded = [receipt_bytes(row, [log]) for row, log in zip(receipts, logs, strict=True)]
    block: Row = dict.fromkeys(tables.BLOCKS.names)
    block |= {
        "number": number,
        "parent_hash": parent_hash,
        "sha3_uncles": keccak256(b"\xc0"),
        "miner": bytes(20),
        "state_root": _ZEROS,
        "transactions_root": trie_root([transaction_bytes(row) for row in transactions]),
        "receipts_root": trie_root(encoded),
        "logs_bloom": bloom_of_logs(logs),
        "difficulty": 0,
        "gas_limit": 2 * _GAS * shape.rows_per_block,
        "gas_used": _GAS * len(batch),
        "timestamp": time_of(number),
        "extra_data": b"",
        "mix_hash": _ZEROS,
        "nonce": bytes(8),
        "base_fee_per_gas": _BASE_FEE,
        "withdrawals_root": _EMPTY_ROOT,
        "blob_gas_used": 0,
        "excess_blob_gas": 0,
        "parent_beacon_block_root": _ZEROS,
        "transaction_count": len(batch),
    }
    block["hash"] = keccak256(header_bytes(block))
    for row in (*transactions, *receipts, *logs):
        row["block_hash"] = block["hash"]
    return {"blocks": [block], "transactions": transactions, "receipts": receipts, "logs": logs}


def _transaction(batch: Batch, index: int) -> Row:
    is_update = bool(batch.content.are_updates[index])
    name = "IdentityUpdates" if is_update else "GroupMessages"
    function = "addIdentityUpdate" if is_update else "addMessage"
    arguments = batch.content.identifiers[index], batch.content.payloads[index]
    row: Row = dict.fromkeys(tables.TRANSACTIONS.names)
    row |= {
        "block_number": int(batch.block_numbers[index]),
        "transaction_index": index,
        "type": 2,
        "chain_id": _CHAIN_ID,
        "nonce": int(batch.sequence_ids[index]) - 1,
        "from_address": _PAYER_ADDRESS,
        "to_address": CONTRACTS[name],
        "value": 0,
        "input": shipped_interface(name).encode(function, *(each.tobytes() for each in arguments)),
        "gas_limit": 2 * _GAS,
        "max_fee_per_gas": 2 * _BASE_FEE,
        "max_priority_fee_per_gas": 1,
        "access_list": [],
    }
    signature = _PAYER.sign(signing_hash(row))
    row |= {"r": signature[:32], "s": signature[32:64], "v": signature[64]}
    row["transaction_hash"] = keccak256(transaction_bytes(row))
    return row


def _receipt(transaction: Row) -> Row:
    names = ("block_number", "transaction_hash", "transaction_index", "type", "to_address")
    row: Row = dict.fromkeys(tables.RECEIPTS.names)
    return row | {
        **{name: transaction[name] for name in (*names, "from_address")},
        "status": 1,
        "gas_used": _GAS,
        "cumulative_gas_used": _GAS * (1 + transaction["transaction_index"]),
        "effective_gas_price": _BASE_FEE + 1,
    }


def _log(batch: Batch, data: Bytes, transaction: Row) -> Row:
    index = transaction["transaction_index"]
    is_update = bool(batch.content.are_updates[index])
    names = ("block_number", "transaction_hash", "transaction_index")
    return {
        **{name: transaction[name] for name in names},
        "log_index": index,
        "address": transaction["to_address"],
        "topics": [IDENTITY_UPDATE_CREATED_TOPIC if is_update else MESSAGE_SENT_TOPIC],
        "data": data.tobytes(),
    }

"""Small chain exports whose hashes, signatures, roots and blooms are real: all hang on the last.

::

    chain = proved_chain(sent_of(base_posts(), [registered(100)]))
    chain.write(tmp_path / "chain")
    chain.head_hash, chain.rows["logs"], chain.transaction_of(3)

A test that tampers changes ``chain.rows``, or a file that was written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chainkit.ethereum import (
    bloom_of_logs,
    create_address,
    header_bytes,
    receipt_bytes,
    signing_hash,
    transaction_bytes,
    trie_root,
)
from chainkit.exports import ExportFolder, Manifest, tables
from chainkit.exports.tables import CHAIN_TABLES
from chainkit.signatures import SigningKey, keccak256
from support.audit.audit_exports import (
    FIRST_BLOCK,
    GENESIS,
    GROUP_MESSAGES,
    IDENTITY_UPDATES,
    LAST_BLOCK,
    NODE_REGISTRY,
    Post,
    Row,
    payload_log,
    time_of,
    transaction_row,
)

CHAIN_ID = 31337
PAYER = SigningKey(keccak256(b"payer"))
COUNCIL = SigningKey(keccak256(b"council"))
BASE_FEE, TIP = 10**9, 1
DEPOSIT = 0x7E

EMPTY_ROOT = trie_root([])
NO_UNCLES = keccak256(b"\xc0")
NO_REQUESTS = bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")

_FEES = {"max_fee_per_gas": 2 * BASE_FEE, "max_priority_fee_per_gas": TIP, "access_list": []}
_BY_TYPE: Mapping[int, Row] = {
    0: {"gas_price": 2 * BASE_FEE},
    1: {"gas_price": 2 * BASE_FEE, "access_list": []},
    2: _FEES,
    3: _FEES | {"max_fee_per_blob_gas": 7, "blob_versioned_hashes": [b"\x01" + b"\x0b" * 31]},
    4: _FEES,
    DEPOSIT: {"source_hash": keccak256(b"source"), "is_system_transaction": False},
}


@dataclass(frozen=True)
class Emitted:
    """A log, without its place."""

    address: bytes = GROUP_MESSAGES
    topics: tuple[bytes, ...] = ()
    data: bytes = b""


@dataclass(frozen=True)
class Sent:
    """A transaction and its effects; a block's transactions are mined in their order."""

    block: int
    to: bytes | None = GROUP_MESSAGES
    input: bytes = b""
    type: int = 2
    sender: SigningKey | bytes = PAYER
    """The bytes of an address where nobody signs."""
    logs: tuple[Emitted, ...] = ()
    gas: int = 50_000
    status: int = 1
    columns: Mapping[str, Any] = field(default_factory=dict)
    """Columns of the transaction that are not as usual."""
    receipt: Mapping[str, Any] = field(default_factory=dict)
    """The same for its receipt."""
    sequence_ids: tuple[int, ...] = ()
    """Sequences of the transaction's payloads."""


def sent_of(posts: Sequence[Post], registry: Sequence[Row] = ()) -> list[Sent]:
    """The transactions that bring posts, one for each or for those that name the same one, after
    those with the NodeUpdated logs of a registry."""
    updates: dict[tuple[int, bytes], list[Row]] = defaultdict(list)
    for log in registry:
        updates[log["block_number"], log["transaction_hash"]].append(log)
    payloads: dict[bytes, list[Post]] = defaultdict(list)
    for post in posts:
        payloads[post.transaction_hash].append(post)
    return [
        *(
            Sent(block, NODE_REGISTRY, sender=COUNCIL, logs=tuple(map(_emitted, logs)))
            for (block, _), logs in updates.items()
        ),
        *map(_of_payloads, payloads.values()),
    ]


def _of_payloads(posts: Sequence[Post]) -> Sent:
    return Sent(
        posts[0].block,
        IDENTITY_UPDATES if posts[0].is_update else GROUP_MESSAGES,
        transaction_row(posts[0])["input"],
        logs=tuple(_emitted(payload_log(post)) for post in posts),
        gas=posts[0].gas,
        sequence_ids=tuple(post.sequence_id for post in posts),
    )


def _emitted(log: Row) -> Emitted:
    return Emitted(log["address"], tuple(log["topics"]), log["data"])


def every_kind(block: int = FIRST_BLOCK) -> list[Sent]:
    """A transaction of every type that can be proved, and of every kind of receipt, in two blocks:
    the second is a rollup's, in which there is a deposit, and a fee to layer 1."""
    log, other = Emitted(topics=(b"\x01" * 32, b"\x02" * 32), data=b"data"), Emitted(b"\x77" * 20)
    access_list = [{"address": b"\xac" * 20, "storage_keys": [b"\x05" * 32]}]
    delegation = {
        "chain_id": CHAIN_ID.to_bytes(32, "big"),
        "address": b"\xde" * 20,
        "nonce": 7,
        "y_parity": 1,
        "r": b"\x0a" * 32,
        "s": b"\x00" + b"\x0b" * 31,
    }
    layer_1 = {
        **{"l1_fee": 5, "l1_gas_used": 6, "l1_gas_price": 7, "l1_fee_scalar": "0.5"},
        **{"l1_base_fee_scalar": 8, "l1_blob_base_fee": 9, "l1_blob_base_fee_scalar": 10},
    }
    deposit = {"deposit_nonce": 3, "deposit_receipt_version": 1}
    return [
        Sent(block, type=0, input=b"legacy", logs=(log, other)),
        Sent(block, type=0, columns={"chain_id": None}),
        Sent(block, type=1, columns={"access_list": access_list}, logs=(log,)),
        Sent(block, input=b"fees", columns={"value": 10**30 + 1}, logs=(other, log)),
        Sent(block, to=None, input=b"code", logs=(other,)),
        Sent(block, input=b"fails", status=0),
        Sent(block, type=3),
        Sent(block, type=4, columns={"authorization_list": [delegation]}, logs=(log,)),
        Sent(
            block + 1,
            type=DEPOSIT,
            sender=b"\xd0" * 20,
            logs=(log,),
            columns={"mint": 10**20, "nonce": 3},
            receipt=deposit,
        ),
        Sent(
            block + 1,
            to=None,
            type=DEPOSIT,
            sender=b"\xd1" * 20,
            columns={"nonce": 3, "source_hash": keccak256(b"another")},
            receipt=deposit,
        ),
        Sent(block + 1, input=b"on a rollup", logs=(other,), receipt=layer_1),
    ]


@dataclass(frozen=True)
class ProvedChain:
    """Rows of the four tables, in their order; integers are ints."""

    rows: dict[str, list[Row]]
    transactions: Mapping[int, bytes]
    """Sequence id to the hash of the transaction that brought it."""

    @property
    def first_block(self) -> int:
        return int(self.rows["blocks"][0]["number"])

    @property
    def last_block(self) -> int:
        return int(self.rows["blocks"][-1]["number"])

    @property
    def head_hash(self) -> bytes:
        return self.hash_of(self.last_block)

    def hash_of(self, number: int) -> bytes:
        return bytes(self.rows["blocks"][number - self.first_block]["hash"])

    def transaction_of(self, sequence_id: int) -> bytes:
        return self.transactions[sequence_id]

    def block(self, number: int) -> dict[str, list[Row]]:
        """The rows of one block."""
        return {
            table: [row for row in rows if row[number_column(table)] == number]
            for table, rows in self.rows.items()
        }

    def write(self, directory: Path, blocks_per_file: int | None = None, **about: Any) -> Path:
        """Write an export, in one file per table or in ranges; ``about`` overrides what its
        manifest says."""
        about = self._manifest() | about
        first, last = about["from_block"], about["to_block"]
        with ExportFolder(directory, "chain", CHAIN_TABLES) as folder:
            files = {}
            for start in range(first, last + 1, blocks_per_file or last - first + 1):
                end = min(start + (blocks_per_file or last) - 1, last)
                for table, schema in CHAIN_TABLES.items():
                    rows = self.rows[table]
                    name, span = table, {}
                    if blocks_per_file is not None:
                        name = f"{table}/{start:012}-{end:012}"
                        span = {"from_block": start, "to_block": end, "finished": True}
                        numbers, column = range(start, end + 1), number_column(table)
                        rows = [row for row in rows if row[column] in numbers]
                    chunk = [tuple(row[column] for column in schema.names) for row in rows]
                    file, held = folder.write(name, schema, [chunk] if chunk else [], True)
                    files[file] = held | span
            folder.publish(Manifest(files=files, **about))
        return directory

    def _manifest(self) -> Row:
        held = sorted(self.transactions)
        return {
            "kind": "chain",
            "chain_id": CHAIN_ID,
            "genesis_hash": "0x" + GENESIS.hex(),
            "contracts": {
                "GroupMessages": "0x" + GROUP_MESSAGES.hex(),
                "IdentityUpdates": "0x" + IDENTITY_UPDATES.hex(),
                "NodeRegistry": "0x" + NODE_REGISTRY.hex(),
            },
            "from_block": self.first_block,
            "to_block": self.last_block,
            "to_block_hash": "0x" + self.head_hash.hex(),
            "first_block": self.first_block,
            "sequence_before": min(held, default=1) - 1,
            "sequence_after": max(held, default=0),
        }


def number_column(table: str) -> str:
    return "number" if table == "blocks" else "block_number"


def proved_chain(
    sent: Sequence[Sent],
    from_block: int = FIRST_BLOCK,
    to_block: int = LAST_BLOCK,
    parent_hash: bytes = GENESIS,
    **header: Any,
) -> ProvedChain:
    """A chain of the blocks of a range; ``header`` overrides columns of every header."""
    rows: dict[str, list[Row]] = {table: [] for table in CHAIN_TABLES}
    nonces: dict[bytes, int] = defaultdict(int)
    hashes: dict[int, bytes] = {}
    for number in range(from_block, to_block + 1):
        held = [each for each in sent if each.block == number]
        block = _sealed(number, parent_hash, held, nonces, header)
        parent_hash = block["blocks"][0]["hash"]
        for table, more in block.items():
            rows[table] += more
        for each, row in zip(held, block["transactions"], strict=True):
            hashes |= dict.fromkeys(each.sequence_ids, row["transaction_hash"])
    return ProvedChain(rows, hashes)


def _sealed(
    number: int,
    parent_hash: bytes,
    sent: Sequence[Sent],
    nonces: dict[bytes, int],
    header: Mapping[str, Any],
) -> dict[str, list[Row]]:
    """The rows of one block, which all get its hash when everything else is known."""
    transactions = [_signed(each, index, nonces) for index, each in enumerate(sent)]
    receipts: list[Row] = []
    logs: list[Row] = []
    encoded: list[bytes] = []
    for each, transaction in zip(sent, transactions, strict=True):
        before = receipts[-1]["cumulative_gas_used"] if receipts else 0
        receipts.append(_receipt(each, transaction, before))
        place = {name: transaction[name] for name in _PLACE}
        own = [
            place | {"log_index": len(logs) + nth, **vars(log), "topics": list(log.topics)}
            for nth, log in enumerate(each.logs)
        ]
        encoded.append(receipt_bytes(receipts[-1], own))
        logs += own
    block: Row = dict.fromkeys(tables.BLOCKS.names)
    block |= {
        **{"number": number, "parent_hash": parent_hash, "sha3_uncles": NO_UNCLES},
        **{"miner": b"\x4d" * 20, "state_root": keccak256(b"state %d" % number)},
        "transactions_root": trie_root([transaction_bytes(row) for row in transactions]),
        "receipts_root": trie_root(encoded),
        "logs_bloom": bloom_of_logs(logs),
        **{"difficulty": 0, "gas_limit": 30_000_000},
        "gas_used": receipts[-1]["cumulative_gas_used"] if receipts else 0,
        **{"timestamp": time_of(number), "extra_data": b"extra", "mix_hash": b"\x3c" * 32},
        **{"nonce": b"\x00" * 8, "base_fee_per_gas": BASE_FEE, "withdrawals_root": EMPTY_ROOT},
        **{"blob_gas_used": 0, "excess_blob_gas": 0, "parent_beacon_block_root": b"\xbe" * 32},
        **{"requests_hash": NO_REQUESTS, "transaction_count": len(sent)},
        **header,
    }
    block["hash"] = keccak256(header_bytes(block))
    for row in (*transactions, *receipts, *logs):
        row["block_hash"] = block["hash"]
    return {"blocks": [block], "transactions": transactions, "receipts": receipts, "logs": logs}


_PLACE = ("block_number", "block_hash", "transaction_hash", "transaction_index")


def _signed(sent: Sent, index: int, nonces: dict[bytes, int]) -> Row:
    key = sent.sender
    address = key if isinstance(key, bytes) else keccak256(key.public_key[1:])[-20:]
    row: Row = dict.fromkeys(tables.TRANSACTIONS.names)
    row |= {
        **{"block_number": sent.block, "transaction_index": index, "type": sent.type},
        **{"nonce": nonces[address], "from_address": address, "to_address": sent.to},
        **{"value": 0, "input": sent.input, "gas_limit": 2 * sent.gas},
        **_BY_TYPE[sent.type],
    }
    if isinstance(key, SigningKey):
        nonces[address] += 1
        row["chain_id"] = CHAIN_ID
    row |= sent.columns
    if isinstance(key, SigningKey):
        is_for_a_chain = row["chain_id"] is not None
        row["v"] = 35 + 2 * CHAIN_ID if is_for_a_chain else 27
        signature = key.sign(signing_hash(row))
        row |= {"r": signature[:32], "s": signature[32:64]}
        row["v"] = signature[64] + (row["v"] if sent.type == 0 else 0)
    row["transaction_hash"] = keccak256(transaction_bytes(row))
    return row


def _receipt(sent: Sent, transaction: Row, gas_before: int) -> Row:
    row: Row = dict.fromkeys(tables.RECEIPTS.names)
    row |= {name: transaction[name] for name in (*_PLACE, "type", "from_address", "to_address")}
    row |= {
        **{"status": sent.status, "gas_used": sent.gas},
        "cumulative_gas_used": gas_before + sent.gas,
        "effective_gas_price": _price(transaction),
    }
    if sent.to is None:
        row["contract_address"] = create_address(transaction["from_address"], transaction["nonce"])
    return row | sent.receipt


def _price(transaction: Row) -> int:
    if transaction["type"] == DEPOSIT:
        return 0
    return int(transaction["gas_price"] or BASE_FEE + TIP)

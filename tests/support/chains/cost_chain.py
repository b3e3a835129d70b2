"""Chain exports for costs: blocks, and transactions of every kind that an auditor may meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import eth_abi

from chainkit.exports import tables
from chainkit.exports.tables import CHAIN_TABLES
from chainkit.protocol.events import IDENTITY_UPDATE_CREATED_TOPIC, MESSAGE_SENT_TOPIC
from chainkit.signatures import keccak256
from support.audit.audit_exports import GENESIS, block_row, hash_of, log_row
from support.audit.export_folders import write_folder

CONTRACTS = {
    "GroupMessages": b"\x11" * 20,
    "IdentityUpdates": b"\x22" * 20,
    "NodeRegistry": b"\x33" * 20,
}
STRANGER = b"\x99" * 20
PAYER = b"\x44" * 20
GROUP = bytes(range(1, 33))
START = 1_700_000_000

Row = dict[str, Any]


def call_data(signature: str, *values: Any) -> bytes:
    inside = signature[signature.index("(") + 1 : -1]
    types = [part for part in inside.split(",") if part]
    return keccak256(signature.encode())[:4] + eth_abi.encode(types, values)


@dataclass(frozen=True)
class Sent:
    """A message in a transaction."""

    contract: str
    payload: bytes
    sequence_id: int

    def log(self, block: int, transaction: bytes) -> Row:
        is_group = self.contract == "GroupMessages"
        topic = MESSAGE_SENT_TOPIC if is_group else IDENTITY_UPDATE_CREATED_TOPIC
        values = (GROUP, self.payload, self.sequence_id)
        data = eth_abi.encode(("bytes32", "bytes", "uint64"), values)
        address = CONTRACTS[self.contract]
        return log_row(address, topic, data, block, transaction, self.sequence_id)


@dataclass(frozen=True)
class Paid:
    """A transaction, its receipt and its logs."""

    number: int
    block: int
    to: bytes | None
    data: bytes = b""
    gas: int = 50_000
    price: int = 10**9
    payer: bytes = PAYER
    status: int = 1
    created: bytes | None = None
    l1_fee: int | None = None
    l1_gas: int | None = None
    sent: tuple[Sent, ...] = ()
    emits: tuple[str, ...] = ()
    """Names of contracts that emit a log that is no message."""

    @property
    def hash(self) -> bytes:
        return keccak256(f"paid {self.number}".encode())

    @property
    def place(self) -> Row:
        return {
            "block_number": self.block,
            "block_hash": hash_of(self.block),
            "transaction_hash": self.hash,
            "transaction_index": self.number,
            "type": 2,
            "from_address": self.payer,
            "to_address": self.to,
        }

    def transaction(self) -> Row:
        row: Row = dict.fromkeys(tables.TRANSACTIONS.names)
        about = {"nonce": Decimal(self.number), "value": Decimal(0), "gas_limit": self.gas}
        return row | self.place | about | {"input": self.data}

    def receipt(self) -> Row:
        row: Row = dict.fromkeys(tables.RECEIPTS.names)
        fee = None if self.l1_fee is None else Decimal(self.l1_fee)
        amounts = {
            "status": self.status,
            "contract_address": self.created,
            "gas_used": self.gas,
            "cumulative_gas_used": self.gas,
            "effective_gas_price": Decimal(self.price),
            "l1_fee": fee,
            "gas_used_for_l1": self.l1_gas,
        }
        return row | self.place | amounts

    def logs(self) -> list[Row]:
        others = [
            log_row(CONTRACTS[name], keccak256(b"Other()"), b"", self.block, self.hash, 10**6 + n)
            for n, name in enumerate(self.emits)
        ]
        return [sent.log(self.block, self.hash) for sent in self.sent] + others


def post(number: int, block: int, payload: bytes, **changes: Any) -> Paid:
    """A message to GroupMessages, sent straight; its sequence id is the transaction's number."""
    contract = changes.pop("contract", "GroupMessages")
    function = "addMessage" if contract == "GroupMessages" else "addIdentityUpdate"
    values: Row = {
        "to": CONTRACTS[contract],
        "data": call_data(f"{function}(bytes32,bytes)", GROUP, payload),
        "sent": (Sent(contract, payload, number),),
    }
    return Paid(number, block, **(values | changes))


def block(number: int, timestamp: int, gas_limit: int = 30_000_000, gas_used: int = 0) -> Row:
    amounts = {"timestamp": timestamp, "gas_limit": gas_limit, "gas_used": gas_used}
    return block_row(number) | amounts


def write_cost_chain(
    directory: Path,
    blocks: Sequence[Row],
    paid: Sequence[Paid],
    chunks: int = 1,
    change: Mapping[str, Any] | None = None,
) -> Path:
    """Write a chain export; ``change`` replaces whole tables, ``chunks`` are row groups of each."""
    rows: dict[str, list[Row]] = {
        "blocks": list(blocks),
        "transactions": [each.transaction() for each in paid],
        "receipts": [each.receipt() for each in paid],
        "logs": [log for each in paid for log in each.logs()],
    } | dict(change or {})
    last = blocks[-1]["number"]
    groups = {name: [table[n::chunks] for n in range(chunks)] for name, table in rows.items()}
    write_folder(
        directory,
        CHAIN_TABLES,
        groups,
        kind="chain",
        chain_id=31337,
        genesis_hash="0x" + GENESIS.hex(),
        contracts={name: "0x" + address.hex() for name, address in CONTRACTS.items()},
        from_block=blocks[0]["number"],
        to_block=last,
        to_block_hash="0x" + hash_of(last).hex(),
    )
    return directory

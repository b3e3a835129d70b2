"""The header of a block, whose keccak256 is the block's hash (yellow paper, section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import dropwhile
from typing import Final

from chainkit.ethereum.decoded import bytes_of, decoded_items, integer_of
from chainkit.ethereum.row import (
    ADDRESS,
    BLOOM,
    BYTES,
    HASH,
    INTEGER,
    POW_NONCE,
    Column,
    Row,
    encoded,
)
from chainkit.signatures import keccak256
from chainkit.types import HASH_LENGTH, BlockHeader

FIRST_HEADER_COLUMNS: Final = (
    Column("parent_hash", HASH),
    Column("sha3_uncles", HASH),
    Column("miner", ADDRESS),
    Column("state_root", HASH),
    Column("transactions_root", HASH),
    Column("receipts_root", HASH),
    Column("logs_bloom", BLOOM),
    Column("difficulty", INTEGER),
    Column("number", INTEGER),
    Column("gas_limit", INTEGER),
    Column("gas_used", INTEGER),
    Column("timestamp", INTEGER),
    Column("extra_data", BYTES),
    Column("mix_hash", HASH),
    Column("nonce", POW_NONCE),
)
"""Fields that every header has, in their order."""

HEADER_COLUMNS_BY_HARDFORK: Final = {
    "London": (Column("base_fee_per_gas", INTEGER),),  # EIP-1559
    "Shanghai": (Column("withdrawals_root", HASH),),  # EIP-4895
    "Cancun": (
        Column("blob_gas_used", INTEGER),  # EIP-4844
        Column("excess_blob_gas", INTEGER),
        Column("parent_beacon_block_root", HASH),  # EIP-4788
    ),
    "Prague": (Column("requests_hash", HASH),),  # EIP-7685
    "Amsterdam": (
        Column("block_access_list_hash", HASH),  # EIP-7928
        Column("slot_number", INTEGER),  # EIP-7843
    ),
}
"""Fields that follow since a hardfork: each one appended, so a header has the first few only."""

LATER_HEADER_COLUMNS: Final = tuple(
    column for columns in HEADER_COLUMNS_BY_HARDFORK.values() for column in columns
)
"""The same fields, in the order of the header."""

_NAMES: Final = tuple(column.name for column in (*FIRST_HEADER_COLUMNS, *LATER_HEADER_COLUMNS))


@dataclass(frozen=True, slots=True)
class DecodedHeader:
    """The part of an encoded header by which the rest of its block is proved."""

    header: BlockHeader
    """With the hash that the bytes have."""
    transactions_root: bytes
    """32 bytes."""
    receipts_root: bytes
    """32 bytes."""


def header_bytes(block: Row) -> bytes:
    """Return the RLP of a row of blocks. Its keccak256 is the hash of the block.

    One rule serves Ethereum, OP-stack and Arbitrum chains: a header has the fields whose columns
    are not null. Raises Unprovable, naming the column, where a field is null that every header has,
    or that a header with a later field has; MalformedData where a value does not fit its column.
    """
    last_first = dropwhile(
        lambda column: block[column.name] is None, reversed(LATER_HEADER_COLUMNS)
    )
    columns = (*FIRST_HEADER_COLUMNS, *reversed(list(last_first)))
    return encoded([column.item(block, _subject) for column in columns])


def decode_header(data: bytes) -> DecodedHeader:
    """Decode the RLP of a header, as header_bytes makes it. Raises MalformedData for anything else.

    Fields that a future hardfork appends are refused: their meaning is not known.
    """
    subject = "header"
    items = decoded_items(data, subject, _NAMES)
    return DecodedHeader(
        BlockHeader(
            number=integer_of(items, "number", subject),
            hash=keccak256(data),
            parent_hash=bytes_of(items, "parent_hash", subject, HASH_LENGTH),
            timestamp=integer_of(items, "timestamp", subject),
        ),
        transactions_root=bytes_of(items, "transactions_root", subject, HASH_LENGTH),
        receipts_root=bytes_of(items, "receipts_root", subject, HASH_LENGTH),
    )


def _subject(block: Row) -> str:
    return f"block {block['number']}"

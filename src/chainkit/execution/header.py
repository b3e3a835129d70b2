"""The header of a block: what its hash is the keccak256 of (yellow paper, section 4.3)."""

from __future__ import annotations

from itertools import dropwhile
from typing import Final

from chainkit.execution.row import ADDRESS, BYTES, HASH, INTEGER, Column, Row, encoded, fixed

_ALWAYS: Final = (
    Column("parent_hash", HASH),
    Column("sha3_uncles", HASH),
    Column("miner", ADDRESS),
    Column("state_root", HASH),
    Column("transactions_root", HASH),
    Column("receipts_root", HASH),
    Column("logs_bloom", fixed(256)),
    Column("difficulty", INTEGER),
    Column("number", INTEGER),
    Column("gas_limit", INTEGER),
    Column("gas_used", INTEGER),
    Column("timestamp", INTEGER),
    Column("extra_data", BYTES),
    Column("mix_hash", HASH),
    Column("nonce", fixed(8)),
)

# Each hardfork only ever appended, so that a header has the first few of them and no others.
_SINCE_A_HARDFORK: Final = (
    Column("base_fee_per_gas", INTEGER),  # London, EIP-1559
    Column("withdrawals_root", HASH),  # Shanghai, EIP-4895
    Column("blob_gas_used", INTEGER),  # Cancun, EIP-4844
    Column("excess_blob_gas", INTEGER),
    Column("parent_beacon_block_root", HASH),  # Cancun, EIP-4788
    Column("requests_hash", HASH),  # Prague, EIP-7685
)


def header_bytes(block: Row) -> bytes:
    """Return the RLP of a row of blocks. Its keccak256 is the hash of the block.

    One rule serves Ethereum, OP-stack and Arbitrum chains: which fields a header has shows in
    which columns are not null. Raises Unprovable, naming the column, where a field is null that
    every header has, or that a header with a later one has; MalformedData where a value is none
    of its column.
    """
    last_first = dropwhile(lambda column: block[column.name] is None, reversed(_SINCE_A_HARDFORK))
    columns = (*_ALWAYS, *reversed(list(last_first)))
    return encoded([column.item(block, _subject) for column in columns])


def _subject(block: Row) -> str:
    return f"block {block['number']}"

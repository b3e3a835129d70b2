"""The columns of the ethereum-etl family that are read, and their possible types in a file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

import pyarrow as pa

FILE: Final = "source file"
"""The column of a source's frame that holds the name of the row's file."""
CORRUPT: Final = "corrupt line"
"""The column that holds a line of text which is no whole row, else null."""


class Kind(Enum):
    """The kind of a source's column. The value is for people."""

    TEXT = "string"
    NUMBER = "integer, decimal or string of digits"
    TIME = "timestamp in microseconds or milliseconds"
    LIST = "list of strings"
    FLAG = "bool"

    def accepts(self, type_: pa.DataType) -> bool:
        """Return whether a Parquet file may hold the column in this type, as plain_type."""
        types = pa.types
        is_text = bool(types.is_string(type_))
        match self:
            case Kind.TEXT:
                return is_text
            case Kind.NUMBER:
                is_exact = types.is_signed_integer(type_) or types.is_decimal128(type_)
                return is_text or bool(is_exact)
            case Kind.TIME:
                return bool(types.is_timestamp(type_)) and type_.unit in ("us", "ms")
            case Kind.LIST:
                return bool(types.is_list(type_)) and Kind.TEXT.accepts(type_.value_type)
            case Kind.FLAG:
                return bool(types.is_boolean(type_))


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column that is read."""

    kind: Kind
    is_required: bool = True
    """Whether a file without the column is refused."""
    may_be_empty: bool = False
    """Whether a fine row may lack the value: JSON may then leave out the name."""


_TEXT: Final = SourceColumn(Kind.TEXT)
_NUMBER: Final = SourceColumn(Kind.NUMBER)
_ADDRESS_OR_NONE: Final = SourceColumn(Kind.TEXT, may_be_empty=True)
_NUMBER_OR_NONE: Final = SourceColumn(Kind.NUMBER, may_be_empty=True)
_LATER_NUMBER: Final = SourceColumn(Kind.NUMBER, is_required=False)

BLOCKS: Final = {
    "number": _NUMBER,
    **dict.fromkeys(("hash", "parent_hash", "nonce", "sha3_uncles", "logs_bloom"), _TEXT),
    **dict.fromkeys(("transactions_root", "state_root", "receipts_root", "miner"), _TEXT),
    "difficulty": _LATER_NUMBER,
    "extra_data": _TEXT,
    **dict.fromkeys(("gas_limit", "gas_used", "timestamp", "transaction_count"), _NUMBER),
    # A file from before a fork does not have the fork's columns.
    "base_fee_per_gas": _LATER_NUMBER,
    "withdrawals_root": SourceColumn(Kind.TEXT, is_required=False),
    **dict.fromkeys(("blob_gas_used", "excess_blob_gas"), _LATER_NUMBER),
}
"""The columns of ``blocks`` that have a canonical one."""

TRANSACTIONS: Final = {
    "hash": _TEXT,
    "nonce": _NUMBER,
    "block_hash": _TEXT,
    **dict.fromkeys(("block_number", "transaction_index"), _NUMBER),
    "from_address": _TEXT,
    "to_address": _ADDRESS_OR_NONE,
    **dict.fromkeys(("value", "gas"), _NUMBER),
    "input": _TEXT,
    **dict.fromkeys(("gas_price", "max_fee_per_gas", "max_priority_fee_per_gas"), _NUMBER_OR_NONE),
    "transaction_type": _NUMBER_OR_NONE,
    "max_fee_per_blob_gas": _LATER_NUMBER,
    "blob_versioned_hashes": SourceColumn(Kind.LIST, is_required=False),
}
"""The columns of ``transactions`` that have a canonical one."""

RECEIPT_PARTS: Final = {
    **dict.fromkeys(("cumulative_gas_used", "gas_used"), _NUMBER),
    "contract_address": _ADDRESS_OR_NONE,
    **dict.fromkeys(("status", "effective_gas_price"), _NUMBER_OR_NONE),
    **dict.fromkeys(("l1_fee", "l1_gas_used", "l1_gas_price"), _LATER_NUMBER),
}
"""Columns that only a receipt has."""

RECEIPTS: Final = {
    "transaction_hash": _TEXT,
    "transaction_index": _NUMBER,
    "block_hash": _TEXT,
    "block_number": _NUMBER,
    **RECEIPT_PARTS,
}
"""The columns of ``receipts`` that have a canonical one."""

WITH_RECEIPTS: Final = TRANSACTIONS | {
    f"receipt_{name}": column for name, column in RECEIPT_PARTS.items()
}
"""The columns of ``transactions`` where each row holds its receipt too."""

LOGS: Final = {
    "log_index": _NUMBER,
    "transaction_hash": _TEXT,
    "transaction_index": _NUMBER,
    "block_hash": _TEXT,
    "block_number": _NUMBER,
    **dict.fromkeys(("address", "data"), _TEXT),
    "topics": SourceColumn(Kind.LIST),
    # The family documents no such column; but a file copied from a node may have it.
    "removed": SourceColumn(Kind.FLAG, is_required=False),
}
"""The columns of ``logs`` that have a canonical one."""

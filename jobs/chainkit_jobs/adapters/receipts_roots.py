"""The receipts roots of blocks, computed from a source's rows: equal to the header's if complete.

A root commits to type, status, cumulative gas and logs of each receipt, whatever the hard fork.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType

from chainkit.errors import MalformedData, Unprovable
from chainkit.ethereum import receipt_bytes, trie_root
from chainkit_jobs.adapters.adapter import KEYS, SourceTables

_RECEIPT: Final = (
    *("block_number", "transaction_index", "type", "status", "gas_used", "cumulative_gas_used"),
    *("deposit_nonce", "deposit_receipt_version"),
)
_LOG: Final = ("block_number", "transaction_index", "log_index", "address", "topics", "data")


def receipts_roots(source: SourceTables, blocks: DataFrame) -> DataFrame:
    """Return the root of each of ``blocks`` (``block_number``): ``block_number``, ``made_root``.

    The root is null where the rows lack a value. Repeated rows count once.
    """

    def rows(table: str, columns: Sequence[str]) -> DataFrame:
        """Return the rows of each block as one list, null where a row of the block is marked."""
        frame: DataFrame = getattr(source, table)
        single = frame.join(blocks, "block_number", "left_semi").dropDuplicates(list(KEYS[table]))
        listed = sf.collect_list(sf.struct(*columns))
        is_clean = ~sf.max(sf.col("fault").isNotNull())
        return single.groupBy("block_number").agg(
            sf.when(is_clean, listed).alias(table), is_clean.alias(f"{table}_are_clean")
        )

    joined = (
        blocks.join(rows("receipts", _RECEIPT), "block_number", "left")
        .join(rows("logs", _LOG), "block_number", "left")
        .where("coalesce(receipts_are_clean, true) and coalesce(logs_are_clean, true)")
    )
    root = sf.udf(_root_of, BinaryType(), useArrow=False)
    return joined.select("block_number", root("receipts", "logs").alias("made_root"))


def _root_of(receipts: Sequence[Row] | None, logs: Sequence[Row] | None) -> bytes | None:
    logs_of: dict[int, list[Mapping[str, Any]]] = {}
    for log in sorted(map(_plain, logs or ()), key=lambda log: log["log_index"]):
        logs_of.setdefault(log["transaction_index"], []).append(log)
    cumulative, values = 0, []
    for row in sorted(map(_plain, receipts or ()), key=lambda row: row["transaction_index"]):
        cumulative += row["gas_used"]
        stated = row["cumulative_gas_used"]
        gas = {"cumulative_gas_used": cumulative if stated is None else stated}
        try:
            values.append(receipt_bytes(row | gas, logs_of.pop(row["transaction_index"], ())))
        except (MalformedData, Unprovable):
            return None
    # A log of a transaction without a receipt is in no root.
    return None if logs_of else trie_root(values)


def _plain(row: Row) -> dict[str, Any]:
    """Return a row with the types of a chain export's."""
    return {name: _plain_value(value) for name, value in row.asDict().items()}


def _plain_value(value: Any) -> Any:
    match value:
        case bytearray():
            return bytes(value)
        case Decimal():
            return int(value)
        case list():
            return [bytes(each) for each in value]
    return value

"""Checks whether a source's rows make a chain: every fault is named and counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from chainkit.exports.tables import CHAIN_TABLES
from chainkit_jobs.adapters.adapter import KEYS, SourceTables
from chainkit_jobs.adapters.cells import NO_FAULT, missing, quoted
from chainkit_jobs.adapters.completeness import completeness_faults
from chainkit_jobs.adapters.faults import Fault, FaultCode
from chainkit_jobs.adapters.places import count_faults, hex0x, places
from chainkit_jobs.recorded import Recorded

_FILLED_IN: Final = frozenset({"cumulative_gas_used"})
"""Columns that the import computes where a source lacks them."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The blocks that are imported, both ends included."""

    first: int
    last: int


def in_range(source: SourceTables, blocks: Bounds) -> SourceTables:
    """Return the rows of a range, and those without a known height.

    Rows that lack a required value of their table are also marked.
    """

    def cut(table: str, frame: DataFrame) -> DataFrame:
        height = sf.col(KEYS[table][0])
        marked = frame.withColumn("fault", sf.expr(_first_fault(table)))
        return marked.where(height.isNull() | height.between(blocks.first, blocks.last))

    return replace(
        source,
        blocks=cut("blocks", source.blocks),
        transactions=cut("transactions", source.transactions),
        receipts=cut("receipts", source.receipts),
        logs=cut("logs", source.logs),
    )


def _first_fault(table: str) -> str:
    required = [
        field.name
        for field in CHAIN_TABLES[table]
        if not field.nullable and field.name not in _FILLED_IN
    ]
    faults = "".join(
        f"case when {quoted(name)} is null then {missing(f'{name}: a value')} end, "
        for name in required
    )
    return f"coalesce(fault, {faults}{NO_FAULT})"


def row_faults(source: SourceTables, blocks: Bounds, record: Recorded) -> list[Fault]:
    """Check the rows of a range, which ``in_range`` returned: one Spark job per table."""
    # One job for all checks would be one plan with dozens of shuffles, and each would be planned
    # anew.
    faults = completeness_faults(source)
    for table, frame in source.items():
        if table == "receipts" and source.receipts_are_derived:
            continue
        frames = [
            wrong_cells(table, frame),
            repeated_rows(table, frame),
            foreign_rows(table, frame, record.chain_id),
        ]
        if table == "blocks":
            frames += [
                missing_blocks(frame, blocks),
                broken_links(frame),
                foreign_genesis(frame, record.genesis_hash),
            ]
        else:
            frames.append(rows_of_other_blocks(table, frame, source.blocks))
        if table == "transactions":
            frames.append(foreign_signatures(frame, record.chain_id))
        if table in ("receipts", "logs"):
            frames.append(rows_of_other_transactions(table, frame, source.transactions))
        faults += count_faults(frames)
    return faults


def wrong_cells(table: str, frame: DataFrame) -> DataFrame:
    """Return the rows that are marked."""
    return places(
        frame.where(sf.col("fault").isNotNull()),
        sf.col("fault.code"),
        table,
        sf.col("fault.expected"),
        sf.col("fault.got"),
        block=sf.col(KEYS[table][0]),
        file=sf.col("source_file"),
    )


def repeated_rows(table: str, frame: DataFrame) -> DataFrame:
    """Return the keys that occur twice: with the same row, or with other content."""
    keys = KEYS[table]
    repeated = frame.groupBy(*keys).count().where("count > 1").select(*keys)
    content = CHAIN_TABLES[table].names
    contents = (
        frame.join(repeated, list(keys), "left_semi")
        .groupBy(*content)
        .agg(sf.count("*").alias("copies"), sf.max("source_file").alias("file"))
        .groupBy(*keys)
        .agg(
            sf.count("*").alias("contents"),
            sf.sum("copies").alias("rows"),
            sf.max("file").alias("file"),
        )
    )
    key = sf.concat_ws(", ", *(sf.concat(sf.lit(f"{name} "), sf.col(name)) for name in keys))
    expected = sf.concat(sf.lit("one row of "), key)
    kinds = sf.array(
        _kind(FaultCode.CONFLICTING_ROW, sf.col("contents") - 1, "others with other content"),
        _kind(FaultCode.DUPLICATE_ROW, sf.col("rows") - sf.col("contents"), "more of the same"),
    )
    found = contents.withColumn("kind", sf.explode(kinds)).where("kind.more > 0")
    return places(
        found,
        sf.col("kind.code"),
        table,
        expected,
        sf.concat_ws(" ", "kind.more", "kind.what"),
        block=sf.col(keys[0]),
        file=sf.col("file"),
        count=sf.col("kind.more"),
    )


def _kind(code: FaultCode, more: Column, what: str) -> Column:
    return sf.struct(
        sf.lit(str(code)).alias("code"), more.alias("more"), sf.lit(what).alias("what")
    )


def missing_blocks(frame: DataFrame, blocks: Bounds) -> DataFrame:
    """Return the holes: one place where each begins and one where it ends."""
    # One row below and one above mark the outside: then a hole always has two ends.
    ends = frame.sparkSession.createDataFrame([(blocks.first - 1,), (blocks.last + 1,)], "n long")
    heights = frame.select(sf.col("number").alias("n")).dropna().union(ends).distinct()
    below = heights.select("n", sf.col("n").alias("here"))
    above = heights.select((sf.col("n") + 1).alias("n"), sf.col("n").alias("parent"))
    edges = below.join(above, "n", "full_outer").where(
        sf.col("n").between(blocks.first, blocks.last + 1)
    )
    # The two places of a hole from a to b count b + 1 and -a: together, its size.
    begins, ends_before = sf.col("here").isNull(), sf.col("parent").isNull()
    return places(
        edges.where(begins | ends_before),
        FaultCode.MISSING_BLOCK,
        "blocks",
        f"every block from {blocks.first} to {blocks.last}",
        "none of this height",
        block=sf.when(begins, sf.col("n")).otherwise(sf.col("n") - 1),
        count=sf.when(begins, -sf.col("n")).otherwise(sf.col("n")),
    )


def broken_links(frame: DataFrame) -> DataFrame:
    """Return the blocks whose parent's hash is not that of the block below."""
    parents = frame.select((sf.col("number") + 1).alias("number"), sf.col("hash").alias("parent"))
    broken = frame.join(parents, "number", "inner").where("parent_hash != parent")
    return places(
        broken,
        FaultCode.BROKEN_LINK,
        "blocks",
        sf.concat(sf.lit("parent_hash "), hex0x(sf.col("parent"))),
        hex0x(sf.col("parent_hash")),
        block=sf.col("number"),
        file=sf.col("source_file"),
    )


def rows_of_other_blocks(table: str, frame: DataFrame, blocks: DataFrame) -> DataFrame:
    """Return the rows with another block hash than the header at their height."""
    # Where two headers have one height, both hashes are accepted: the headers' check reports that.
    headers = blocks.groupBy(sf.col("number").alias("block_number")).agg(
        sf.collect_set("hash").alias("hashes")
    )
    strange = frame.join(headers, "block_number", "inner").where(_is_stranger("block_hash"))
    return places(
        strange,
        FaultCode.WRONG_BLOCK,
        table,
        sf.concat(sf.lit("block_hash "), hex0x(sf.get("hashes", sf.lit(0)))),
        hex0x(sf.col("block_hash")),
        block=sf.col("block_number"),
        file=sf.col("source_file"),
    )


def rows_of_other_transactions(table: str, frame: DataFrame, transactions: DataFrame) -> DataFrame:
    """Return the rows with another transaction hash than the transaction at their index."""
    place = ["block_number", "transaction_index"]
    hashes = transactions.groupBy(*place).agg(sf.collect_set("transaction_hash").alias("hashes"))
    strange = frame.join(hashes, place, "inner").where(_is_stranger("transaction_hash"))
    return places(
        strange,
        FaultCode.WRONG_BLOCK,
        table,
        sf.concat(sf.lit("transaction_hash "), hex0x(sf.get("hashes", sf.lit(0)))),
        hex0x(sf.col("transaction_hash")),
        block=sf.col("block_number"),
        file=sf.col("source_file"),
    )


def _is_stranger(column: str) -> Column:
    """Return whether a hash is none of ``hashes``; where these could not be read, nobody knows."""
    return (sf.size("hashes") > 0) & ~sf.array_contains("hashes", sf.col(column))


def foreign_rows(table: str, frame: DataFrame, chain_id: int) -> DataFrame:
    """Return the rows that name another chain."""
    return _foreign(table, frame, "row_chain_id", chain_id)


def foreign_signatures(transactions: DataFrame, chain_id: int) -> DataFrame:
    """Return the transactions that were signed for another chain."""
    # A row of another chain is reported already.
    rows = transactions.where(sf.col("row_chain_id").isNull())
    return _foreign("transactions", rows, "chain_id", chain_id)


def _foreign(table: str, frame: DataFrame, column: str, chain_id: int) -> DataFrame:
    return places(
        frame.where(sf.col(column) != chain_id),
        FaultCode.WRONG_CHAIN,
        table,
        f"chain id {chain_id}",
        sf.col(column),
        block=sf.col(KEYS[table][0]),
        file=sf.col("source_file"),
    )


def foreign_genesis(blocks: DataFrame, genesis_hash: bytes) -> DataFrame:
    """Return block 0 where the source has it and it is not the deployment's."""
    is_foreign = (sf.col("number") == 0) & (sf.col("hash") != sf.lit(genesis_hash))
    return places(
        blocks.where(is_foreign),
        FaultCode.WRONG_CHAIN,
        "blocks",
        f"genesis hash 0x{genesis_hash.hex()}",
        hex0x(sf.col("hash")),
        block=sf.col("number"),
        file=sf.col("source_file"),
    )

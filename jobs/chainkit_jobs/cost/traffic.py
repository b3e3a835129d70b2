"""Costs of the same messages in each variant, by payload size."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from chainkit_jobs.cost.variants import RULES, VARIANTS, column


def variant_costs(costs: DataFrame) -> DataFrame:
    """Return gas and wei of each variant and set of rules, by size class.

    ``costs`` has the columns of transactions.COSTS. Columns: variant, rules, size_from, size_below
    (null for messages that shared a transaction), messages, payload_bytes, gas, wei (at the price
    that each message's transaction paid for gas), capped, and the paid amounts: observed_gas and
    observed_wei, without the part for layer 1.
    """
    own_gas = sf.col("gas") - sf.coalesce("l1_gas", sf.lit(0).cast("long"))
    paid = costs.filter(sf.col("messages") > 0).withColumn("own_gas", own_gas)
    entries = [_entry(variant, rules) for variant in VARIANTS for rules in RULES]
    sums = paid.groupBy("size_from", "size_below").agg(
        _long("messages"),
        _long("payload_bytes"),
        _long("own_gas").alias("observed_gas"),
        sf.sum(_wei("own_gas")).cast("decimal(38,0)").alias("observed_wei"),
        *(sum_ for variant in VARIANTS for sum_ in _sums(variant)),
    )
    rows = sums.withColumn("entry", sf.explode(sf.array(*entries)))
    kept = ("size_from", "size_below", "messages", "payload_bytes")
    return rows.select("entry.*", *kept, "observed_gas", "observed_wei")


def _sums(variant: str) -> list[Column]:
    gas = [_long(column(variant, what)) for what in (*RULES, "capped")]
    wei = [
        sf.sum(_wei(column(variant, rules)))
        .cast("decimal(38,0)")
        .alias(f"{column(variant, rules)}_wei")
        for rules in RULES
    ]
    return gas + wei


def _entry(variant: str, rules: str) -> Column:
    gas = column(variant, rules)
    return sf.struct(
        sf.lit(variant).alias("variant"),
        sf.lit(rules).alias("rules"),
        sf.col(gas).alias("gas"),
        sf.col(f"{gas}_wei").alias("wei"),
        sf.col(column(variant, "capped")).alias("capped"),
    )


def _long(name: str) -> Column:
    return sf.sum(name).cast("long").alias(name)


def _wei(gas: str) -> Column:
    return (sf.col(gas).cast("decimal(20,0)") * sf.col("price")).cast("decimal(38,0)")

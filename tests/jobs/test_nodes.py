"""The registry's history, replayed from logs that Spark may hand over in any order."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit import tables
from chainkit.decode import MESSAGE_SENT_TOPIC
from chainkit_jobs.nodes import Registry, read_administration, registry_at
from support.administration import CONTRACTS
from support.audit_exports import Row, registered


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    columns = [tuple(row[name] for name in tables.LOGS.names) for row in rows]
    return spark.createDataFrame(columns, from_arrow_schema(tables.LOGS))


def registry(spark: SparkSession, rows: list[Row]) -> Registry:
    administration = read_administration(frame(spark, rows).coalesce(1), CONTRACTS, 20)
    return registry_at(administration, 20)


def test_read_registry__two_updates_in_one_block__the_later_log_holds(spark: SparkSession) -> None:
    first = registered(100, block=9, log_index=2)
    second = registered(100, block=9, log_index=10, is_enabled=False)

    for rows in ([first, second], [second, first]):
        assert registry(spark, rows).by_id(100).is_enabled is False


def test_read_registry__update_in_a_later_block_with_a_lower_index__holds(
    spark: SparkSession,
) -> None:
    rows = [
        registered(100, block=10, log_index=0, is_enabled=False),
        registered(100, block=9, log_index=5),
    ]

    assert not registry(spark, rows).by_id(100).is_enabled


def test_read_registry__updates_around_its_block__ends_with_that_block(
    spark: SparkSession,
) -> None:
    rows = [
        registered(100, block=2),
        registered(100, block=20, is_enabled=False),
        registered(100, block=21),
        registered(200, block=21, log_index=1),
    ]

    found = registry(spark, rows)

    assert list(found.nodes) == [100]
    assert not found.by_id(100).is_enabled


def test_read_registry__other_contracts_and_events__are_passed_over(spark: SparkSession) -> None:
    rows = [
        registered(100) | {"address": b"\x99" * 20},
        registered(200) | {"topics": [MESSAGE_SENT_TOPIC]},
        registered(300) | {"topics": []},
    ]

    assert registry(spark, rows).nodes == {}

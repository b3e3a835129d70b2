"""Writes an archive of the Java classes that Spark loads: Spark then starts in half the time.

The tests start Java some twenty times. ``-XX:SharedArchiveFile=ARCHIVE`` has it map the classes
instead of finding, reading and verifying each in some hundred jars. An archive that fits another
Java or other jars is passed over without a word.

Run ``python -m tools.write_spark_archive ARCHIVE``, as ``make test`` does. No Java, no archive.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from chainkit.errors import ConfigurationError
from chainkit_jobs.spark.session import spark_session

_QUIET: Final = "-Xlog:disable -Xlog:all=error:stderr"
"""Java's warnings about each class that it leaves out."""


def write(archive: Path) -> None:
    """Write the archive. Raises ConfigurationError where Java is missing or too old."""
    archive.unlink(missing_ok=True)
    options = f"-XX:+UseSerialGC -XX:ArchiveClassesAtExit={archive} {_QUIET}"
    settings = {"spark.driver.defaultJavaOptions": options}
    with spark_session("local[1]", settings) as spark:
        with tempfile.TemporaryDirectory() as folder:
            _use(spark, f"{folder}/rows")
        java = SparkContext._gateway.proc  # type: ignore[union-attr]
    # Java writes the archive and ends when its input ends.
    java.stdin.close()
    java.wait()


def _use(spark: SparkSession, folder: str) -> None:
    """Load what the audit loads: files, joins, aggregates, Python's workers, what is kept."""
    rows = spark.range(20).select(
        "id", (sf.col("id") % 3).cast("decimal(38,0)").alias("key"), sf.hex("id").alias("text")
    )
    rows.write.parquet(folder)
    read = spark.read.parquet(folder).persist()
    totals = read.groupBy("key").agg(sf.count("*").alias("n"), sf.collect_set("text").alias("all"))
    joined = read.join(totals, "key", "left").where(sf.size("all") > 0)
    same = sf.udf(lambda value: value, "string", useArrow=False)
    named = joined.withColumn("text", same("text")).withColumn("each", sf.explode("all"))
    sorted_rows = named.repartition("key").sortWithinPartitions("id").drop("all")
    sorted_rows.mapInArrow(lambda batches: batches, sorted_rows.schema).union(sorted_rows).collect()
    read.join(totals, "key", "left_semi").unionByName(read).distinct().toArrow()


if __name__ == "__main__":
    try:
        write(Path(sys.argv[1]).resolve())
    except ConfigurationError as error:
        print(f"set-up: no archive of Spark's classes: {error}")

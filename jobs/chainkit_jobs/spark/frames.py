"""Helpers for frames: ask for a session, keep a frame, bring few rows to the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

SPARK_ERRORS: Final = (PySparkException, Py4JError)
"""The errors of a query that fails."""


def is_read_failure(error: Exception) -> bool:
    """Return whether a query failed because Spark cannot read a file."""
    # Java's own exception, which is not always translated, has the condition in its text.
    return "FAILED_READ_FILE" in str(error)


def read_problem(frame: DataFrame) -> str | None:
    """Read all rows of a frame and return why Spark cannot read them, or None where it can."""
    try:
        frame.write.format("noop").mode("overwrite").save()
    except SPARK_ERRORS as error:
        return str(error)
    return None


def session_in(context: SparkContext) -> SparkSession:
    """Return the session of a context, which is made at the first call.

    Call this only where tables are needed: Java takes two seconds to load SQL.
    """
    return SparkSession(context)


@contextmanager
def kept(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep a frame between the actions that need it, and release it."""
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Bring few rows to the driver, with bytes as bytes and decimals exact."""
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows

"""Helpers for frames: ask for a session, keep a frame, bring few rows to the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession


def session_in(context: SparkContext) -> SparkSession:
    """Return the session of a context, which it has from the first time that somebody asks.

    Ask where tables are wanted, not before: Java takes two seconds to load SQL.
    """
    return SparkSession(context)


@contextmanager
def kept(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep a frame between the actions that need it, and let go of it."""
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Bring few rows to the driver, with bytes as bytes and decimals exact."""
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows

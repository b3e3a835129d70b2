"""Spark's Java process, without its warning about a module that Spark itself asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import Any, BinaryIO, Final

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from chainkit_jobs.spark_paths import java_environment

INCUBATOR_WARNING: Final = b"WARNING: Using incubator modules: jdk.incubator.vector\n"
"""Spark adds the module to each Java that it starts; no option of Spark or Java hides the
warning."""

_STDERR: Final = 2


def launch_java(conf: SparkConf) -> Any:
    """Start Java as PySpark does, and return PySpark's gateway to it.

    Everything else that Java and its children write to stderr is passed on. Raises what
    ``launch_gateway`` raises.
    """
    reading, writing = os.pipe()
    # Both threads outlive this call: they end with Java, or with this process.
    pipe, target = os.fdopen(reading, "rb"), os.fdopen(os.dup(_STDERR), "wb")
    Thread(target=pass_on, args=(pipe, target), daemon=True).start()
    try:
        with _environment(java_environment()):
            return launch_gateway(conf, {"stderr": writing})  # type: ignore[no-untyped-call]
    finally:
        os.close(writing)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables while PySpark copies the environment for Java."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def pass_on(source: Any, target: BinaryIO) -> None:
    """Copy each piece at once, up to the end, except the warning; then close both files."""
    held = b""
    with source, target:
        while chunk := source.read1():
            held = (held + chunk).replace(INCUBATOR_WARNING, b"")
            # The warning may come in pieces: its beginning waits for the next piece.
            kept = max(n for n in range(len(INCUBATOR_WARNING)) if _ends_with_first(held, n))
            target.write(held[: len(held) - kept])
            target.flush()
            held = held[len(held) - kept :]
        target.write(held)


def _ends_with_first(data: bytes, count: int) -> bool:
    return data.endswith(INCUBATOR_WARNING[:count])

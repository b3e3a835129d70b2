"""Spark's own daemon of Python workers, which imports what they need before it forks them.

A worker that imports screening for itself takes a second of its core first, each of them.
"""

from __future__ import annotations

# Arrow asks for pandas when it is first given an array.
import pandas  # type: ignore[import-untyped]  # noqa: F401
from pyspark.daemon import manager

import chainkit_jobs.screening.unit  # noqa: F401

if __name__ == "__main__":
    manager()

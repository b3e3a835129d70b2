"""Spark's own daemon of Python workers, which imports what they need before it forks them.

A worker that imports screening for itself takes a second of its core first, each of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

# Spark puts its Python package first as an archive, from which each module is compiled anew. Where
# the archive came with an installed package, that one is the same, and compiled.
_INSTALLED = {Path(path).resolve() / "pyspark" / "python" / "lib" for path in sys.path}
sys.path[:] = [
    path
    for path in sys.path
    if Path(path).name != "pyspark.zip" or Path(path).resolve().parent not in _INSTALLED
]

# Arrow asks for pandas when it is first given an array.
import pandas  # type: ignore[import-untyped]  # noqa: E402, F401
import pyspark.worker  # noqa: E402, F401
from pyspark.daemon import manager  # noqa: E402

import chainkit_jobs.reconcile.screening.runner  # noqa: E402, F401

if __name__ == "__main__":
    manager()

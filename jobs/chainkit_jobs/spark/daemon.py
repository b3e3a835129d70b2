"""Spark's own daemon of Python workers, which imports their modules before it forks workers.

Otherwise each worker that imports screening takes a second of its core first.
"""

from __future__ import annotations

import sys
from pathlib import Path

# Spark puts its Python package first as an archive, from which each module is compiled anew. If the
# archive came with an installed package, the installed one is the same, and compiled.
_INSTALLED = {Path(path).resolve() / "pyspark" / "python" / "lib" for path in sys.path}
sys.path[:] = [
    path
    for path in sys.path
    if Path(path).name != "pyspark.zip" or Path(path).resolve().parent not in _INSTALLED
]

# Arrow imports pandas when it first gets an array.
import pandas  # type: ignore[import-untyped]  # noqa: E402, F401
import pyspark.worker  # noqa: E402, F401
from pyspark.daemon import manager  # noqa: E402

import chainkit_jobs.reconcile.screening.runner  # noqa: E402, F401

if __name__ == "__main__":
    manager()

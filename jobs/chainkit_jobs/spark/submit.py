"""The script for ``spark-submit``: the ``chainkit`` command line, on the cluster that it was given.

::

    spark-submit --master spark://HOST:7077 submit.py audit reconcile --chain …

spark-submit takes a file, not a console script. docs/cluster.md has an example for each cluster.
"""

from __future__ import annotations

import sys

from chainkit.cli.main import main


def run() -> None:
    """Run ``chainkit`` with this program's arguments; returns where the exit code is 0.

    Raises SystemExit with any other code. Some hosts (Databricks) take every SystemExit for a
    failure.
    """
    # Usage errors show the command's name in its help and documentation.
    sys.argv[0] = "chainkit"
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise


if __name__ == "__main__":
    run()

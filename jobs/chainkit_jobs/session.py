"""The Spark session: local by default, the same jobs on a cluster."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from chainkit.cli.doctor import JAVA_HINT, MINIMUM_JAVA, java_version
from chainkit.errors import ConfigurationError

DEFAULT_MASTER: Final = "local[*]"

_MASTERS: Final = ("local", "spark://", "k8s://", "yarn")

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # An overflow or a bad cast must end the audit, never become a null.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # An envelope may hold a payload near the block's gas limit: few rows, so that a batch fits.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
}

_LOCAL_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The default of 200 suits a cluster; here each empty one costs more than it brings.
    "spark.sql.shuffle.partitions": "8",
}


def require_java() -> None:
    """Raise ConfigurationError, with how to get it, where Java is missing or too old."""
    version = java_version()
    if version is None or version < MINIMUM_JAVA:
        raise ConfigurationError(
            "java", f"version {MINIMUM_JAVA} or newer ({JAVA_HINT})", version or "none"
        )


@contextmanager
def spark_session(
    master: str = DEFAULT_MASTER, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Give a session and stop it at the end; one that runs already is used and left running.

    ``settings`` come on top of the audit's own. Raises ConfigurationError where Java is missing
    or ``master`` names no cluster that answers.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    if not master.startswith(_MASTERS):
        expected = f"a URL that begins with {', '.join(_MASTERS)}"
        raise ConfigurationError("--master", expected, repr(master))
    require_java()
    with tempfile.TemporaryDirectory(prefix="chainkit-spark-") as scratch:
        spark = _start(master, Path(scratch), settings or {})
        try:
            yield spark
        finally:
            spark.stop()


def _start(master: str, scratch: Path, settings: Mapping[str, str]) -> SparkSession:
    # Ctrl-C breaks py4j's calls off, which it would tell in tracebacks beside our own sentence.
    for logger in (logging.getLogger("py4j"), logging.getLogger()):
        logger.setLevel(logging.CRITICAL)
    is_local = master.startswith("local")
    if is_local:
        # Spark would look for any python3 on the PATH, which need not have this package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    log_settings = Path(__file__).parent / "templates" / "log4j2.properties"
    builder = SparkSession.builder.appName("chainkit audit").master(master)
    all_settings = {
        **_SETTINGS,
        **(_LOCAL_SETTINGS if is_local else {}),
        # A bar per stage for a person at a terminal, nothing for a log.
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log_settings.as_uri()}",
        **settings,
    }
    for name, value in all_settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as error:  # Java's, py4j's and Spark's own have no common type
        # What Java throws comes with its whole stack: its last cause says it best.
        causes = [line for line in str(error).splitlines() if "Exception: " in line or "[" in line]
        reason = causes[-1].strip(": \t") if causes else str(error).strip()
        raise ConfigurationError("Spark", f"a session at {master}", reason) from error

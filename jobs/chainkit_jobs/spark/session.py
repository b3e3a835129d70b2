"""Spark: local by default, the same jobs on a cluster."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from chainkit.errors import ConfigurationError
from chainkit.terminal.java import JAVA_HINT, MINIMUM_JAVA, java_version
from chainkit_jobs.spark.cluster import check_master, check_workers, explain_workers, is_local
from chainkit_jobs.spark.frames import session_in
from chainkit_jobs.spark.gateway import launch_java

DEFAULT_MASTER: Final = "local[*]"

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # An overflow or a bad cast must end the audit, never become a null.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # PySpark would ask Java for the line of Python behind each column that is built.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # An envelope may hold a payload near the block's gas limit: few rows, so that a batch fits.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    # Arrow's allocator: memory stays from batch to batch. Memory that is returned to the system and
    # taken again is filled with zeros each time.
    "spark.executorEnv.MIMALLOC_PURGE_DELAY": "-1",
    "spark.executorEnv.MIMALLOC_ALLOW_LARGE_OS_PAGES": "1",
}

_LOCAL_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The default of 200 suits a cluster; here each empty partition costs more than it brings.
    "spark.sql.shuffle.partitions": "8",
}

_DAEMON: Final = "chainkit_jobs.spark.daemon"

_LOCAL_HEAP: Final = "2g"
"""Together with a Python process per core, this stays below 4 GiB on two cores."""


def require_java() -> None:
    """Raise ConfigurationError, with advice how to install it, where Java is missing or too old."""
    version = java_version()
    if version is None or version < MINIMUM_JAVA:
        raise ConfigurationError(
            "java", f"version {MINIMUM_JAVA} or newer ({JAVA_HINT})", version or "none"
        )


@contextmanager
def spark_session(
    master: str = DEFAULT_MASTER, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Give a session as ``spark_context`` gives a context."""
    with spark_context(master, settings) as context:
        yield session_in(context)


@contextmanager
def spark_context(
    master: str = DEFAULT_MASTER, settings: Mapping[str, str] | None = None
) -> Iterator[SparkContext]:
    """Yield a context and stop it at the end; a running context is used and left running.

    ``settings`` come on top of the audit's own. Under spark-submit the master is the submitted one,
    and its settings are kept. Raises ConfigurationError where Java is missing, where ``master``
    names no cluster that answers, or where its workers cannot run the audit.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        with keep_interruption(), explain_workers():
            yield active.sparkContext
        return
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not is_submitted:
        check_master(master)
        require_java()
    with keep_interruption(), tempfile.TemporaryDirectory(prefix="chainkit-spark-") as scratch:
        start = _start_submitted if is_submitted else _start
        context = start(master, Path(scratch), settings or {})
        leftover = _local_cluster_folder(context)
        try:
            with explain_workers():
                if is_local(_master_of(context)):
                    with _workers_starting(context):
                        yield context
                else:
                    check_workers(context)
                    yield context
        finally:
            _stop(context, leftover)


@contextmanager
def keep_interruption() -> Iterator[None]:
    """Raise KeyboardInterrupt where an error arose while one was handled.

    After Ctrl-C, PySpark closes a socket that it has not opened yet, and only this error is left.
    """
    try:
        yield
    except Exception as error:
        behind = error.__context__
        while behind is not None:
            if isinstance(behind, KeyboardInterrupt):
                raise KeyboardInterrupt from error
            behind = behind.__context__
        raise


@contextmanager
def _workers_starting(context: SparkContext) -> Iterator[None]:
    """Start Python workers in parallel with the driver's first work."""
    tasks = context.parallelize(range(context.defaultParallelism), context.defaultParallelism)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(tasks.foreach, _do_nothing)
        yield


def _do_nothing(_: int) -> None:
    """Be done."""


def _start(master: str, scratch: Path, settings: Mapping[str, str]) -> SparkContext:
    _silence_py4j()
    log_settings = Path(__file__).parent / "templates" / "log4j2.properties"
    java_options = f"-Dlog4j2.configurationFile={log_settings.as_uri()}"
    if is_local(master):
        # Python does the work, Java distributes it: Java's second compiler costs more on the cores
        # that Python needs than it gains. Without it, less space is reserved for the first
        # compiler's code than Spark may need.
        java_options += " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
        # Java keeps little memory: no core is free for a collector in parallel.
        java_options += " -XX:+UseSerialGC"
    all_settings = {
        **_settings(master, scratch),
        "spark.driver.extraJavaOptions": java_options,
        **settings,
    }
    if is_local(master):
        # Spark would look for any python3 on the PATH, which need not have this package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if "SPARK_DRIVER_MEMORY" not in os.environ:
            all_settings.setdefault("spark.driver.memory", _LOCAL_HEAP)
    return _get_or_create(master, {"spark.app.name": "chainkit audit"} | all_settings)


def _start_submitted(master: str, scratch: Path, settings: Mapping[str, str]) -> SparkContext:
    """Start in the Java process that spark-submit started, with all its settings."""
    _silence_py4j()
    SparkContext._ensure_initialized()
    submitted = SparkConf()
    own = submitted.get("spark.master", DEFAULT_MASTER) or DEFAULT_MASTER
    if master not in (DEFAULT_MASTER, own):
        raise ConfigurationError("--master", f"what spark-submit was given, {own}", repr(master))
    if is_local(own):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Lost workers and a cluster without a free worker are logged at this level.
    defaults = {**_settings(own, scratch), "spark.log.level": "WARN"}
    kept = {name: value for name, value in defaults.items() if not submitted.contains(name)}
    context = _get_or_create(own, kept | dict(settings))
    # PySpark's own handler calls Java first, which the same Ctrl-C has just ended.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return context


def _settings(master: str, scratch: Path) -> dict[str, str]:
    """Return the audit's settings; a folder or an address of this machine only where all is."""
    own = {"spark.local.dir": str(scratch), "spark.python.daemon.module": _DAEMON}
    local = _LOCAL_SETTINGS | own if is_local(master) else {}
    return {
        **_SETTINGS,
        **local,
        # A bar per stage for a person at a terminal, nothing for a log.
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }


def _get_or_create(master: str, settings: Mapping[str, str]) -> SparkContext:
    wanted = SparkConf().setMaster(master).setAll(list(settings.items()))
    try:
        if SparkContext._gateway is None:
            SparkContext._ensure_initialized(gateway=launch_java(wanted))
        return SparkContext.getOrCreate(wanted)
    except Exception as error:  # Java's, py4j's and Spark's own have no common type
        # An exception of Java comes with its whole stack: its last cause is the clearest.
        causes = [line for line in str(error).splitlines() if "Exception: " in line or "[" in line]
        reason = causes[-1].strip(": \t") if causes else str(error).strip()
        raise ConfigurationError("Spark", f"a session at {master}", reason) from error


def _silence_py4j() -> None:
    """Log nothing of py4j's: Ctrl-C interrupts its calls, and it logs a traceback for each."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # Some lines of py4j go to the root logger, which other modules of the process use as well.
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def _local_cluster_folder(context: SparkContext) -> Path | None:
    """Return where the workers of a ``local-cluster`` work: Spark's own folder, never emptied."""
    if not _master_of(context).startswith("local-cluster"):
        return None
    return Path(_find_spark_home()) / "work" / context.applicationId


def _master_of(context: SparkContext) -> str:
    return context.master or ""


def _stop(context: SparkContext, leftover: Path | None) -> None:
    # Ctrl-C ends the Java process of spark-submit first: then nothing is left to stop.
    with suppress(Py4JError, OSError):
        # A session outlives its context in its caches, which must not reach the next session.
        session = SparkSession.getActiveSession()
        (context if session is None else session).stop()
    if leftover is not None:
        shutil.rmtree(leftover, ignore_errors=True)
        with suppress(OSError):
            leftover.parent.rmdir()

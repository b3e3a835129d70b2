"""Faults of a cluster, each as a sentence: its master, its workers, their disks."""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException

from chainkit import __version__
from chainkit.errors import ChainkitError, ConfigurationError, StoreError

MASTERS: Final = ("local", "spark://", "k8s://", "yarn")

_ANSWER_SECONDS: Final = 10.0
_PAGE_SECONDS: Final = 3.0
_USUAL_PORT: Final = 7077
_DOCUMENT: Final = "docs/cluster.md says how to ship it"

# Messages about files that Java reads, or that Python reads or writes.
_MISSING_FILES: Final = (
    re.compile(r"FILE_NOT_EXIST\].*?(?P<file>file:/\S+?)\.?\s", re.DOTALL),
    re.compile(r"File (?P<file>file:/\S+) does not exist"),
    re.compile(r"FileNotFoundError: [^\n]*?'(?P<file>/[^']+)'"),
)
_NO_PROGRAM: Final = re.compile(r'Cannot run program "(?P<program>[^"]+)"')
_NO_MODULE: Final = re.compile(r"No module named '(?P<module>[\w.]+)'")
_OTHER_PYTHON: Final = re.compile(r"PYTHON_VERSION_MISMATCH.*?(?P<version>\d+\.\d+)", re.DOTALL)


def is_local(master: str) -> bool:
    """Return whether all of Spark runs on this machine; so does ``local-cluster[…]``."""
    return master.startswith("local")


def check_master(master: str) -> None:
    """Raise ConfigurationError where a master visibly does not answer, before Java starts.

    Spark itself asks a dead standalone master for a minute, and then stops in mid-sentence.
    """
    if not master.startswith(MASTERS):
        expected = f"a URL that begins with {', '.join(MASTERS)}"
        raise ConfigurationError("--master", expected, repr(master))
    if master == "yarn" and not {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & os.environ.keys():
        expected = "HADOOP_CONF_DIR or YARN_CONF_DIR, the folder that describes the cluster"
        raise ConfigurationError("--master yarn", expected, "neither in the environment")
    if master.startswith("spark://"):
        _check_standalone(master)


def _check_standalone(master: str) -> None:
    reasons = []
    # Several masters may replace each other; one that answers is enough.
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise ConfigurationError("--master", "spark://HOST:PORT", repr(master))
        try:
            address = (host.strip("[]"), int(port))
            with socket.create_connection(address, _ANSWER_SECONDS) as connection:
                if int(port) == _USUAL_PORT or not _is_web_page(connection):
                    return
            reasons.append(f"{place}: a web page; masters listen at {_USUAL_PORT} by default")
        except OSError as error:
            reasons.append(f"{place}: {error.strerror or error}")
    raise ConfigurationError("--master", "a Spark master that answers", "; ".join(reasons))


def _is_web_page(connection: socket.socket) -> bool:
    """Return whether HTTP answers there. A master closes the connection, and logs why."""
    connection.settimeout(_PAGE_SECONDS)
    try:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return connection.recv(5).startswith(b"HTTP/")
    except OSError:
        return False


def check_workers(context: SparkContext) -> None:
    """Raise ConfigurationError unless the workers import this version of chainkit.

    Another version may decide differently, and the result would not show this.
    """
    tasks = context.defaultParallelism
    versions = set(context.parallelize(range(tasks), tasks).mapPartitions(_version).collect())
    if versions != {__version__}:
        found = ", ".join(sorted(versions))
        raise ConfigurationError("workers", f"chainkit {__version__}", found, _DOCUMENT)


def _version(_: Iterable[int]) -> Iterator[str]:
    yield __version__


@contextmanager
def explain_workers() -> Iterator[None]:
    """Turn what workers lack, in Spark's stack traces, into ConfigurationError or StoreError."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        problem = _problem(str(error))
        if problem is None:
            raise
        raise problem from error


def _problem(text: str) -> ChainkitError | None:
    for pattern in _MISSING_FILES:
        if match := pattern.search(text):
            expected = "every folder at the same path on all workers (shared storage)"
            return StoreError("workers", expected, f"none at {match['file']}")
    if match := _NO_PROGRAM.search(text):
        expected = "the Python that PYSPARK_PYTHON or spark.pyspark.python names"
        return ConfigurationError("workers", expected, f"no {match['program']}", _DOCUMENT)
    if match := _NO_MODULE.search(text):
        expected = f"a Python with chainkit[audit] {__version__}"
        return ConfigurationError("workers", expected, f"one without {match['module']}", _DOCUMENT)
    if match := _OTHER_PYTHON.search(text):
        own = ".".join(platform.python_version_tuple()[:2])
        return ConfigurationError("workers", f"Python {own}, as here", match["version"], _DOCUMENT)
    return None

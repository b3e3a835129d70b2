"""A standalone Spark cluster on loopback, as Spark's own scripts start it: no Python in its reach.

Its workers find no interpreter on their PATH, so that whatever Python they run was shipped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from pyspark.find_spark_home import _find_spark_home

from chainkit_jobs.spark import submit

SPARK_HOME: Final = Path(_find_spark_home())
SUBMIT: Final = Path(submit.__file__)
LOOPBACK: Final = "127.0.0.1"

_DEADLINE_SECONDS: Final = 120.0
_PROGRAMS: Final = ("bash", "sh", "cat", "chmod", "dirname", "gzip", "java", "ls", "tar", "uname")
"""All that Spark's scripts and the unpacking of an archive call."""
_JAVA_OPTIONS: Final = f"-XX:TieredStopAtLevel=1 {os.environ.get('SPARK_SUBMIT_OPTS', '')}"
"""Options of every Java here, also of executors: one compiler, and the archived classes."""


@dataclass(frozen=True)
class Cluster:
    """A master and its workers; each process is one Java, ended by its id."""

    folder: Path
    master_url: str
    workers: list[subprocess.Popen[bytes]]
    start_worker: Callable[[], None]
    """Adds a worker of one core to ``workers``."""

    def lose_worker(self) -> None:
        """End the oldest worker, as a machine that fails does."""
        lost = self.workers.pop(0)
        lost.kill()
        lost.wait()


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[Cluster]:
    """Start a master and two workers of one core each; logs and work folders lie in ``folder``."""
    programs = folder / "programs"
    programs.mkdir(parents=True)
    for name in _PROGRAMS:
        found = shutil.which(name)
        assert found is not None, name
        (programs / name).symlink_to(found)
    with ExitStack() as stack:

        def start(name: str, class_name: str, *arguments: str) -> tuple[Any, Path]:
            log = folder / f"{name}.log"
            process = stack.enter_context(_java(log, programs, class_name, *arguments))
            return process, log

        common = ("--host", LOOPBACK, "--port", "0", "--webui-port", "0")
        master, log = start("master", "master.Master", *common)
        url = wait_for(lambda: _logged(master, log, r"Starting Spark master at (spark://\S+)"))
        workers: list[subprocess.Popen[bytes]] = []
        names = count()

        def start_worker() -> None:
            name = f"worker-{next(names)}"
            own = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"{name}-work"))
            worker, log = start(name, "worker.Worker", *common, *own, url)
            wait_for(lambda: _logged(worker, log, r"(Successfully registered) with"))
            workers.append(worker)

        for _ in range(2):
            start_worker()
        yield Cluster(folder, url, workers, start_worker)


@contextmanager
def _java(
    log: Path, programs: Path, class_name: str, *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    command = [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{class_name}"]
    environment = {
        "PATH": str(programs),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": "256m",
        "JAVA_TOOL_OPTIONS": _JAVA_OPTIONS,
    }
    if home := os.environ.get("JAVA_HOME"):
        environment["JAVA_HOME"] = home
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *arguments], env=environment, stdout=output, stderr=output, cwd=log.parent
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _logged(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str | None:
    text = log.read_text(errors="replace")
    assert process.poll() is None, text
    match = re.search(pattern, text)
    return match and match[1]


def wait_for(look: Callable[[], Any]) -> Any:
    """Poll until something exists, and return it."""
    end = time.monotonic() + _DEADLINE_SECONDS
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("waited in vain")


@dataclass(frozen=True)
class Driver:
    """Starts a test's drivers, and knows the folders of their temporary files."""

    folder: Path
    """Empty at first; temporary files, shuffles and event logs of the drivers go there."""

    @property
    def scratch(self) -> Path:
        return self.folder / "scratch"

    @property
    def environment(self) -> dict[str, str]:
        self.scratch.mkdir(parents=True, exist_ok=True)
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        if home := os.environ.get("JAVA_HOME"):
            environment["JAVA_HOME"] = home
        return environment | {
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_LOCAL_DIRS": str(self.scratch),
            "TMPDIR": str(self.scratch),
            "JAVA_TOOL_OPTIONS": f"{_JAVA_OPTIONS} -Djava.io.tmpdir={self.scratch}",
        }

    def plain(self, *arguments: object) -> subprocess.Popen[str]:
        """Start a Python program, or ``chainkit`` where it is SUBMIT, without spark-submit."""
        return self._start([sys.executable, *map(str, arguments)], self.environment)

    def submitted(
        self, master_url: str, environment: Path | None, *arguments: object, **settings: str
    ) -> subprocess.Popen[str]:
        """Start a Python program by spark-submit, with an archive of Python for the workers."""
        events = self.folder / "events"
        events.mkdir(parents=True, exist_ok=True)
        all_settings = {
            "spark.executor.memory": "512m",
            "spark.sql.shuffle.partitions": "3",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
            **settings,
        }
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master_url]
        for name, value in all_settings.items():
            command += ["--conf", f"{name}={value}"]
        variables = self.environment | {"PYSPARK_DRIVER_PYTHON": sys.executable}
        if environment is not None:
            command += ["--archives", f"{environment}#environment"]
            variables["PYSPARK_PYTHON"] = "./environment/bin/python"
        return self._start([*command, *map(str, arguments)], variables)

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return what the one submitted application has logged so far of a kind of event."""
        found = []
        for log in (self.folder / "events").glob("*"):
            for line in log.read_text().splitlines():
                # The last line may be half written.
                if line.startswith(f'{{"Event":"SparkListener{kind}"') and line.endswith("}"):
                    found.append(json.loads(line))
        return found

    def _start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        self.folder.mkdir(parents=True, exist_ok=True)
        return subprocess.Popen(
            command,
            env=environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            # As one output: spark-submit passes both of Python's on as its own.
            stderr=subprocess.STDOUT,
            text=True,
            # A group of its own, as a terminal gives each command.
            start_new_session=True,
        )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for a driver; return its exit code and its whole output. A late driver is killed."""
    try:
        said, _ = process.communicate(timeout=2 * _DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        raise AssertionError(said) from None
    return process.returncode, said

"""The same audit on all cores, on a local cluster, and by spark-submit on a standalone one."""

import json
import os
import shutil
import signal
import tarfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from chainkit.errors import ChainkitError, ConfigurationError, StoreError
from chainkit_jobs.proof import prove_chain
from chainkit_jobs.sources import read_export
from chainkit_jobs.spark.cluster import check_master, explain_workers
from chainkit_jobs.spark.environment import needed_distributions, pack_environment
from chainkit_jobs.spark.session import require_java
from support.audit.audit_exports import honest, write_scene
from support.audit.spark_cluster import (
    SPARK_HOME,
    SUBMIT,
    Cluster,
    Driver,
    ended,
    standalone_cluster,
    wait_for,
)
from support.seeds import only_in_soak

FOUND = 1
"""The exit code of an audit with findings, which each of these has."""

ABOUT_WORKERS = """
import json, shutil, sys
from importlib.util import find_spec
from pathlib import Path

from chainkit.errors import ChainkitError
from chainkit_jobs.proof import prove_chain
from chainkit_jobs.spark.session import spark_session
from chainkit_jobs.sources import read_blocks, read_export


def about(_):
    import chainkit, pyarrow
    yield [sys.prefix, chainkit.__file__, pyarrow.__file__, find_spec("ape") is None]


chain = read_export(Path(sys.argv[1]), "chain")
report = {}
try:
    with spark_session() as spark:
        tasks = spark.sparkContext.parallelize(range(2), 2)
        report["workers"] = tasks.mapPartitions(about).collect()
        trusted = bytes.fromhex(chain.manifest.to_block_hash.removeprefix("0x"))
        report["proof"] = repr(prove_chain(spark, chain, trusted))
        blocks = read_blocks(spark, chain)
        # From here on it is as if the workers did not share the driver's disk.
        shutil.rmtree(sys.argv[1])
        blocks.collect()
except ChainkitError as error:
    report["error"] = str(error)
Path(sys.argv[2]).write_text(json.dumps(report))
"""

# Each process has a deadline of its own; the first test starts most of them.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module", autouse=True)
def java() -> None:
    try:
        require_java()
    except ConfigurationError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive = tmp_path_factory.mktemp("environment") / "environment.tar.gz"
    pack_environment(archive)
    return archive


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Arguments of an audit in which one of two nodes keeps an envelope back and repeats others."""
    root = tmp_path_factory.mktemp("scene")
    chain, nodes = write_scene(
        root, {100: honest, 200: lambda p, key: honest(p[1:], key)[::-1] * 2}
    )
    arguments = ["audit", "reconcile", "--chain", str(chain), "--without-costs"]
    for _, node in nodes:
        arguments += ["--node", str(node)]
    return arguments


@pytest.fixture(scope="module")
def expected(scene: list[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The audit's files, written on all cores of one machine."""
    driver = Driver(tmp_path_factory.mktemp("local"))
    out = driver.folder / "out"
    code, said = ended(driver.plain(SUBMIT, *scene, "--out", out))
    assert code == FOUND, said
    assert list(driver.scratch.iterdir()) == []
    return contents(out)


def contents(out: Path) -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in out.iterdir()}
    assert {"findings.parquet", "summary.json"} <= found.keys()
    return found


@only_in_soak
def test_reconcile__local_cluster__gives_the_same_bytes_and_leaves_nothing(
    scene: list[str], expected: dict[str, bytes], tmp_path: Path
) -> None:
    driver = Driver(tmp_path / "driver")
    out = tmp_path / "out"

    work = SPARK_HOME / "work"
    before = set(work.glob("*"))
    master = "local-cluster[2,1,1024]"
    code, said = ended(driver.plain(SUBMIT, *scene, "--out", out, "--master", master))

    assert code == FOUND, said
    assert contents(out) == expected
    assert list(driver.scratch.iterdir()) == []
    assert set(work.glob("*")) == before


def test_reconcile__submitted_and_a_worker_lost_midway__gives_the_same_bytes(
    scene: list[str],
    expected: dict[str, bytes],
    cluster: Cluster,
    environment: Path,
    tmp_path: Path,
) -> None:
    driver = Driver(tmp_path / "driver")
    out = tmp_path / "out"

    own = {"spark.sql.execution.arrow.maxRecordsPerBatch": "500"}
    arguments = (SUBMIT, *scene, "--out", out)
    process = driver.submitted(cluster.master_url, environment, *arguments, **own)
    # Both hold shuffles and kept rows by then.
    wait_for(lambda: process.poll() or len(driver.events("StageCompleted")) >= 4)
    cluster.lose_worker()
    seen = len(driver.events("StageCompleted"))
    code, said = ended(process)
    cluster.start_worker()

    assert code == FOUND, said
    assert contents(out) == expected
    assert driver.events("ExecutorRemoved")
    assert len(driver.events("StageCompleted")) > seen
    assert list(driver.scratch.iterdir()) == []
    [settings] = [event["Spark Properties"] for event in driver.events("EnvironmentUpdate")]
    assert settings["spark.master"] == cluster.master_url
    assert settings.items() >= own.items()
    assert settings["spark.sql.ansi.enabled"] == "true"
    assert "spark.local.dir" not in settings


def proof_here(spark: SparkSession, chain: Path) -> str:
    export = read_export(chain, "chain")
    trusted = bytes.fromhex(export.manifest.to_block_hash.removeprefix("0x"))
    return repr(prove_chain(spark, export, trusted))


@only_in_soak
def test_workers__submitted__run_the_shipped_python_and_prove_alike(
    scene: list[str], cluster: Cluster, environment: Path, spark: SparkSession, tmp_path: Path
) -> None:
    driver = Driver(tmp_path / "driver")
    program, told = tmp_path / "about.py", tmp_path / "about.json"
    program.write_text(ABOUT_WORKERS)
    chain = Path(scene[scene.index("--chain") + 1])
    # The program removes it.
    copy = shutil.copytree(chain, tmp_path / "chain")

    code, said = ended(driver.submitted(cluster.master_url, environment, program, copy, told))

    assert code == 0, said
    report = json.loads(told.read_text())
    assert len(report["workers"]) == 2
    for prefix, own, arrow, is_without_ape in report["workers"]:
        assert Path(prefix).name == "environment"
        assert Path(prefix).is_relative_to(cluster.folder)
        assert own.startswith(f"{prefix}/packages/chainkit/")
        assert arrow.startswith(f"{prefix}/packages/pyarrow/")
        assert is_without_ape
    assert report["error"].startswith(
        "workers: expected every folder at the same path on all workers (shared storage), got none "
        f"at file://{copy}/"
    )
    assert report["proof"] == proof_here(spark, chain)


@only_in_soak
def test_reconcile__interrupted__leaves_nothing(
    scene: list[str], cluster: Cluster, environment: Path, tmp_path: Path
) -> None:
    driver = Driver(tmp_path / "driver")
    out = tmp_path / "results" / "out"

    process = driver.submitted(cluster.master_url, environment, SUBMIT, *scene, "--out", out)
    wait_for(lambda: process.poll() or driver.events("StageCompleted"))
    # As Ctrl-C does: to Java and to Python.
    os.killpg(process.pid, signal.SIGINT)
    code, said = ended(process)

    assert code == 130, said
    assert "Traceback" not in said
    assert not out.parent.exists()
    wait_for(lambda: not list(driver.scratch.iterdir()))


def test_reconcile__workers_without_python__says_what_to_ship(
    scene: list[str], cluster: Cluster, tmp_path: Path
) -> None:
    driver = Driver(tmp_path / "driver")
    out = tmp_path / "out"

    process = driver.submitted(cluster.master_url, None, SUBMIT, *scene, "--out", out)
    code, said = ended(process)

    assert code == 2
    sentence = (
        "error: workers: expected the Python that PYSPARK_PYTHON or spark.pyspark.python names, "
        "got no python3 (docs/cluster.md says how to ship it)"
    )
    assert sentence in said.splitlines()
    assert not out.exists()


@pytest.mark.parametrize(
    ("master", "message"),
    [
        ("spark://127.0.0.1:1", "a Spark master that answers, got 127.0.0.1:1: Connection refused"),
        ("spark://127.0.0.1:1,127.0.0.1:2", "127.0.0.1:1: Connection refused; 127.0.0.1:2: Conn"),
        ("spark://127.0.0.1", "expected spark://HOST:PORT, got 'spark://127.0.0.1'"),
        ("http://127.0.0.1:7077", "expected a URL that begins with local, spark://, k8s://, yarn"),
        ("yarn", "expected HADOOP_CONF_DIR or YARN_CONF_DIR"),
    ],
)
def test_master__dead_or_wrong__is_refused_before_java_starts(
    master: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)

    with pytest.raises(ConfigurationError) as raised:
        check_master(master)

    assert message in str(raised.value)


def test_master__that_answers__is_taken(cluster: Cluster) -> None:
    check_master(cluster.master_url)


def test_master__port_of_a_web_page__is_told_and_not_waited_for() -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        Thread(target=server.handle_request, daemon=True).start()
        place = f"127.0.0.1:{server.server_port}"

        with pytest.raises(ConfigurationError) as raised:
            check_master(f"spark://{place}")

    words = f"a Spark master that answers, got {place}: a web page; masters listen at 7077"
    assert words in str(raised.value)


def test_session__other_master_than_spark_submit__is_refused(
    scene: list[str], tmp_path: Path
) -> None:
    other = "spark://127.0.0.1:7077"
    arguments = [*scene, "--out", tmp_path / "out", "--master", other]

    code, said = ended(Driver(tmp_path / "driver").submitted("local[1]", None, SUBMIT, *arguments))

    assert code == 2
    sentence = f"error: --master: expected what spark-submit was given, local[1], got '{other}'"
    assert sentence in said.splitlines()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "ModuleNotFoundError: No module named 'chainkit_jobs'",
            "workers: expected a Python with chainkit[audit] 0.1.0, got one without chainkit_jobs "
            "(docs/cluster.md says how to ship it)",
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than that in "
            "driver: 3.11, PySpark cannot run with different minor versions.",
            "as here, got 3.10 (docs/cluster.md",
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: '/shared/out/a.parquet'",
            "(shared storage), got none at /shared/out/a.parquet",
        ),
    ],
)
def test_workers__lack_something__is_said_in_a_sentence(words: str, message: str) -> None:
    with pytest.raises(ChainkitError) as raised, explain_workers():
        raise PySparkException(f"Job aborted due to stage failure:\n{words}\nDriver stacktrace:")

    assert message in str(raised.value)


def test_workers__fail_otherwise__is_left_as_it_is() -> None:
    with pytest.raises(PySparkException, match="Python worker exited"), explain_workers():
        raise PySparkException("Python worker exited unexpectedly (crashed)")


def test_environment__needed__is_the_audits_without_spark_and_ape() -> None:
    names = {package.name.lower().replace("_", "-") for package in needed_distributions()}

    assert {"pyarrow", "pandas", "matplotlib", "jinja2", "coincurve", "protobuf"} <= names
    assert not {"pyspark", "py4j", "chainkit", "eth-ape", "sqlalchemy", "pytest"} & names


def test_pack__checked_before_it_is_written__contains_nothing_of_the_check(
    environment: Path,
) -> None:
    with tarfile.open(environment) as archive:
        found = {Path(name).parts[0] for name in archive.getnames() if name != "."}

    assert found == {"bin", "lib", "packages"}


def test_pack__archive_exists__is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "environment.tar.gz"
    archive.write_bytes(b"mine")

    with pytest.raises(StoreError, match="already exists"):
        pack_environment(archive)

    assert archive.read_bytes() == b"mine"


def test_pack__copy_does_not_import_the_jobs__is_refused_and_nothing_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainkit_jobs.spark.environment.needed_distributions", lambda: [])

    with pytest.raises(ConfigurationError, match="run from another place, got ModuleNotFound"):
        pack_environment(tmp_path / "environment.tar.gz")

    assert list(tmp_path.iterdir()) == []

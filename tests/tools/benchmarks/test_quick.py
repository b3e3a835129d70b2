"""A quick run of a benchmark measures every figure, and shows every row of its tables."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.audit.figures import TITLES as AUDIT_TITLES
from benchmarks.client.__main__ import ROWS as CLIENT_ROWS
from benchmarks.history.__main__ import ROWS as HISTORY_ROWS
from benchmarks.index.figures import TITLES as INDEX_TITLES
from benchmarks.network.page import ROWS as NETWORK_ROWS
from benchmarks.node.compared import ROWS as COMPARED_ROWS
from benchmarks.node.page import ROWS as NODE_ROWS
from benchmarks.retention.page import ROWS as RETENTION_ROWS
from localnet.deployment import PROJECT

AUDIT = (
    *("rows_per_s_unsigned", "signatures_per_s", "recover_floor_per_s", "duckdb_rows_per_s"),
    *("polars_rows_per_s", "scan_rows_per_s", "verified_blocks_per_s"),
    *("verified_transactions_per_s", "rerun_ratio"),
)
INDEX = (
    *(f"{row}_events_per_s" for row in INDEX_TITLES),
    *("peak_memory_mib", "follow_p99_ms", "reorg64_s"),
)


needs_h2load = pytest.mark.skipif(
    shutil.which("h2load") is None, reason="needs h2load (Debian: apt install nghttp2-client)"
)


def is_audit(found: dict[str, Any]) -> bool:
    accuracy, rows = (found["recall"], found["false_positives"]), found["rows"]
    return accuracy == (1, 0) and rows["duckdb"]["counts"] == rows["polars"]["counts"]


def is_index(found: dict[str, Any]) -> bool:
    retracted: int = found["following"]["postgres"]["websocket"]["reorg64_envelopes"]
    return retracted == 64 * 4


def is_network(found: dict[str, Any]) -> bool:
    # Two logs are compared, one of which has three differences.
    return bool(found["repair_comparisons"] >= 3 and found["repair_bytes"] < 10_000)


def is_node(found: dict[str, Any]) -> bool:
    # Each build publishes, and the quick run has one round: its ratio is that of its two figures.
    rates = found["compared"]["publish_vs_before"]
    ratio = rates["now"] / rates["before"]
    return 0.99 * ratio < found["publish_vs_before"] < 1.01 * ratio


def is_retention(found: dict[str, Any]) -> bool:
    return (found["reported"], found["pruned"]) == (10_000, 1_000)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("command", "figures", "rows", "is_right"),
    [
        pytest.param("audit measure", AUDIT, AUDIT_TITLES, is_audit, id="audit"),
        pytest.param("client", CLIENT_ROWS, CLIENT_ROWS, lambda found: True, id="client"),
        pytest.param("history", HISTORY_ROWS, HISTORY_ROWS, lambda found: True, id="history"),
        pytest.param("index", INDEX, INDEX_TITLES, is_index, id="index"),
        pytest.param("network", NETWORK_ROWS, NETWORK_ROWS, is_network, id="network"),
        pytest.param(
            "node",
            (*NODE_ROWS, *COMPARED_ROWS),
            NODE_ROWS | {name: row.title for name, row in COMPARED_ROWS.items()},
            is_node,
            id="node",
            marks=needs_h2load,
        ),
        pytest.param("retention", RETENTION_ROWS, RETENTION_ROWS, is_retention, id="retention"),
    ],
)
def test_measure__quickly__gives_every_figure_and_shows_every_row(
    command: str,
    figures: Iterable[str],
    rows: dict[str, str],
    is_right: Callable[[dict[str, Any]], bool],
    tmp_path: Path,
) -> None:
    output = tmp_path / "figures.json"
    run = [sys.executable, "-m", *f"benchmarks.{command}".split()]
    if command == "audit measure":
        run += ["--folder", str(tmp_path)]

    done = subprocess.run(
        [*run, "--quick", "--output", str(output)],
        capture_output=True,
        text=True,
        cwd=PROJECT,
    )

    assert done.returncode == 0, done.stderr
    assert command != "network" or done.stderr == ""
    found = json.loads(output.read_text())
    assert all(found[name] > 0 for name in figures)
    assert is_right(found), found
    assert found["machine"]["cores"] > 0
    assert found.get("is_quick", True)
    assert "run too short" in done.stdout
    assert all(title in done.stdout for title in rows.values())
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]


def test_network__few_envelopes__are_found_and_repaired_within_the_bytes() -> None:
    command = [sys.executable, "-m", "benchmarks.network.in_process", "--envelopes", "3000"]

    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)

    assert ran.stderr == ""
    lines = ran.stdout.splitlines()
    assert lines[0].startswith("digests of 3,000 envelopes: ")
    assert "by 3 calls; repaired by 10 more" in lines[1]
    assert lines[3].startswith("digests, with their requests") and lines[3].endswith("  reached")

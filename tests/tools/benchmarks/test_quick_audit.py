import json
import subprocess
import sys
from pathlib import Path

import pytest

from localnet.deployment import PROJECT

FIGURES = (
    "rows_per_s_unsigned",
    "signatures_per_s",
    "recover_floor_per_s",
    "duckdb_rows_per_s",
    "polars_rows_per_s",
    "scan_rows_per_s",
    "verified_blocks_per_s",
    "verified_transactions_per_s",
    "rerun_ratio",
    "peak_memory_mib",
)


@pytest.mark.timeout(900)
def test_measure__quickly__gives_every_figure_and_finds_every_fault(tmp_path: Path) -> None:
    output = tmp_path / "audit.json"
    options = ["--quick", "--folder", str(tmp_path), "--output", str(output)]

    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.audit", "measure", *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(output.read_text())
    assert all(found[name] > 0 for name in FIGURES)
    assert (found["recall"], found["false_positives"]) == (1, 0), found["accuracy"]
    assert found["rows"]["duckdb"]["counts"] == found["rows"]["polars"]["counts"]
    assert found["machine"]["cores"] > 0
    assert "reconcile with all signatures" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["audit.json"]

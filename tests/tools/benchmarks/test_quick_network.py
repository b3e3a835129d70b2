import json
import subprocess
import sys
from pathlib import Path

import pytest

from localnet.deployment import PROJECT

FIGURES = (
    "recover_floor_per_s",
    "catch_up_per_s",
    "two_nodes_p99_ms",
    "repair_s",
    "repair_bytes",
    "twenty_peers_mib",
)


@pytest.mark.timeout(600)
def test_measure__quickly__gives_every_figure(tmp_path: Path) -> None:
    output = tmp_path / "network.json"

    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.network", "--quick", "--output", str(output)],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )

    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(output.read_text())
    assert all(found[name] > 0 for name in FIGURES)
    assert found["is_quick"] is True
    # Two logs are compared, one of which has three differences.
    assert found["repair_comparisons"] >= 3
    assert found["repair_bytes"] < 10_000
    assert "find and repair what a node lacks" in done.stdout

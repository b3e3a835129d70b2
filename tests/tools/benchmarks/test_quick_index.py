import json
import subprocess
import sys
from pathlib import Path

from localnet.deployment import PROJECT

TARGETS = (
    "floor_events_per_s",
    "unsigned_events_per_s",
    "signed_sqlite_events_per_s",
    "signed_postgres_events_per_s",
    "proof_floor_events_per_s",
    "proved_sqlite_events_per_s",
    "proved_postgres_events_per_s",
    "tutorial_events_per_s",
    "peak_memory_mib",
    "follow_p99_ms",
    "reorg64_s",
)


def test_measure__quickly__gives_every_figure(tmp_path: Path) -> None:
    output = tmp_path / "index.json"

    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.index", "--quick", "--output", str(output)],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(output.read_text())
    assert all(found[name] > 0 for name in TARGETS)
    assert found["following"]["postgres"]["websocket"]["reorg64_envelopes"] == 64 * 4
    assert found["machine"]["cores"] > 0
    assert "ours, signed, PostgreSQL" in done.stdout

"""The benchmark of two nodes that compare their logs works, however long it takes."""

from __future__ import annotations

import subprocess
import sys

from support.project import ROOT


def test_network__few_envelopes__are_found_and_repaired_within_the_bytes() -> None:
    command = [sys.executable, "-m", "benchmarks.network.in_process", "--envelopes", "3000"]

    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert ran.stderr == ""
    lines = ran.stdout.splitlines()
    assert lines[0].startswith("digests of 3,000 envelopes: ")
    assert "by 3 calls; repaired by 10 more" in lines[1]
    assert lines[3].startswith("digests, with their requests") and lines[3].endswith("  reached")

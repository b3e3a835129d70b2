"""The client's benchmark: a quick run measures every figure that its page shows."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from benchmarks.client.__main__ import BENCHMARK, ROWS, main


def test_measure__quickly__gives_every_figure_of_the_page(tmp_path: Path) -> None:
    output = tmp_path / "client.json"

    outcome = CliRunner().invoke(main, ["--quick", "--output", str(output)])

    assert outcome.exit_code == 0, outcome.output
    figures = json.loads(output.read_text())
    assert all(figures[name] > 0 for name in ROWS)
    assert figures["is_quick"]
    assert "run too short" in outcome.output
    assert all(what in BENCHMARK.section(figures) for what in ROWS.values())

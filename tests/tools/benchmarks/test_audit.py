import os
import signal
import subprocess
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.audit.__main__ import BENCHMARK, main
from benchmarks.audit.commands import Measured
from benchmarks.audit.faults.plan import Finding
from benchmarks.audit.figures import (
    ROWS,
    accuracy_figures,
    audit_figures,
    linear_figures,
    median_row,
    row_figures,
)
from benchmarks.audit.sizes import USUAL
from benchmarks.audit.targets import targets
from benchmarks.target import Target
from benchmarks.usage import descendants, process_cpu_seconds, process_mebibytes
from benchmarks.watch import CommandFailed, Run, run

ALTERED = Finding(100, "ENVELOPE_ALTERED", 0, 7)
MISSING = Finding(100, "ENVELOPE_MISSING", 0, 8)
MACHINE = {"cpu": "A CPU", "cores": 2, "memory_gib": 23, "system": "Linux 6", "duckdb": "2.0.0"}
SECONDS = {
    **{"scan": 5.0, "duckdb": 4.0, "polars": 8.0, "recover": 4.0, "verified": 10.0},
    **{"unsigned": 20.0, "unsigned_again": 10.0, "signed": 500.0, "signed_again": 20.0},
}
NODE_ROWS = 3 * USUAL.rows


def measured(seconds: float, /, **said: Any) -> Measured:
    return Measured(Run("", seconds, 2 * seconds, 3000.0), said)


def row(name: str, rows: int | None = None) -> dict[str, Any]:
    return row_figures(measured(SECONDS[name]), rows or USUAL.rows + NODE_ROWS)


def figures(*, is_linear: bool = True, **changes: Any) -> dict[str, Any]:
    rows = {name: row(name) for name in ROWS}
    rows["recover"] = row("recover", 160_000)
    rows["verified"] = row("verified", USUAL.proved_transactions) | {"blocks": 200}
    accuracy = accuracy_figures(Counter([ALTERED, MISSING]), Counter([ALTERED, MISSING]))
    linear = linear_figures([row("unsigned"), row("signed", 200_000_000)]) if is_linear else None
    about = {"sizes": USUAL.figures(), "linear": linear}
    found = audit_figures(rows, {"unsigned": accuracy, "signed": accuracy}, about)
    return found | {"machine": MACHINE} | changes


def judged(**changes: Any) -> dict[str, Target]:
    return {target.what: target for target in targets(figures(**changes))}


def test_summarize__a_row__by_the_clock_of_the_command() -> None:
    assert row_figures(measured(4.0), 1000) == {
        "rows": 1000,
        "seconds": 4.0,
        "rows_per_s": 250.0,
        "cpu_seconds": 8.0,
        "peak_memory_mib": 3000.0,
    }


def test_summarize__another_way__by_its_own_clock() -> None:
    found = row_figures(measured(4.0, rows=1000, seconds=2.0, counts={"matched": 7}))

    assert (found["rows_per_s"], found["counts"]) == (500, {"matched": 7})


def test_summarize__rounds__the_median_counts_and_all_are_told() -> None:
    rounds = [row_figures(measured(seconds), 60) for seconds in (3.0, 1.0, 2.0)]

    found = median_row(rounds)

    assert (found["seconds"], found["rows_per_s"]) == (2.0, 30)
    assert found["rounds_s"] == [3.0, 1.0, 2.0]


def test_compare_findings__one_missed_and_one_twice__both_are_told() -> None:
    found = accuracy_figures(Counter([ALTERED, MISSING]), Counter([ALTERED, ALTERED]))

    assert (found["recall"], found["false_positives"]) == (0.5, 1)
    assert found["missed"] == [[100, "ENVELOPE_MISSING", 0, 8]]
    assert found["invented"] == [[100, "ENVELOPE_ALTERED", 0, 7]]


def test_compare_findings__all_found__recall_is_one() -> None:
    found = accuracy_figures(Counter([ALTERED]), Counter([ALTERED]))

    assert (found["recall"], found["false_positives"], found["missed"]) == (1.0, 0, [])


def test_summarize__all__has_what_the_targets_name() -> None:
    found = figures()

    assert found["rows_per_s_unsigned"] == 1_000_000
    assert found["signatures_per_s"] == 30_000
    assert found["recover_floor_per_s"] == 40_000
    assert found["signatures_to_floor"] == 0.75
    assert found["duckdb_rows_per_s"] == 5_000_000
    assert found["polars_rows_per_s"] == 2_500_000
    assert found["verified_transactions_per_s"] == 2_000
    assert found["verified_blocks_per_s"] == 20
    assert (found["recall"], found["false_positives"]) == (1.0, 0)
    assert found["rerun_ratio"] == 0.04
    assert found["linear"]["cost_ratio"] == 2.5


def test_judge__everything_just_so__is_reached_but_what_grows() -> None:
    verdicts = {what: target.verdict for what, target in judged().items()}

    assert verdicts.pop("10 times the rows: cost of a row over the fewer's") == "missed"
    assert set(verdicts.values()) == {"reached"}
    assert len(verdicts) == 6


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"rows_per_s_unsigned": 999_999}, "without signatures"),
        ({"signatures_to_floor": 0.699}, "with signatures: of coincurve's rate"),
        ({"rerun_ratio": 0.05}, "again with nothing new: of the first run"),
        ({"recall": 0.9999}, "injected faults that were found"),
        ({"false_positives": 1}, "findings that were not injected"),
    ],
)
def test_judge__just_beyond__is_missed(changes: dict[str, Any], what: str) -> None:
    assert judged(**changes)[what].verdict == "missed"


def test_judge__few_rows__no_speed_but_what_was_found() -> None:
    sizes = replace(USUAL, rows=USUAL.rows - 1).figures()
    verdicts = [target.verdict for target in judged(sizes=sizes, is_linear=False).values()]

    assert verdicts == ["run too short"] * 3 + ["reached"] * 2 + ["not measured"] * 2


@pytest.mark.parametrize("is_linear", [False, True])
def test_show__any__all_rows_and_all_targets(is_linear: bool) -> None:
    shown = BENCHMARK.tables(figures(is_linear=is_linear))

    assert max(map(len, shown.splitlines())) <= 100
    for name in ("the joins alone, DuckDB", "reconcile with all signatures", "1,000,000"):
        assert name in shown
    assert ("200,000,000 rows" in shown) is is_linear
    assert ("not measured" in shown) is not is_linear


@pytest.mark.parametrize("is_linear", [False, True])
def test_write_docs__any__names_the_machine_and_the_figures(is_linear: bool) -> None:
    text = BENCHMARK.section(figures(is_linear=is_linear))

    assert text.startswith("# How fast the audit is\n")
    assert "A CPU, 2 cores, 23 GiB" in text
    assert "duckdb 2.0.0" in text
    assert "| reconcile without signatures | 1,000,000 | 20.0 | 40.0 | 3,000 |" in text
    assert ("## Ten times the rows" in text) is is_linear
    assert all(len(line) <= 110 for line in text.splitlines() if line[:1] not in "|-")


def test_run__a_command__tells_what_it_printed_and_took() -> None:
    found = run(["sh", "-c", "echo here"], {"PATH": "/bin:/usr/bin"})

    assert found.output == "here\n"
    assert found.seconds > 0


def test_use__this_process__holds_memory_and_one_that_has_ended_holds_none() -> None:
    no_process = 2**22 + 1

    assert process_mebibytes(os.getpid()) > 1
    assert (process_mebibytes(no_process), process_cpu_seconds(no_process)) == (0, 0)


def test_use__a_child_of_a_child__both_are_found() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & wait"], start_new_session=True) as child:
        try:
            while len(found := list(descendants(os.getpid()))) < 2:
                pass
            assert child.pid in found
        finally:
            os.killpg(child.pid, signal.SIGKILL)


def test_run__another_exit_code__says_which_and_why() -> None:
    command = ["sh", "-c", "echo because >&2; exit 3"]

    with pytest.raises(CommandFailed, match=r"expected exit 0 or 1, got 3 \(because\)"):
        run(command, {"PATH": "/bin:/usr/bin"}, (0, 1))


def test_main__exports_into_a_folder_that_exists__are_refused(tmp_path: Any) -> None:
    result = CliRunner().invoke(main, ["generate", "--rows", "10", "--out", str(tmp_path)])

    assert result.exit_code == 2
    assert "one that does not exist yet" in result.output

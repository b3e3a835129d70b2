"""Measures everything in one run, one thing after the other."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.audit.commands import Measured, findings, other, reconcile, verify_chain
from benchmarks.audit.exports.generate import Edit, Exports, generate
from benchmarks.audit.exports.proved import generate_proved
from benchmarks.audit.exports.shape import Shape
from benchmarks.audit.faults.inject import Injection
from benchmarks.audit.faults.plan import Plan, plan_together
from benchmarks.audit.figures import (
    accuracy_figures,
    audit_figures,
    linear_figures,
    median_row,
    row_figures,
)
from benchmarks.audit.sizes import QUICK, Sizes

Step = Callable[[str], None]
"""Is told what comes next."""

_OTHERS: Final = ("scan", "duckdb", "polars", "recover")
_WITHOUT_SIGNATURES: Final = ("--without-signatures",)


def measured_figures(
    sizes: Sizes, is_linearity_measured: bool, folder: Path, step: Step
) -> dict[str, Any]:
    """Measure all rows of the report in an empty folder, which needs room for the exports."""
    plan = plan_together(sizes.shape, sizes.faults)
    # One round shows whether it works, not how fast it is.
    if sizes.rounds > 1:
        _start_once(folder, step)
    with _generated(sizes.shape, folder, step, Injection(plan)) as exports:
        rows = {way: row_figures(_other(way, exports, step)) for way in _OTHERS}
        rows |= _reconciled(exports, folder, "unsigned", _WITHOUT_SIGNATURES, step, sizes.rounds)
        rows |= _reconciled(exports, folder, "signed", (), step)
    accuracy = {
        row: _accuracy(plan, folder / f"out-{row}", row.startswith("signed"))
        for row in ("unsigned", "unsigned_again", "signed", "signed_again")
    }
    rows["verified"] = _verified(sizes, folder, step)
    linear = None
    if is_linearity_measured:
        linear = linear_figures([_linear(each, folder, step) for each in sizes.linear_shapes()])
    return audit_figures(rows, accuracy, {"sizes": sizes.figures(), "linear": linear})


def _start_once(folder: Path, step: Step) -> None:
    """Have all programs read from the disk: the first audit after a day waits for it."""
    with _generated(QUICK.shape, folder, step) as exports:
        step("reconcile, not measured")
        reconcile(exports, folder / "out-not-measured")


@contextmanager
def _generated(
    shape: Shape, folder: Path, step: Step, edit: Edit | None = None
) -> Iterator[Exports]:
    step(f"making exports of {shape.rows:,} payloads and {shape.nodes} nodes")
    directory = folder / "exports"
    exports = generate(directory, shape, edit)
    # The system would write the rest to the disk beside whatever is measured.
    os.sync()
    yield exports
    # Those to come may need the room.
    shutil.rmtree(directory)


def _other(way: str, exports: Exports, step: Step) -> Measured:
    step(way)
    return other(way, exports)


def _reconciled(
    exports: Exports,
    folder: Path,
    name: str,
    options: tuple[str, ...],
    step: Step,
    rounds: int = 1,
) -> dict[str, dict[str, Any]]:
    """Reconcile some times, of which the median counts, and once more with nothing new."""
    out, work = folder / f"out-{name}", folder / f"work-{name}"

    def measured(directory: Path) -> dict[str, Any]:
        found = reconcile(exports, directory, *options, "--work", str(work))
        return row_figures(found, _rows_of(exports.shape, found))

    found = []
    for number in range(1, rounds + 1):
        for former in (out, work):
            shutil.rmtree(former, ignore_errors=True)
        step(f"reconcile, {name}, {number} of {rounds}")
        found.append(measured(out))
    step(f"reconcile, {name}, again")
    return {name: median_row(found), f"{name}_again": measured(folder / f"out-{name}_again")}


def _rows_of(shape: Shape, measured: Measured) -> int:
    served = sum(node["served"] for node in measured.said["nodes"])
    return shape.rows + int(served)


def _accuracy(plan: Plan, out: Path, checks_signatures: bool) -> dict[str, Any]:
    return accuracy_figures(Counter(plan.findings(checks_signatures)), findings(out))


def _verified(sizes: Sizes, folder: Path, step: Step) -> dict[str, Any]:
    shape = sizes.proved_shape
    step(f"making a chain export of {shape.rows:,} transactions that can be proved")
    head = generate_proved(folder / "proved", shape)
    step("verify-chain")
    measured = verify_chain(folder / "proved", head)
    blocks = shape.last_block - shape.first_payload_block + 1
    return row_figures(measured, shape.rows) | {"blocks": blocks}


def _linear(shape: Shape, folder: Path, step: Step) -> dict[str, Any]:
    with _generated(shape, folder, step) as exports:
        step("reconcile, unsigned")
        out = folder / f"out-linear-{shape.rows}"
        measured = reconcile(exports, out, *_WITHOUT_SIGNATURES)
        return row_figures(measured, _rows_of(shape, measured))

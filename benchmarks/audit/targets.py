"""The audit's targets, and whether the figures of a run reach them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.audit.sizes import LINEAR_TIMES, USUAL
from benchmarks.figures import Figures
from benchmarks.target import Target, at_least, at_most, below, not_measured

MILLION_ROWS_PER_SECOND: Final = 1
FLOOR_PERCENT: Final = 70
RERUN_PERCENT: Final = 5
RECALL_PERCENT: Final = 100
LINEAR_TIMES_COST: Final = 1.1
"""Limit of a row's cost among ten times the rows, over its cost among the fewer."""
MEMORY_MEBIBYTES: Final = 4096


def targets(figures: Figures) -> Iterator[Target]:
    """Judge a run; of one that is smaller than the usual, no speed."""
    is_usual = figures["sizes"]["rows"] >= USUAL.rows
    speed, floor = figures["rows_per_s_unsigned"] / 1e6, 100 * figures["signatures_to_floor"]
    rerun = 100 * figures["rerun_ratio"]
    yield at_least("without signatures", MILLION_ROWS_PER_SECOND, speed, " M rows/s", is_usual)
    yield at_least("with signatures: of coincurve's rate", FLOOR_PERCENT, floor, "%", is_usual)
    yield below("again with nothing new: of the first run", RERUN_PERCENT, rerun, "%", is_usual)
    recall = 100 * figures["recall"]
    yield at_least("injected faults that were found", RECALL_PERCENT, recall, "%", True)
    yield at_most("findings that were not injected", 0, figures["false_positives"], "")
    yield from _linear(figures)


def _linear(figures: Figures) -> Iterator[Target]:
    what = f"{LINEAR_TIMES} times the rows: cost of a row over the fewer's"
    memory = f"{LINEAR_TIMES} times the rows: peak memory"
    linear = figures["linear"]
    if linear is None:
        yield not_measured(what, f"at most {LINEAR_TIMES_COST} ×")
        yield not_measured(memory, f"at most {MEMORY_MEBIBYTES} MiB")
        return
    is_usual = figures["sizes"]["rows"] >= USUAL.rows
    yield at_most(what, LINEAR_TIMES_COST, linear["cost_ratio"], " ×", is_usual)
    peak = linear["large"]["peak_memory_mib"]
    yield at_most(memory, MEMORY_MEBIBYTES, peak, " MiB", is_usual)

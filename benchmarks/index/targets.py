"""The indexer's targets, and whether the figures of a run reach them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.figures import Figures
from benchmarks.index.chain import USUAL
from benchmarks.index.figures import PROVED, SIGNED, TITLES
from benchmarks.target import Target, at_least, at_most, below, not_measured

FLOOR_PERCENT: Final = 35
TUTORIAL_TIMES: Final = 12
PROVED_PERCENT: Final = 60
"""Share of the rate without a proof, in the same run."""
MEMORY_MEGABYTES: Final = 150
FLAT_TIMES: Final = 1.1
"""Limit of the CPU time per event at the end of a long chain, over that at its beginning."""
P99_MILLISECONDS: Final = 50
REORG_SECONDS: Final = 1

_FEWEST_BLOCKS: Final = 100
"""With fewer blocks, the 99th percentile is the slowest one's time."""

_MEGABYTES_PER_MEBIBYTE: Final = 1.048576


def targets(figures: Figures) -> Iterator[Target]:
    """Judge a run; of one that is shorter than the usual, no speed and no memory."""
    chain = figures["chain"]
    is_usual = chain["blocks"] * chain["events_per_block"] >= USUAL.blocks * USUAL.events_per_block
    for row in SIGNED:
        percent = 100 * figures["ratios"][f"{row}_to_floor"]
        yield at_least(f"{TITLES[row]}: of floor", FLOOR_PERCENT, percent, "%", is_usual)
    for row in SIGNED:
        times = figures["ratios"][f"{row}_to_tutorial"]
        yield at_least(f"{TITLES[row]}: × tutorial", TUTORIAL_TIMES, times, " ×", is_usual)
    for proved, signed in zip(PROVED, SIGNED, strict=True):
        percent = 100 * figures["ratios"][f"{proved}_to_{signed}"]
        yield at_least(f"{TITLES[proved]}: of not proved", PROVED_PERCENT, percent, "%", is_usual)
    for row in PROVED:
        percent = 100 * figures["ratios"][f"{row}_to_proof_floor"]
        yield at_least(f"{TITLES[row]}: of its fetch", PROVED_PERCENT, percent, "%", is_usual)
    yield at_most(
        "ours, proved: peak memory", MEMORY_MEGABYTES, _megabytes(figures), " MB", is_usual
    )
    yield _flat(figures)
    yield from _following(figures)


def _megabytes(figures: Figures) -> float:
    peaks = [figures["peak_memory_mib"]]
    if figures["flat"]:
        peaks.append(figures["flat"]["peak_memory_mib"])
    return float(max(peaks)) * _MEGABYTES_PER_MEBIBYTE


def _flat(figures: Figures) -> Target:
    what = "long chain: CPU of the last events over the first's"
    if not (flat := figures["flat"]):
        return not_measured(what, f"at most {FLAT_TIMES} ×")
    times = flat["last"]["cpu_us_per_event"] / flat["first"]["cpu_us_per_event"]
    return at_most(what, FLAT_TIMES, times, " ×")


def _following(figures: Figures) -> Iterator[Target]:
    by_websocket = [ways["websocket"] for ways in figures["following"].values()]
    are_enough = min(each["blocks"] for each in by_websocket) >= _FEWEST_BLOCKS
    p99, reorg = figures["follow_p99_ms"], figures["reorg64_s"]
    yield below("following by WebSocket: p99", P99_MILLISECONDS, p99, " ms", are_enough)
    yield below("following by WebSocket: reorg of 64 blocks", REORG_SECONDS, reorg, " s")

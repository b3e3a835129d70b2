from typing import Any

import pytest

from benchmarks.index.chain import USUAL
from benchmarks.index.targets import targets
from benchmarks.target import Target

ROW = "ours, signed, SQLite: "
MEMORY, P99 = "ours, proved: peak memory", "following by WebSocket: p99"
REORG = "following by WebSocket: reorg of 64 blocks"
FLAT = "long chain: CPU of the last events over the first's"


def figures(**changes: Any) -> dict[str, Any]:
    """A run that reaches each target by just so much."""
    return {
        "chain": USUAL.figures(),
        "ratios": {
            "signed_sqlite_to_floor": 0.35,
            "signed_postgres_to_floor": 0.4,
            "signed_sqlite_to_tutorial": 12.0,
            "signed_postgres_to_tutorial": 13.0,
            "proved_sqlite_to_signed_sqlite": 0.6,
            "proved_postgres_to_signed_postgres": 0.7,
            "proved_sqlite_to_proof_floor": 0.6,
            "proved_postgres_to_proof_floor": 0.7,
        },
        "peak_memory_mib": 143.0,
        "follow_p99_ms": 49.99,
        "reorg64_s": 0.9999,
        "following": {
            "sqlite": {"websocket": {"blocks": 240}},
            "postgres": {"websocket": {"blocks": 240}},
        },
        "flat": long_chain(),
        **changes,
    }


def long_chain(last: float = 66.0, peak: float = 140.0) -> dict[str, Any]:
    return {
        "first": {"cpu_us_per_event": 60.0},
        "last": {"cpu_us_per_event": last},
        "peak_memory_mib": peak,
    }


def judged(**changes: Any) -> dict[str, Target]:
    return {target.what: target for target in targets(figures(**changes))}


def test_judge__everything_just_so__is_reached() -> None:
    assert {target.verdict for target in judged().values()} == {"reached"}
    assert len(judged()) == 12


@pytest.mark.parametrize(
    ("what", "found", "changes"),
    [
        (MEMORY, "150.05 MB", {"peak_memory_mib": 143.1}),
        (MEMORY, "150.99 MB", {"flat": long_chain(peak=144.0)}),
        (FLAT, "1.1017 ×", {"flat": long_chain(last=66.1)}),
        (P99, "50 ms", {"follow_p99_ms": 50.0}),
        (REORG, "1 s", {"reorg64_s": 1.0}),
        (
            ROW + "of floor",
            "34.99%",
            {"ratios": figures()["ratios"] | {"signed_sqlite_to_floor": 0.3499}},
        ),
        (
            ROW + "× tutorial",
            "11.99 ×",
            {"ratios": figures()["ratios"] | {"signed_sqlite_to_tutorial": 11.99}},
        ),
    ],
)
def test_judge__one_by_a_little_not__is_missed_and_shows_it(
    what: str, found: str, changes: dict[str, Any]
) -> None:
    verdicts = judged(**changes)

    assert verdicts[what].found == found
    assert [each for each, target in verdicts.items() if target.verdict != "reached"] == [what]
    assert verdicts[what].verdict == "missed"


def test_judge__short_run__calls_no_speed_and_no_memory_reached() -> None:
    chain = USUAL.figures() | {"blocks": 200}
    following = {"sqlite": {"websocket": {"blocks": 99}}}

    verdicts = judged(chain=chain, following=following, flat=None)

    assert verdicts.pop(REORG).verdict == "reached"
    assert verdicts.pop(FLAT) == Target(FLAT, "at most 1.1 ×", "", "not measured")
    assert {target.verdict for target in verdicts.values()} == {"run too short"}

"""Targets of the indexer's and the network's benchmark, and the page of the second."""

from typing import Any

import pytest

from benchmarks.index.chain import USUAL
from benchmarks.index.targets import targets as index_targets
from benchmarks.network.__main__ import BENCHMARK
from benchmarks.network.page import ROWS
from benchmarks.network.page import targets as network_targets
from benchmarks.target import Target

ROW = "ours, signed, SQLite: "
MEMORY, P99 = "ours, proved: peak memory", "following by WebSocket: p99"
REORG = "following by WebSocket: reorg of 64 blocks"
FLAT = "long chain: CPU of the last events over the first's"
CATCH_UP = "catch-up of a node: of recovering alone"
LATENCY = "publish on one node to stream on another: p99"
REPAIR, DIGESTS = "find and repair what a node lacks", "digests of the comparison"


def index(**changes: Any) -> dict[str, Any]:
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


def network(**changes: Any) -> dict[str, Any]:
    """A run that reaches each target by just so much."""
    machine = {"cores": 2, "cpu": "a processor", "python": "3.11", "grpcio": "1", "coincurve": "2"}
    sizes = {"caught_up": 30_000, "publishes": 1_000, "publishes_per_second": 100}
    sizes |= {"envelopes": 1_000_000, "differences": 10, "peers": 20}
    return {
        **{name: 1.0 for name in ROWS},
        "catch_up_ratio": 0.7,
        "two_nodes_p99_ms": 40.0,
        "repair_s": 1.99,
        "repair_bytes": 49_999.0,
        "twenty_peers_ratio": 1.5,
        "is_quick": False,
        "load_before": 0.1,
        "sizes": sizes,
        "machine": machine,
        **changes,
    }


RUNS = {"index": (index_targets, index), "network": (network_targets, network)}


def judged(name: str, **changes: Any) -> dict[str, Target]:
    targets, figures = RUNS[name]
    return {target.what: target for target in targets(figures(**changes))}


@pytest.mark.parametrize(("name", "count"), [("index", 12), ("network", 4)])
def test_judge__everything_just_so__is_reached(name: str, count: int) -> None:
    assert {target.verdict for target in judged(name).values()} == {"reached"}
    assert len(judged(name)) == count


@pytest.mark.parametrize(
    ("name", "what", "found", "changes"),
    [
        ("index", MEMORY, "150.05 MB", {"peak_memory_mib": 143.1}),
        ("index", MEMORY, "150.99 MB", {"flat": long_chain(peak=144.0)}),
        ("index", FLAT, "1.1017 ×", {"flat": long_chain(last=66.1)}),
        ("index", P99, "50 ms", {"follow_p99_ms": 50.0}),
        ("index", REORG, "1 s", {"reorg64_s": 1.0}),
        (
            "index",
            ROW + "of floor",
            "34.99%",
            {"ratios": index()["ratios"] | {"signed_sqlite_to_floor": 0.3499}},
        ),
        (
            "index",
            ROW + "× tutorial",
            "11.99 ×",
            {"ratios": index()["ratios"] | {"signed_sqlite_to_tutorial": 11.99}},
        ),
        ("network", CATCH_UP, "69.9%", {"catch_up_ratio": 0.699}),
        ("network", LATENCY, "40.1 ms", {"two_nodes_p99_ms": 40.1}),
        ("network", REPAIR, "2 s", {"repair_s": 2.0}),
        ("network", DIGESTS, "50000 bytes", {"repair_bytes": 50_000.0}),
    ],
)
def test_judge__one_by_a_little_not__is_missed_and_shows_it(
    name: str, what: str, found: str, changes: dict[str, Any]
) -> None:
    verdicts = judged(name, **changes)

    assert verdicts[what].found == found
    assert [each for each, target in verdicts.items() if target.verdict != "reached"] == [what]
    assert verdicts[what].verdict == "missed"


def test_judge__short_run__calls_no_speed_and_no_memory_reached() -> None:
    chain = USUAL.figures() | {"blocks": 200}
    following = {"sqlite": {"websocket": {"blocks": 99}}}

    verdicts = judged("index", chain=chain, following=following, flat=None)

    assert verdicts.pop(REORG).verdict == "reached"
    assert verdicts.pop(FLAT) == Target(FLAT, "at most 1.1 ×", "", "not measured")
    assert {target.verdict for target in verdicts.values()} == {"run too short"}


def test_judge__a_quick_run__reaches_nothing() -> None:
    verdicts = judged("network", is_quick=True)

    assert {target.verdict for target in verdicts.values()} == {"run too short"}


def test_page__figures_of_a_run__are_all_in_its_tables() -> None:
    shown = BENCHMARK.section(network(repair_bytes=21_000.0, twenty_peers_mib=81.5))

    assert shown.startswith("# How fast nodes are together\n")
    assert "| digests of the comparison | below 50000 bytes | 21000 bytes | reached |" in shown
    assert "| memory of the same node with its peers, MiB | 81.5 |" in shown
    assert all(f"| {what} | " in shown for what in ROWS.values())

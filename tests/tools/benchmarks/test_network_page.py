from typing import Any

import pytest

from benchmarks.network.__main__ import BENCHMARK
from benchmarks.network.page import ROWS, targets

CATCH_UP = "catch-up of a node: of recovering alone"
LATENCY = "publish on one node to stream on another: p99"
REPAIR, DIGESTS = "find and repair what a node lacks", "digests of the comparison"


def figures(**changes: Any) -> dict[str, Any]:
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


def verdicts(**changes: Any) -> dict[str, str]:
    return {each.what: each.verdict for each in targets(figures(**changes))}


def test_targets__everything_just_so__is_reached() -> None:
    assert verdicts() == dict.fromkeys((CATCH_UP, LATENCY, REPAIR, DIGESTS), "reached")


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        (CATCH_UP, {"catch_up_ratio": 0.699}),
        (LATENCY, {"two_nodes_p99_ms": 40.1}),
        (REPAIR, {"repair_s": 2.0}),
        (DIGESTS, {"repair_bytes": 50_000.0}),
    ],
)
def test_targets__one_by_a_little_not__is_missed(what: str, changes: dict[str, Any]) -> None:
    found = verdicts(**changes)

    assert found.pop(what) == "missed"
    assert set(found.values()) == {"reached"}


def test_targets__a_quick_run__reaches_nothing() -> None:
    assert set(verdicts(is_quick=True).values()) == {"run too short"}


def test_page__figures_of_a_run__are_all_in_its_tables() -> None:
    shown = BENCHMARK.section(figures(repair_bytes=21_000.0, twenty_peers_mib=81.5))

    assert shown.startswith("# How fast nodes are together\n")
    assert "| digests of the comparison | below 50000 bytes | 21000 bytes | reached |" in shown
    assert "| memory of the same node with its peers, MiB | 81.5 |" in shown
    assert all(f"| {what} | " in shown for what in ROWS.values())

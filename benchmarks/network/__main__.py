"""`python -m benchmarks.network`: measures nodes together, and writes build/bench/network.json."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import rounded
from benchmarks.harness import Benchmark, disk_folder
from benchmarks.machine import machine
from benchmarks.network.catching_up import catch_up, publish_to_stream, two_nodes
from benchmarks.network.many_peers import many_peers
from benchmarks.network.nodes import Registry, new_registry
from benchmarks.network.page import page
from benchmarks.network.repairing import repair

_PACKAGES: Final = ("grpcio", "protobuf", "SQLAlchemy", "coincurve")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    caught_up: int = 30_000
    publishes_per_second: int = 100
    publishes: int = 1_000
    envelopes: int = 1_000_000
    differences: int = 10
    peers: int = 20
    settle_seconds: float = 15.0


_QUICK: Final = Sizes(
    caught_up=2_000, publishes=200, envelopes=5_000, differences=3, peers=2, settle_seconds=1.0
)


def measured_figures(quick: bool) -> dict[str, Any]:
    """Measure real nodes of one registry, which all run on this machine, on SQLite."""
    # One thing after the other, each on a chain of its own.
    sizes = _QUICK if quick else Sizes()
    load_before = os.getloadavg()[0]
    with disk_folder() as folder:
        figures = _together(folder / "together", sizes)
        with _nodes(folder / "repairing") as (stack, registry):
            repaired = repair(stack, registry, sizes.envelopes, sizes.differences)
        with _nodes(folder / "peers") as (stack, registry):
            memory = many_peers(stack, registry, sizes.peers, sizes.settle_seconds)
    figures |= {
        "repair_s": repaired.seconds,
        "repair_bytes": repaired.answered_bytes,
        "repair_asked_bytes": repaired.asked_bytes,
        "repair_comparisons": repaired.comparisons,
        "row_bytes": repaired.row_bytes,
        "alone_mib": memory.alone,
        "twenty_peers_mib": memory.with_peers,
        "twenty_peers_ratio": memory.with_peers / memory.alone,
    }
    return {name: rounded(figure) for name, figure in figures.items()} | {
        "sizes": asdict(sizes),
        "load_before": round(load_before, 1),
        "is_quick": quick,
        "machine": machine(_PACKAGES),
    }


def _together(folder: Path, sizes: Sizes) -> dict[str, float]:
    with _nodes(folder) as (stack, registry):
        there, here = two_nodes(stack, registry)
        floor, caught_up = catch_up(here, there, sizes.caught_up)
        seconds = sizes.publishes / sizes.publishes_per_second
        pace = sizes.publishes_per_second, seconds
        alone = publish_to_stream(there, there, *pace, seed=3)
        rate = publish_to_stream(there, here, *pace, seed=4)
    return {
        "recover_floor_per_s": floor.per_second,
        "recover_floor_cpu_us": floor.cpu_us,
        "catch_up_per_s": caught_up.per_second,
        "catch_up_cpu_us": caught_up.cpu_us,
        "catch_up_ratio": caught_up.per_second / floor.per_second,
        "one_node_p50_ms": 1000 * alone.percentile(0.5),
        "one_node_p99_ms": 1000 * alone.percentile(0.99),
        "two_nodes_p50_ms": 1000 * rate.percentile(0.5),
        "two_nodes_p99_ms": 1000 * rate.percentile(0.99),
    }


@contextmanager
def _nodes(folder: Path) -> Iterator[tuple[ExitStack, Registry]]:
    """Give a registry, and what ends its nodes before their chain ends."""
    with new_registry(folder) as registry, ExitStack() as stack:
        yield stack, registry


BENCHMARK: Final = Benchmark(
    "network", "How fast nodes are together", "Some thousand envelopes", measured_figures, page
)
main: Final = BENCHMARK.command()

if __name__ == "__main__":
    main()

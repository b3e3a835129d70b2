"""`python -m benchmarks.node`: measures a node, and writes build/bench/node.json."""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import rounded
from benchmarks.harness import Benchmark, disk_folder
from benchmarks.machine import machine
from benchmarks.node.alone import measured_alone
from benchmarks.node.beside import QUICK, Pair, Sizes, beside
from benchmarks.node.builds import NOW, Build, former_build
from benchmarks.node.compared import compared
from benchmarks.node.h2load import h2load_program
from benchmarks.node.network import floor_server, measured_node, of_libpq
from benchmarks.node.page import page
from benchmarks.node.plot import plot
from localnet.postgres import Postgres

_SECONDS: Final = 10.0
_QUICK_SECONDS: Final = 2.0
_PACKAGES: Final = ("grpcio", "protobuf", "SQLAlchemy", "psycopg", "coincurve", "pyvoy")


def measured_figures(quick: bool) -> dict[str, Any]:
    """Measure a node on PostgreSQL beside the build before Envoy, and beside its floors.

    The load is on the same machine. Needs h2load, and git with the former build's commit.
    """
    # This process starts programs and calls by gRPC: its preparation for a fork is of no use.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    h2load_program()
    former, load_before = former_build(), os.getloadavg()[0]
    sizes, seconds = (QUICK, _QUICK_SECONDS) if quick else (Sizes(), _SECONDS)
    with disk_folder() as folder:
        figures = asyncio.run(_measured(folder, former, sizes, seconds))
    return figures | {
        "is_quick": quick,
        "sizes": asdict(sizes),
        "load_before": round(load_before, 1),
        "machine": machine(_PACKAGES),
    }


async def _measured(folder: Path, former: Build, sizes: Sizes, seconds: float) -> dict[str, Any]:
    with ExitStack() as stack:
        server = stack.enter_context(Postgres())
        now = stack.enter_context(measured_node(server.new_database(), folder / "now", NOW))
        with measured_node(server.new_database(), folder / "before", former) as before:
            found = compared(await beside(Pair(now, before), sizes))
        floor_url = of_libpq(server.new_database())
        floor_port = stack.enter_context(floor_server())
        alone = await measured_alone(now, floor_url, floor_port, seconds)
    return found | {name: rounded(figure) for name, figure in alone.items()}


BENCHMARK: Final = Benchmark(
    "node",
    "How fast a node is",
    "2 seconds for each figure, and one round",
    measured_figures,
    page,
    plot,
)
main: Final = BENCHMARK.command()

if __name__ == "__main__":
    main()

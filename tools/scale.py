"""Writes the tables of docs/scale.md from the figures in docs/benchmarks.md, or checks them.

Run `python -m tools.scale` after one of the benchmarks wrote its part; `--check` writes nothing and
exits 1 if a table is not what the figures make it. No number of these tables is typed by hand.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from benchmarks.markdown import table
from benchmarks.network.page import ROWS as NETWORK_ROWS
from benchmarks.network.rows import signed_rows
from benchmarks.node.page import ROWS as NODE_ROWS
from benchmarks.node.payloads import PAYER, payer_envelopes, topics
from chainkit.errors import ConfigurationError

ROOT: Final = Path(__file__).resolve().parent.parent
FIGURES: Final = ROOT / "docs" / "benchmarks.md"
PAGE: Final = ROOT / "docs" / "scale.md"

RATES: Final = tuple(10**power for power in range(2, 7))
"""Messages a second of the whole network."""
YEAR_RATES: Final = (1, 10, 100, 1_000)
"""Messages a second on the average of a year."""
NODES: Final = 20

_NODE, _NETWORK = "How fast a node is", "How fast nodes are together"
_BLOCK: Final = re.compile(r"(<!-- begin (\w+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)
_SECONDS_PER_DAY: Final = 24 * 60 * 60
_SECONDS_PER_YEAR: Final = 365 * _SECONDS_PER_DAY
_MICROSECONDS: Final = 1_000_000
_DIGITS: Final = 3


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured unit costs; times are in µs, sizes in bytes."""

    wire_bytes: int
    """An OriginatorEnvelope with the benchmarks' payload."""
    row_bytes: float
    recovers_us: float
    take_us: float
    caught_up_per_s: float
    originated_per_s: float
    copied_per_s: float
    streamed_per_s: float


def read_costs(page: str) -> Costs:
    """Return the costs in the benchmarks' page. Raises ConfigurationError."""
    node, network = _figures(page, _NODE, NODE_ROWS), _figures(page, _NETWORK, NETWORK_ROWS)
    return Costs(
        wire_bytes=_wire_bytes(),
        row_bytes=network["row_bytes"],
        recovers_us=network["recover_floor_cpu_us"],
        take_us=network["catch_up_cpu_us"],
        caught_up_per_s=network["catch_up_per_s"],
        originated_per_s=node["publish_batched_per_s"],
        copied_per_s=node["store_floor_per_s"],
        streamed_per_s=node["stream_envelopes_per_s"],
    )


def with_tables(page: str, costs: Costs) -> str:
    """Return the page with all its tables, computed from the costs."""
    made = {
        "costs": _costs_table(costs),
        "rates": _rates_table(costs),
        "ends": _ends_table(costs),
        "years": _years_table(costs),
    }
    return _BLOCK.sub(lambda found: f"{found[1]}{made[found[2]]}\n{found[3]}", page)


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a table is another one.")
def main(check: bool) -> None:
    """Write the tables of docs/scale.md."""
    before = PAGE.read_text(encoding="utf-8")
    try:
        costs = read_costs(FIGURES.read_text(encoding="utf-8"))
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from error
    after = with_tables(before, costs)
    if before == after:
        click.echo("docs/scale.md: as the benchmarks' figures make it")
        return
    if check:
        click.echo("docs/scale.md: other figures; run python -m tools.scale", err=True)
        sys.exit(1)
    PAGE.write_text(after, encoding="utf-8")
    click.echo("docs/scale.md: written anew")


def _figures(page: str, title: str, rows: Mapping[str, str]) -> dict[str, float]:
    """Return the figures of one section by their names in its JSON."""
    _, _, behind = page.partition(f"# {title}\n")
    section = re.split(r"^# ", behind, maxsplit=1, flags=re.MULTILINE)[0]
    cells = dict(re.findall(r"^\| (.+?) \| ([\d,.]+) \|$", section, re.MULTILINE))
    missing = [what for what in rows.values() if what not in cells]
    if missing:
        raise ConfigurationError(f"docs/benchmarks.md, {title}", missing[0], "no such row")
    return {name: float(cells[what].replace(",", "")) for name, what in rows.items()}


def _wire_bytes() -> int:
    some = topics(1)
    [row] = signed_rows(PAYER, NODES, 1, some, payer_envelopes(some, NODES))
    return len(row.envelope)


def _costs_table(costs: Costs) -> str:
    node, network = "`make bench-node`", "`make bench-network`"
    rows = [
        ("an envelope on the wire, bytes", costs.wire_bytes, "the benchmarks' payload, written"),
        ("an envelope on disk, with indexes and digests, bytes", costs.row_bytes, network),
        ("recover both signatures, µs of a core", costs.recovers_us, network),
        ("take another node's envelope, all together, µs of all cores", costs.take_us, network),
        ("catch up with another node, envelopes/s", costs.caught_up_per_s, network),
        ("originate, 100 payloads to a request, envelopes/s", costs.originated_per_s, node),
        ("PostgreSQL's COPY stores, rows/s", costs.copied_per_s, node),
        ("send to one reader or peer, envelopes/s", costs.streamed_per_s, node),
    ]
    head = ("cost", "figure", "source")
    return table(head, [(what, shown(value), source) for what, value, source in rows])


def _rates_table(costs: Costs) -> str:
    others = (NODES - 1) / NODES
    rows = []
    for rate in RATES:
        took = rate * others
        megabits = took * costs.wire_bytes * 8 / 10**6
        rows.append(
            (
                f"{rate:,}",
                shown(megabits),
                shown(2 * took),
                shown(took * costs.take_us / _MICROSECONDS),
                shown(rate / NODES),
                shown(rate * costs.row_bytes * _SECONDS_PER_DAY / 10**9),
            )
        )
    head = (
        *("messages/s", "Mbit/s in, and out", "signatures/s", "cores that verify and store"),
        *("own messages/s", "disk, GB a day"),
    )
    return table(head, rows)


def _years_table(costs: Costs) -> str:
    rows = []
    for rate in YEAR_RATES:
        messages = rate * _SECONDS_PER_YEAR
        size = messages * costs.row_bytes / 10**9
        rows.append((f"{rate:,}", shown(messages / 10**6), shown(size)))
    return table(("messages/s", "million envelopes a year", "disk, GB a year"), rows)


def _ends_table(costs: Costs) -> str:
    """Each limit of one process as a rate of the whole network; the lowest one comes first."""
    others = (NODES - 1) / NODES
    ends = {
        "verifying and storing others', on one core": _MICROSECONDS / costs.take_us / others,
        "verifying and storing others', as measured": costs.caught_up_per_s / others,
        "only recovering keys, on one core": _MICROSECONDS / costs.recovers_us / others,
        "originating its own share": costs.originated_per_s * NODES,
        "sending its own share to all others": (costs.streamed_per_s / (NODES - 1) * NODES),
        "PostgreSQL's COPY, from one connection": costs.copied_per_s,
    }
    in_order = sorted(ends.items(), key=lambda each: each[1])
    return table(("one process ends at", "messages/s"), [(a, shown(b)) for a, b in in_order])


def shown(value: float) -> str:
    """Return a figure with three digits that count."""
    if not value:
        return "0"
    places = _DIGITS - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    return f"{rounded:,.{max(0, places)}f}"


if __name__ == "__main__":
    main()

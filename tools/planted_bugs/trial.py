"""One planted bug, and the simulator that plays stories with it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from tools.breaking import Break, Copy
from tools.conformance.demands import read_demands

BUGS = Path(__file__).with_name("bugs.yaml")
HUNTS = {
    "network": "support.network.simulation.hunt",
    "client": "support.client.stories.hunt",
    "group": "support.client.simulation.hunt",
}
"""The program that plays the stories of each simulator."""
SEEDS = 80
"""Stories of each kind that a bug has to show in."""


@dataclass(frozen=True)
class Bug(Break):
    """A break of a rule, and the stories that must show it."""

    name: str
    lies: tuple[str, ...] = ()
    """Lies of the stories; without any, all nodes are honest."""
    simulator: str = "network"
    """One of HUNTS."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a trial."""

    bug: Bug
    found: str | None
    """The first seed that failed, and why; None where all stories ended well."""


def bugs() -> list[Bug]:
    """Return all bugs, in the order of the file."""
    demands = (each for chapter in read_demands() for each in chapter.demands)
    breaks = {each.number: asdict(each.mutation) for each in demands if each.mutation is not None}
    rows = yaml.safe_load(BUGS.read_text(encoding="utf-8"))
    broken = [breaks[row.pop("demand")] if "demand" in row else {} for row in rows]
    return [
        Bug(**(known | row | {"lies": tuple(row.get("lies", ()))}))
        for known, row in zip(broken, rows, strict=True)
    ]


def verdict(copy: Copy, bug: Bug) -> Verdict:
    """Try one bug in a copy of the project."""
    with copy.changed(bug):
        return Verdict(bug, first_failure(copy, bug.simulator, bug.lies))


def first_failure(
    copy: Copy, simulator: str = "network", lies: tuple[str, ...] = (), seeds: int = SEEDS
) -> str | None:
    """Play stories, and return the first seed that fails, and why; None where none does."""
    told = [word for lie in lies for word in ("--lie", lie)]
    module = HUNTS[simulator]
    ended = copy.python("-m", module, "--seeds", str(seeds), *told, PYTHONHASHSEED="0")
    if ended.status not in (0, 1) or (ended.status == 1 and not ended.printed):
        raise RuntimeError(f"the simulator ended with {ended.status}: {ended.errors[-2000:]}")
    return ended.printed.strip() or None

"""Runs worlds until one ends as it must not: ``python -m support.client.simulation.hunt``.

It prints the first failing seed with its reason, and exits with 1; with 0 where none fails.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from support.client.hunting import hunt
from support.client.simulation.world import MakeEngine, World, toy_engine

LONG_STEPS = 250
SHORT_STEPS = 40
WISHES = 4
"""Before the first step of a short world: all of its steps schedule what follows of them."""


def long_world(folder: Path, seed: int, make_engine: MakeEngine = toy_engine) -> Counter[str]:
    """Run a world with ever new wishes, and count what happened; a failure names its seed."""
    return _run(World(folder / f"long {seed}", seed, LONG_STEPS, make_engine=make_engine))


def short_world(folder: Path, seed: int, make_engine: MakeEngine = toy_engine) -> Counter[str]:
    """As ``long_world``, with four wishes at once."""
    return _run(World(folder / f"short {seed}", seed, SHORT_STEPS, WISHES, make_engine))


def _run(world: World) -> Counter[str]:
    try:
        world.run()
    except Exception as error:
        error.add_note(f"seed {world.seed}")
        raise
    finally:
        world.close()
    return world.counts + Counter(reorgs=world.chain.reorgs)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, required=True)
    options = parser.parse_args()
    return hunt(options.seeds, (short_world, long_world))


if __name__ == "__main__":
    raise SystemExit(main())

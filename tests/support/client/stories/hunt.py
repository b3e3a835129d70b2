"""Plays stories until one ends as it must not: ``python -m support.client.stories.hunt``.

It prints the first failing seed with its reason, and exits with 1; with 0 where none fails.
"""

from __future__ import annotations

import argparse
from collections import Counter
from functools import partial
from pathlib import Path

from support.client.hunting import hunt
from support.client.stories.nodes import LIES
from support.client.stories.story import MakeEngine, Story, toy_engine


def played(
    folder: Path, seed: int, lie: str | None = None, make_engine: MakeEngine = toy_engine
) -> Counter[str]:
    """Play one story, and count what happened in it; a failure names its seed."""
    story = Story(folder / f"{seed} {lie}", seed, lie, make_engine)
    try:
        story.play()
    except Exception as error:
        error.add_note(f"seed {seed}, lie {lie}")
        raise
    finally:
        story.close()
    return story.counts


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, required=True)
    parser.add_argument("--lie", action="append", choices=LIES, default=[])
    options = parser.parse_args()
    lies = options.lie or [None]
    return hunt(options.seeds, [partial(played, lie=lie) for lie in lies])


if __name__ == "__main__":
    raise SystemExit(main())

"""Plays stories until one ends as it must not: ``python -m support.client.stories.hunt``.

It prints the first failing seed with its reason, and exits with 1; with 0 where none fails.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from support.client.group_network import memory_folder
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
    with memory_folder() as folder:
        for seed in range(options.seeds):
            for lie in options.lie or [None]:
                try:
                    played(folder, seed, lie)
                except Exception as error:
                    print(f"{seed} {type(error).__name__}: {' '.join(str(error).split())[:200]}")
                    return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

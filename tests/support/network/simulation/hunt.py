"""Plays stories until one ends as it must not: ``python -m support.network.simulation.hunt``.

It prints the first failing seed with its reason, and exits with 1; with 0 where none fails.
"""

from __future__ import annotations

import argparse
import logging

from support.network.simulation.checks import (
    EXPECTED_REPORTS,
    check,
    check_reported,
    is_told,
)
from support.network.simulation.lies import ChainLie, Lie
from support.network.simulation.story import played


def fault(seed: int, lie: Lie | ChainLie | None) -> str | None:
    """Return why a seed's story fails, None where it does not."""
    try:
        story = played(seed, lie)
        check(story)
        if lie in EXPECTED_REPORTS and is_told(story, lie):
            check_reported(story, lie)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _lie(text: str) -> Lie | ChainLie:
    return ChainLie(text) if text in set(ChainLie) else Lie(text)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, required=True)
    parser.add_argument("--lie", action="append", type=_lie, default=[])
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    for seed in range(options.seeds):
        for lie in options.lie or [None]:
            reason = fault(seed, lie)
            if reason is not None:
                print(f"{seed} {' '.join(reason.split())[:200]}")
                return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

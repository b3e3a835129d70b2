"""Plays simulations, seed by seed, until one fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from support.client.group_network import memory_folder


def hunt(seeds: int, plays: Iterable[Callable[[Path, int], object]]) -> int:
    """Play each kind with each seed; print the first that fails with its reason, and return 1.

    Returns 0 where none fails: as a program's exit code.
    """
    kinds = list(plays)
    with memory_folder() as folder:
        for seed in range(seeds):
            for play in kinds:
                try:
                    play(folder, seed)
                except Exception as error:
                    print(f"{seed} {type(error).__name__}: {' '.join(str(error).split())[:200]}")
                    return 1
    return 0

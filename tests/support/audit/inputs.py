"""The inputs of an audit, opened and proved at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chainkit_jobs.reconcile.inputs import Inputs, open_inputs, proving


def read_inputs(chain_directory: Path, nodes: Sequence[tuple[int | None, Path]]) -> Inputs:
    """Open exports as ``open_inputs`` does, and prove their files."""
    with proving(open_inputs(chain_directory, nodes)) as proved:
        return proved()

"""The fixtures of several files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gateway.publishing_world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "gateway.db")
    yield made
    made.journal.close()

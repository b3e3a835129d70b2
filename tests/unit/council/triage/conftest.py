"""The fixture of several files."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def heap(tmp_path: Path) -> Path:
    path = tmp_path / "evidence"
    path.mkdir()
    return path

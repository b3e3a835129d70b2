"""A pytest plugin with ``support.audit.small_export``; test modules name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.audit.small_export import write_export


@pytest.fixture
def export(tmp_path: Path) -> Path:
    write_export(tmp_path / "export")
    return tmp_path / "export"

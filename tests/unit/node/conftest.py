"""The fixture of several folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.reporting import Host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path / "node.db")
    yield made
    made.close()

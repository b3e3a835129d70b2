"""A group's sync, with a database of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit_client.storage.store import Store
from support.client.sync_stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    store = Store.open(tmp_path / "client.db", "password", cost=2)
    yield Stage(store)
    store.close()

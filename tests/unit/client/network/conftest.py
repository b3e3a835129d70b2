"""A group's sync, with a database of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit_client.storage.store import Store
from support.client.sync_stage import Stage


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path / "client.db", "password", cost=2)
    yield store
    store.close()


@pytest.fixture
def stage(store: Store) -> Stage:
    return Stage(store)

"""A pytest plugin for ``support.audit.chain_export_runs``; test modules name it."""

from __future__ import annotations

import pytest


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chainkit_jobs.chain_export.export.CHUNK_BLOCKS", 2)
    # Nobody pulls a plug here.
    monkeypatch.setattr("os.fsync", lambda descriptor: None)

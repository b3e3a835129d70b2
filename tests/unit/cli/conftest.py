"""A keystore and its password, and none of the environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.key_command import KEYSTORE, PASSWORD


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAINKIT_KEYSTORE", raising=False)
    monkeypatch.delenv("CHAINKIT_PASSWORD_FILE", raising=False)


@pytest.fixture
def keystore(tmp_path: Path) -> Path:
    path = tmp_path / "node.json"
    path.write_text(json.dumps(KEYSTORE))
    return path


@pytest.fixture
def password(tmp_path: Path) -> Path:
    path = tmp_path / "password.txt"
    path.write_text(PASSWORD + "\n")
    return path

"""Secrets that localnet and the demo write are readable by their owner alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from localnet.accounts import write_keystore
from localnet.private_file import write_private


@pytest.fixture(autouse=True)
def _generous_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize("is_there", [False, True])
def test_write_private__for_any_umask__is_readable_by_its_owner_alone(
    tmp_path: Path, is_there: bool
) -> None:
    path = tmp_path / "password"
    if is_there:
        path.write_text("longer than what comes")

    write_private(path, "localnet\n")

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == "localnet\n"


def test_write_keystore__of_a_development_account__is_readable_by_its_owner_alone(
    tmp_path: Path,
) -> None:
    write_keystore(path := tmp_path / "ann.keystore", "localnet", 3)

    assert path.stat().st_mode & 0o777 == 0o600

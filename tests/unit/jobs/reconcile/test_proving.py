"""Digests are checked beside whatever else is done, and no longer than somebody waits for them."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chainkit.errors import StoreError
from chainkit_jobs.reconcile import inputs
from chainkit_jobs.reconcile.inputs import proving

Report = Callable[[int], None]

INPUTS: Any = SimpleNamespace(chain=Path("chain"), nodes=((None, Path("a")), (200, Path("b"))))


def test_proving__all_files_right__proves_every_export_with_the_threads_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proved: list[tuple[Path, int | None]] = []

    def prove(export: Path, report: Report, threads: int | None) -> None:
        proved.append((export, threads))
        report(1)

    monkeypatch.setattr(inputs, "prove_export", prove)

    with proving(INPUTS, threads=3) as done:
        done()

    assert proved == [(Path("chain"), 3), (Path("a"), 3), (Path("b"), 3)]


def test_proving__a_file_changed__is_told_to_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(export: Path, report: Report, threads: int | None) -> None:
        raise StoreError(f"export {export}", "sha256 00", "ff")

    monkeypatch.setattr(inputs, "prove_export", refuse)

    with proving(INPUTS) as done, pytest.raises(StoreError, match="export chain: expected sha256"):
        done()


def test_proving__left_before_the_end__does_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never_end(export: Path, report: Report, threads: int | None) -> None:
        while True:
            report(1)

    monkeypatch.setattr(inputs, "prove_export", never_end)

    with pytest.raises(KeyboardInterrupt), proving(INPUTS):
        raise KeyboardInterrupt

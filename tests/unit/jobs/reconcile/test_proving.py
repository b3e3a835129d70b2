"""Digests are checked beside whatever else is done, and no longer than somebody waits for them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import StoreError
from chainkit_jobs.reconcile import inputs
from chainkit_jobs.reconcile.inputs import Inputs, proving
from chainkit_jobs.sources import Export

Report = Callable[[int], None]

NO_MANIFEST: Any = None


def export(name: str) -> Export:
    return Export(Path(name), NO_MANIFEST, "")


INPUTS = Inputs(export("chain"), ((None, export("a")), (200, export("b"))))


def test_proving__all_files_right__proves_every_export_with_the_threads_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proved: list[tuple[str, int | None]] = []

    def prove(export: Export, report: Report, threads: int | None) -> None:
        proved.append((export.directory.name, threads))
        report(1)

    monkeypatch.setattr(inputs, "prove_export", prove)

    with proving(INPUTS, threads=3) as done:
        assert done() == INPUTS

    assert proved == [("chain", 3), ("a", 3), ("b", 3)]


def test_proving__a_nodes_file_changed__is_its_fault_and_the_others_are_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proved: list[str] = []

    def prove(export: Export, report: Report, threads: int | None) -> None:
        if export.directory.name == "a":
            raise StoreError("export file a/b", "sha256 00", "ff")
        proved.append(export.directory.name)

    monkeypatch.setattr(inputs, "prove_export", prove)

    with proving(INPUTS) as done:
        assert done().faults == {Path("a"): "export file a/b: expected sha256 00, got ff"}

    assert proved == ["chain", "b"]


def test_proving__the_chain_changed__is_told_to_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(export: Export, report: Report, threads: int | None) -> None:
        raise StoreError(f"export {export.directory}", "sha256 00", "ff")

    monkeypatch.setattr(inputs, "prove_export", refuse)

    with proving(INPUTS) as done, pytest.raises(StoreError, match="export chain: expected sha256"):
        done()


def test_proving__left_before_the_end__does_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never_end(export: Export, report: Report, threads: int | None) -> None:
        while True:
            report(1)

    monkeypatch.setattr(inputs, "prove_export", never_end)

    with pytest.raises(KeyboardInterrupt), proving(INPUTS):
        raise KeyboardInterrupt

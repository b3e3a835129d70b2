"""The name of a kept audit tells all that its output depends on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chainkit_jobs.reconcile import kept
from chainkit_jobs.reconcile.inputs import Inputs
from chainkit_jobs.reconcile.kept import audit_name
from chainkit_jobs.reconcile.scope import Options
from chainkit_jobs.sources import Export

NO_MANIFEST: Any = None
CHAIN = Export(Path("chain"), NO_MANIFEST, "c0")
NODES = ((None, Export(Path("a"), NO_MANIFEST, "a0")), (200, Export(Path("b"), NO_MANIFEST, "b0")))


def test_audit_name__other_place_order_or_work_folder__is_the_same() -> None:
    elsewhere = Inputs(Export(Path("x/chain"), NO_MANIFEST, "c0"), NODES[::-1])

    assert audit_name(elsewhere, None, Options(work=Path("w"))) == audit_name(
        Inputs(CHAIN, NODES), None, Options()
    )


def test_audit_name__other_inputs_options_or_formats__is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inputs = Inputs(CHAIN, NODES)
    names = [
        audit_name(inputs, None, Options()),
        audit_name(inputs, b"\1" * 32, Options()),
        audit_name(inputs, None, Options(with_tables=True)),
        audit_name(Inputs(CHAIN, NODES[:1]), None, Options()),
        audit_name(Inputs(Export(Path("chain"), NO_MANIFEST, "c1"), NODES), None, Options()),
    ]
    for constant in ("SUMMARY_FORMAT", "__version__"):
        monkeypatch.setattr(kept, constant, "another")
        names.append(audit_name(inputs, None, Options()))

    assert len(set(names)) == len(names)

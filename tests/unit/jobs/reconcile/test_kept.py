"""The name of a kept audit tells all that its output depends on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chainkit.exports import Manifest
from chainkit_jobs.reconcile import kept
from chainkit_jobs.reconcile.inputs import Inputs
from chainkit_jobs.reconcile.kept import audit_name
from chainkit_jobs.reconcile.scope import Options
from chainkit_jobs.sources import Export

OWN = Manifest("node", 1, "", {}, 1, 2, "", {})
ANSWERS = replace(OWN, answered_to=8)
CHAIN = Export(Path("chain"), replace(OWN, kind="chain"), "c0")
NODES = ((None, Export(Path("a"), OWN, "a0")), (200, Export(Path("b"), OWN, "b0")))


def test_audit_name__other_place_order_or_work_folder__is_the_same() -> None:
    elsewhere = Inputs(Export(Path("x/chain"), CHAIN.manifest, "c0"), NODES[::-1])

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
        audit_name(Inputs(Export(Path("chain"), CHAIN.manifest, "c1"), NODES), None, Options()),
    ]
    for constant in ("SUMMARY_FORMAT", "__version__"):
        monkeypatch.setattr(kept, constant, "another")
        names.append(audit_name(inputs, None, Options()))

    assert len(set(names)) == len(names)


def test_audit_name__a_node_was_asked__order_and_folders_are_part_of_it() -> None:
    first, second, moved = (
        (None, Export(Path(name), ANSWERS, digest))
        for name, digest in (("a", "a0"), ("b", "b0"), ("c", "b0"))
    )

    names = {
        audit_name(Inputs(CHAIN, nodes), None, Options())
        for nodes in ((first, second), (second, first), (first, moved))
    }

    assert len(names) == 3

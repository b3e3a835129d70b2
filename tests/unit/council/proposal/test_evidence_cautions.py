"""Evidence that does not bear a proposal's calls out, at an endpoint of the drafter's choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chainkit.cli.change.evidence import evidence_cautions, read_exhibit
from chainkit.contracts.state import ContractState
from chainkit.council.calls import Call
from support.audit.audit_exports import Row, base_posts, key_of
from support.audit.bundles import ACCUSED, OTHER, BundleScene, bundle_scene
from support.council.triage import SceneRegistry


def refuted(scene: BundleScene) -> Row:
    """An alleged alteration of what the chain holds byte for byte."""
    return scene.finding("ENVELOPE_ALTERED", 3, scene.post(3).envelope(key_of(ACCUSED)))


def altered(scene: BundleScene) -> Row:
    return scene.altered(3)


def cautions(scene: BundleScene, node_id: int = ACCUSED, chain_id: int | None = None) -> list[str]:
    """The cautions where the scene's bundle is the evidence to disable a node."""
    record = replace(scene.record, chain_id=chain_id or scene.record.chain_id)
    witness = SceneRegistry(scene=scene).witness()
    call = Call.make(record, "NodeRegistry", "updateHealth", node_id, False)
    state = ContractState(witness.endpoint, witness.block)
    return list(evidence_cautions([read_exhibit(scene.bundle)], [call], record, state))


@pytest.mark.parametrize(
    ("finding", "given", "expected"),
    [
        (altered, {}, []),
        (altered, {"node_id": OTHER}, ['"node-200" accuses node 200, which no call disables']),
        (altered, {"chain_id": 1}, ['"node-200" is about chain id 31337, not 1']),
        (refuted, {}, ['"node-200" is not proved here: refuted']),
    ],
    ids=["fits", "another node", "another chain", "refuted"],
)
def test_evidence_cautions__evidence_that_does_not_bear_the_calls_out__is_named(
    tmp_path: Path,
    finding: Callable[[BundleScene], Row],
    given: dict[str, Any],
    expected: list[str],
) -> None:
    scene = bundle_scene(tmp_path)
    scene.write([finding(scene)])

    assert cautions(scene, **given) == [f"evidence {words}" for words in expected]


def test_evidence_cautions__endpoint_of_another_chain__is_told_as_not_proved(
    tmp_path: Path,
) -> None:
    scene = bundle_scene(tmp_path)
    scene.write([altered(scene)])

    (caution,) = cautions(
        replace(scene, chain=bundle_scene(tmp_path / "other", posts=base_posts()[1:]).chain)
    )

    assert caution.startswith('evidence "node-200" is not proved here: endpoint ')

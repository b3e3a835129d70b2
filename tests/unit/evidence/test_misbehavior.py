"""`chainkit audit report-misbehavior` over an audit by hand: what is refuted stays unsigned."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from chainkit.signatures import keccak256
from support.audit.audit_exports import key_of
from support.audit.bundles import ACCUSED, BundleScene, bundle_scene
from support.command_line import Outcome, run, write_keystore

ENVELOPES = {
    "refuted": lambda scene: scene.post(3).envelope(key_of(ACCUSED)),
    "proved": lambda scene: scene.altered(3)["envelope"],
}


def reported(scene: BundleScene, envelope: bytes) -> Outcome:
    """The command's answer to an alleged alteration of sequence 3."""
    scene.write_audit([scene.finding("ENVELOPE_ALTERED", 3, envelope)])
    [row] = pq.read_table(scene.root / "audit" / "findings.parquet").to_pylist()
    return run(
        *("audit", "report-misbehavior", "--findings", scene.root / "audit"),
        *("--chain", scene.root / "chain", "--finding", row["finding_id"]),
        *("--out", scene.root / "report.pb"),
        *write_keystore(scene.root, keccak256(b"reporter")),
    )


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [
        ("refuted", 2, "expected what the chain does not hold, got what the node signed is byte"),
        ("proved", 0, "proved the transaction posts another payload"),
    ],
)
def test_report_misbehavior__finding_that_the_chain_refutes__alone_is_not_signed(
    tmp_path: Path, kind: str, code: int, words: str
) -> None:
    scene = bundle_scene(tmp_path)

    outcome = reported(scene, ENVELOPES[kind](scene))

    assert outcome.code == code, outcome.err
    assert words in " ".join((outcome.out + outcome.err).split())
    assert (tmp_path / "report.pb").exists() == (kind == "proved")

"""An audit's output and the chain export that it proved, written by hand: no Spark is needed.

::

    scene = bundle_scene(tmp_path)
    scene.write()                                   # bundles/node-200
    scene.trusted_hash, scene.record_path, scene.bundle
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainkit.contracts.deployment import DeploymentRecord, parse_deployment_record
from chainkit.council.evidence import BundleVerdict, Verdict, verify_bundle
from chainkit.documents.canonical import line_bytes, page_bytes
from chainkit.errors import MalformedData, MalformedEnvelope
from chainkit.evidence.bundle import FILE_NAMES
from chainkit.evidence.findings import finding_id
from chainkit.evidence.folder import read_bundle
from chainkit.protocol.envelope import blockchain_proof_digest, parse_originator_envelope
from chainkit.signatures import SigningKey, keccak256
from chainkit_jobs.evidence.bundle import Reporter, WrittenBundle, accused_nodes, write_bundles
from chainkit_jobs.evidence.bundle_inputs import read_bundle_inputs
from chainkit_jobs.findings import FINDINGS, complete
from support.audit.audit_exports import (
    GENESIS,
    GROUP_MESSAGES,
    IDENTITY_UPDATES,
    NODE_REGISTRY,
    Post,
    Row,
    administration,
    base_posts,
    key_of,
    registered,
)
from support.chains.proved_chain import CHAIN_ID, ProvedChain, Sent, proved_chain, sent_of
from support.payloads import commit

ACCUSED, OTHER = 200, 100
OTHER_PAYLOAD = commit(b"\x01" * 32, size=60, seed=77)
REPORTER = SigningKey(keccak256(b"reporter"))
REPORTED_AT = 1_700_000_000 * 10**9


@dataclass(frozen=True)
class BundleScene:
    root: Path
    chain: ProvedChain
    posts: Sequence[Post]
    """As they stand on the chain, with their transactions."""

    @property
    def trusted_hash(self) -> bytes:
        return self.chain.head_hash

    @property
    def bundle(self) -> Path:
        """The bundle about the accused node."""
        return self.root / "bundles" / f"node-{ACCUSED}"

    @property
    def record(self) -> DeploymentRecord:
        return parse_deployment_record(json.loads(self.record_path.read_text()), "record")

    @property
    def record_path(self) -> Path:
        return self.root / "deployment.json"

    def post(self, sequence_id: int) -> Post:
        return self.posts[sequence_id - 1]

    def altered(self, sequence_id: int, /, **changes: Any) -> Row:
        """The finding that the accused serves a payload that differs from the chain's."""
        post = self.post(sequence_id)
        served = replace(post, **({"payload": OTHER_PAYLOAD} | changes)).envelope(key_of(ACCUSED))
        return self.finding("ENVELOPE_ALTERED", changes.get("sequence_id", sequence_id), served)

    def finding(self, code: str, sequence_id: int, envelope: bytes | None) -> Row:
        """A row of findings without id; the chain's side is filled in where there is any."""
        row: Row = dict.fromkeys(FINDINGS.names)
        row |= {"code": code, "node_id": ACCUSED, "originator_id": 0, "sequence_id": sequence_id}
        if 0 < sequence_id <= len(self.posts):
            post = self.post(sequence_id)
            row |= {
                "block_number": post.block,
                "log_index": 0,
                "transaction_hash": post.transaction_hash,
                "expected_digest": blockchain_proof_digest(post.unsigned, post.transaction_hash),
            }
        return row | {"envelope": envelope, "served_digest": _served_digest(envelope)}

    def write_audit(self, findings: Sequence[Row], **summary: Any) -> None:
        """Write an audit's output, as far as a bundle needs it."""
        audit = self.root / "audit"
        audit.mkdir(exist_ok=True)
        keys = {node_id: key_of(node_id).public_key for node_id in (OTHER, ACCUSED)}
        rows = complete(findings, keys)
        pq.write_table(pa.Table.from_pylist(rows, schema=FINDINGS), audit / "findings.parquet")
        content = {
            "chain": {"manifest_sha256": digest(self.root / "chain" / "manifest.json")},
            "trust": {"block_hash": "0x" + self.trusted_hash.hex()},
            "nodes": [{"node_id": each, "manifest_sha256": "ab" * 32} for each in keys],
        }
        (audit / "summary.json").write_text(json.dumps(content | summary))

    def write(
        self,
        findings: Sequence[Row] | None = None,
        reporter: Reporter = Reporter(REPORTED_AT, REPORTER),  # noqa: B008
        out: str = "bundles",
    ) -> list[WrittenBundle]:
        """Write an audit with findings, by default ``usual_findings``, and its bundles."""
        self.write_audit(usual_findings(self) if findings is None else findings)
        inputs = read_bundle_inputs(self.root / "audit", self.root / "chain")
        return write_bundles(inputs, accused_nodes(inputs, None), self.root / out, reporter)


def _served_digest(envelope: bytes | None) -> bytes | None:
    if envelope is None:
        return None
    try:
        served = parse_originator_envelope(envelope)
    except MalformedEnvelope:
        return None
    return blockchain_proof_digest(served.unsigned_originator_envelope, served.transaction_hash)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def usual_findings(scene: BundleScene) -> list[Row]:
    """Findings: one that proves itself, one of a reorg, one invented, one missing, one honest."""
    invented = replace(scene.post(7), sequence_id=99, transaction=keccak256(b"invented"))
    return [
        scene.altered(3),
        scene.altered(6, payload=scene.post(6).payload, sequence_id=5),
        scene.finding("ENVELOPE_INVENTED", 99, invented.envelope(key_of(ACCUSED))),
        scene.finding("ENVELOPE_MISSING", 5, None),
        scene.finding("QUARANTINED_SERVED", 4, scene.post(4).envelope(key_of(ACCUSED))),
    ]


def bundle_scene(
    root: Path,
    more: Sequence[Sent] = (),
    blocks_per_file: int | None = None,
    posts: Sequence[Post] | None = None,
) -> BundleScene:
    """Write a chain export whose hashes are real, and the deployment record of its contracts."""
    posts = base_posts() if posts is None else posts
    registry = administration(
        [
            registered(OTHER),
            registered(ACCUSED, block=3),
            registered(ACCUSED, block=18, is_enabled=False),
        ],
        {},
    )
    chain = proved_chain([*sent_of(posts, registry), *more])
    chain.write(root / "chain", blocks_per_file)
    (root / "deployment.json").write_text(json.dumps(record_content()))
    placed = [replace(each, transaction=chain.transaction_of(each.sequence_id)) for each in posts]
    return BundleScene(root, chain, placed)


def record_content(**addresses: bytes) -> dict[str, Any]:
    """The deployment record of the chain's contracts; other ``addresses`` by contract name."""
    known = {
        "GroupMessages": GROUP_MESSAGES,
        "IdentityUpdates": IDENTITY_UPDATES,
        "NodeRegistry": NODE_REGISTRY,
        "OriginatorSequence": b"\x55" * 20,
    } | addresses
    contracts: dict[str, Any] = {name: _contract(address) for name, address in known.items()}
    for name in ("GroupMessages", "IdentityUpdates"):
        contracts[name]["implementation"] = _contract(b"\x66" * 20)
    return {
        "format": 1,
        "chain_id": CHAIN_ID,
        "genesis_hash": "0x" + GENESIS.hex(),
        "deployer": "0x" + "77" * 20,
        "contracts": contracts,
    }


def _contract(address: bytes) -> dict[str, Any]:
    return {"address": "0x" + address.hex(), "block": 1, "transaction": "0x" + "00" * 32}


def reseal(bundle: Path, **changes: Any) -> None:
    """Write the files' present digests, and other fields, as a cheat could."""
    path = bundle / "bundle.json"
    content = json.loads(path.read_text()) | changes
    content.pop("sha256")
    content["files"] = {
        name: {"bytes": (bundle / name).stat().st_size, "sha256": digest(bundle / name)}
        for name in FILE_NAMES
    }
    sealed = hashlib.sha256(line_bytes(content)).hexdigest()
    path.write_bytes(page_bytes(content | {"sha256": sealed}))


def rewrite_line(path: Path, number: int, **changes: Any) -> None:
    """Change fields in a line of a file of a bundle."""
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number] = line_bytes(json.loads(lines[number]) | changes)
    path.write_bytes(b"".join(lines))


def relabel(bundle: Path, number: int, **changes: Any) -> None:
    """Change a field of a finding, and all digests, its id and its reports' names with it."""
    path = bundle / "findings.jsonl"
    line = path.read_bytes().splitlines()[number]
    before = json.loads(line)["finding_id"]
    fields = json.loads(line) | changes
    digests = {
        name: None if fields[name] is None else bytes.fromhex(fields[name][2:])
        for name in ("expected_digest", "served_digest", "envelope")
    }
    event, sequence_id = fields["event"], fields["sequence_id"]
    identity = finding_id(
        **{name: fields[name] for name in ("code", "node_id", "originator_id")},
        **digests,
        sequence_id=None if sequence_id is None else int(sequence_id),
        event=event and (event["block_number"], event["log_index"], event["detail"]),
    )
    rewrite_line(path, number, **changes, finding_id=identity)
    for report in list((bundle / "reports").glob(f"{before}*")):
        report.rename(report.with_name(report.name.replace(before, identity)))
    reseal(bundle)


def copied(scene: BundleScene, root: Path) -> BundleScene:
    """The scene with its files in another folder, where a test damages them."""
    shutil.copytree(scene.root, root)
    return replace(scene, root=root)


def verified(scene: BundleScene) -> BundleVerdict:
    """Return all that the bundle shows."""
    bundle = read_bundle(scene.bundle)
    return verify_bundle(scene.bundle, bundle, scene.trusted_hash, scene.record)


def proved(scene: BundleScene) -> set[tuple[int, bytes | None]]:
    """The nodes and transactions of the payloads that the bundle proves to be served."""
    return {
        (read_bundle(scene.bundle).node_id, finding.transaction_hash)
        for finding in verified(scene).findings
        if finding.verdict is Verdict.PROVED
    }


def refused(scene: BundleScene, words: str) -> None:
    """Check that the bundle is refused as malformed, with these words."""
    with pytest.raises(MalformedData, match=words):
        proved(scene)


def guilty(scene: BundleScene) -> set[tuple[int, bytes | None]]:
    """The node and the transaction that the usual findings prove."""
    return {(ACCUSED, scene.post(3).transaction)}

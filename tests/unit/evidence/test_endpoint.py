"""A bundle checked with an endpoint: it gives the hash, and is asked what the bundle lacks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from chainkit.council.evidence import BundleVerdict, Verdict, verify_bundle_with_endpoint
from chainkit.errors import ConfigurationError, InconsistentAnswer
from chainkit.evidence.folder import read_bundle
from chainkit.types import BlockReference, Node
from support.audit.audit_exports import key_of
from support.audit.bundles import ACCUSED, OTHER, OTHER_PAYLOAD, BundleScene, bundle_scene, reseal
from support.council.fake_registry import FakeRegistry
from support.endpoints.fake_endpoint import FakeProvider

HEAD = 30


def registered(*node_ids: int) -> list[Node]:
    return [Node(each, key_of(each).public_key, "https://node", True) for each in node_ids]


@dataclass
class ChainRegistry(FakeRegistry):
    """The registry, on the chain of a scene, which has grown since the bundle was made."""

    scene: BundleScene | None = None
    nodes: list[Node] = field(default_factory=lambda: registered(OTHER, ACCUSED))
    forked_at: int = HEAD + 1
    """From this height on other hashes are told."""

    def header(self, number: str, _full: bool) -> dict[str, str] | None:
        assert self.scene is not None
        height = HEAD if number == "latest" else int(number, 16)
        if height > HEAD:
            return None
        is_own = height <= self.scene.chain.last_block and height < self.forked_at
        return {
            "number": hex(height),
            "hash": "0x" + self._hash(height if is_own else -height).hex(),
            "parentHash": "0x" + bytes(32).hex(),
            "timestamp": hex(1_700_000_000 + 2 * height),
        }

    def _hash(self, height: int) -> bytes:
        assert self.scene is not None
        return self.scene.chain.hash_of(height) if height > 0 else bytes([-height]) * 32


@pytest.fixture
def scene(tmp_path: Path) -> BundleScene:
    return bundle_scene(tmp_path)


def verified(
    scene: BundleScene, registry: ChainRegistry | None = None, **answers: Any
) -> BundleVerdict:
    registry = registry or ChainRegistry(scene=scene)
    known = registry.answers() | {"eth_getTransactionReceipt": None} | answers
    endpoint = FakeProvider(known).endpoint()
    head = endpoint.header(HEAD).reference
    bundle = read_bundle(scene.bundle)
    return verify_bundle_with_endpoint(scene.bundle, bundle, endpoint, scene.record, head)


def test_verify__endpoint_has_the_bundles_last_block__proves_the_same(scene: BundleScene) -> None:
    scene.write()

    result = verified(scene)

    assert [finding.verdict for finding in result.findings] == [
        *(Verdict.PROVED, Verdict.NOT_PROVED, Verdict.NOT_PROVED, Verdict.NOT_PROVED),
        Verdict.REFUTED,
    ]
    assert "neither this bundle nor this endpoint contains" in result.findings[2].reason
    steps = {step.name: step.found for step in result.steps}
    assert steps["accused"].startswith("node 200, disabled")
    assert steps["registry now"].startswith("node 200, enabled")


@pytest.mark.parametrize("forked_at", [20, 5])
def test_verify__endpoint_has_another_block_there__could_not_be_checked(
    scene: BundleScene, forked_at: int
) -> None:
    scene.write()

    with pytest.raises(ConfigurationError, match="the chain of the bundle's last block"):
        verified(scene, ChainRegistry(scene=scene, forked_at=forked_at))


def test_verify__endpoint_forks_meanwhile__could_not_be_checked(scene: BundleScene) -> None:
    scene.write()

    class Forking(ChainRegistry):
        asked = 0

        def header(self, number: str, full: bool) -> dict[str, str] | None:
            if number == hex(20):
                self.asked += 1
                self.forked_at = 20 if self.asked > 1 else HEAD
            return super().header(number, full)

    with pytest.raises(InconsistentAnswer, match="block 20"):
        verified(scene, Forking(scene=scene))


def test_verify__registry_has_another_key__could_not_be_checked(scene: BundleScene) -> None:
    scene.write()
    nodes = [replace(node, signing_key=key_of(7).public_key) for node in registered(ACCUSED)]

    with pytest.raises(InconsistentAnswer, match="the key that the bundle proves"):
        verified(scene, ChainRegistry(scene=scene, nodes=nodes))


def test_verify__transaction_that_the_bundle_lacks__is_asked_for(scene: BundleScene) -> None:
    scene.write([scene.altered(3)])
    path = scene.bundle / "transactions.jsonl"
    transaction = scene.post(3).transaction
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if transaction.hex().encode() not in line))
    reseal(scene.bundle)
    assert verified(scene).verdict == Verdict.NOT_PROVED

    result = verified(scene, **answers_of(scene, 3))

    assert result.verdict == Verdict.PROVED


def test_verify__transaction_above_the_last_block__is_not_looked_at(scene: BundleScene) -> None:
    later = replace(scene.post(3), payload=OTHER_PAYLOAD, transaction=b"\x09" * 32)
    scene.write([scene.finding("ENVELOPE_INVENTED", 3, later.envelope(key_of(ACCUSED)))])
    registry = ChainRegistry(scene=scene)
    header = registry.header(hex(25), False)
    assert header is not None
    block = BlockReference(25, bytes.fromhex(header["hash"][2:]))

    result = verified(scene, registry, **answers_of(scene, 3, b"\x09" * 32, block))

    assert result.verdict == Verdict.NOT_PROVED
    assert "absence is not proof" in result.findings[0].reason


def answers_of(
    scene: BundleScene,
    sequence_id: int,
    hash_: bytes | None = None,
    block: BlockReference | None = None,
) -> dict[str, Any]:
    """An endpoint's answer about the transaction that brought a payload, or about one like it."""
    post = scene.post(sequence_id)
    [sent] = scene.chain.block(post.block)["transactions"]
    [log] = scene.chain.block(post.block)["logs"]
    block = block or BlockReference(post.block, scene.chain.hash_of(post.block))
    place = {
        "blockNumber": hex(block.number),
        "blockHash": "0x" + block.hash.hex(),
        "transactionHash": "0x" + (hash_ or post.transaction).hex(),
        "transactionIndex": "0x0",
    }
    emitted = {
        "address": "0x" + log["address"].hex(),
        "topics": ["0x" + topic.hex() for topic in log["topics"]],
        "data": "0x" + log["data"].hex(),
        "logIndex": "0x0",
    }
    to = "0x" + sent["to_address"].hex()
    return {
        "eth_getTransactionReceipt": place | {"status": "0x1", "to": to, "logs": [place | emitted]},
        "eth_getTransactionByHash": {"input": "0x" + sent["input"].hex()},
    }

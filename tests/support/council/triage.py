"""Signed reports of every type, and claims and a registry on paper, for triage.

::

    claims = [proof(300, b"one", reporter=AUDITOR), tells(300, 100), tells(300, 200)]
    rank(claims, [], roll(100, 200, 300), 3)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from chainkit.contracts.registry import RegisteredNode
from chainkit.council.triage.checks import Witness
from chainkit.council.triage.values import Claim, RegisteredNodes
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.reports import sign_report
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import Node
from support.audit.bundles import ACCUSED, OTHER, BundleScene
from support.audit.identities import key_of
from support.council.fake_registry import FakeRegistry
from support.endpoints.fake_endpoint import FakeProvider
from support.originated import NOW_NS

AUDITOR = SigningKey(keccak256(b"auditor"))
OTHER_AUDITOR = SigningKey(keccak256(b"other auditor"))


def liveness_report(
    node_id: int,
    key: SigningKey,
    misbehavior: Misbehavior = Misbehavior.UNRESPONSIVE_NODE,
    time_ns: int = 1,
    is_from_node: bool = True,
) -> bytes:
    """A signed report that a node did not answer as it should."""
    report = message_api_pb2.UnsignedMisbehaviorReport(
        reporter_time_ns=time_ns,
        misbehaving_node_id=node_id,
        type=misbehavior.value,  # type: ignore[arg-type]
        submitted_by_node=is_from_node,
    )
    report.liveness.response_time_ns = 2_000_000_000
    return sign_report(report.SerializeToString(), key)


def safety_report(
    node_id: int,
    key: SigningKey,
    misbehavior: Misbehavior,
    *envelopes: bytes,
    time_ns: int = NOW_NS,
    is_from_node: bool = False,
) -> bytes:
    """A signed report of a safety failure, with the envelopes that were served."""
    report = message_api_pb2.UnsignedMisbehaviorReport(
        reporter_time_ns=time_ns,
        misbehaving_node_id=node_id,
        type=misbehavior.value,  # type: ignore[arg-type]
        submitted_by_node=is_from_node,
    )
    for envelope in envelopes:
        report.safety.envelopes.add().ParseFromString(envelope)
    return sign_report(report.SerializeToString(), key)


def registered(node_id: int, is_enabled: bool = True, holder: str = "") -> RegisteredNode:
    """A node of a holder of its own, or of the one that is named."""
    node = Node(node_id, key_of(node_id).public_key, f"https://{node_id}.example", is_enabled)
    return RegisteredNode(node, holder or f"holder of {node_id}")


def roll(*nodes: int | RegisteredNode) -> RegisteredNodes:
    """The registry at a block; a number stands for an enabled node."""
    entries = [registered(each) if isinstance(each, int) else each for each in nodes]
    return {each.node.node_id: each for each in entries}


def proof(node_id: int, *what: bytes, reporter: SigningKey | None = AUDITOR, **more: Any) -> Claim:
    """A claim that proves some things of a node."""
    claim = Claim(
        source=more.pop("source", "-".join([str(node_id), *(each.decode() for each in what)])),
        node_id=node_id,
        misbehavior=Misbehavior.BLOCKCHAIN_INCONSISTENCY,
        reporter=None if reporter is None else reporter.public_key,
        proofs=frozenset(map(keccak256, what)),
        digest=keccak256(b"".join(what)),
        accused_key=key_of(node_id).public_key,
    )
    return replace(claim, **more)


def tells(node_id: int, reporter: int, number: int = 0, **more: Any) -> Claim:
    """A claim of a node that another node did not answer; ``number`` distinguishes its reports."""
    source = f"{node_id}-by-{reporter}-{number}"
    claim = Claim(
        source=source,
        node_id=node_id,
        misbehavior=Misbehavior.UNRESPONSIVE_NODE,
        reporter=key_of(reporter).public_key,
        proofs=frozenset(),
        digest=keccak256(source.encode()),
        accused_key=key_of(node_id).public_key,
        is_from_node=True,
    )
    return replace(claim, **more)


@dataclass
class SceneRegistry(FakeRegistry):
    """The registry on the chain of a bundle's scene, whose last block is the head."""

    scene: BundleScene | None = None
    nodes: list[Node] = field(
        default_factory=lambda: [registered(each).node for each in (OTHER, ACCUSED)]
    )

    def header(self, number: str, _full: bool) -> dict[str, str] | None:
        assert self.scene is not None
        chain = self.scene.chain
        height = chain.last_block if number == "latest" else int(number, 16)
        if height > chain.last_block:
            return None
        return {
            "number": hex(height),
            "hash": "0x" + chain.hash_of(height).hex(),
            "parentHash": "0x" + bytes(32).hex(),
            "timestamp": hex(1_700_000_000 + 2 * height),
        }

    def witness(self, **answers: Any) -> Witness:
        """The council's own endpoint as a witness, with other ``answers`` where they are given."""
        known = self.answers() | {"eth_getTransactionReceipt": None} | answers
        endpoint = FakeProvider(known).endpoint()
        registered = roll(*map(_held, self.nodes))
        return Witness(endpoint, endpoint.head().reference, registered, NOW_NS)


def _held(node: Node) -> RegisteredNode:
    return RegisteredNode(node, f"holder of {node.node_id}")

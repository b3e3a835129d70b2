"""The chain behind an endpoint: registered nodes and posted payloads.

A payload that contracts which are not ours did not emit here proves no lie (evidence.judgement): it
is absent.

All functions block; call them in a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment, FollowedRegistry, node_registry_of
from chainkit.contracts.registry import Registry
from chainkit.council.evidence.report import fetch_mined
from chainkit.errors import ConfigurationError
from chainkit.evidence.emission import EmittingContracts, MinedTransaction
from chainkit.evidence.judgement import EnvelopeJudge, Find
from chainkit.evidence.verdict import Verdict
from chainkit.types import BlockHeader, BlockReference, Node
from chainkit_client.network.chain_status import ChainStatus, Found

_NONE: Final = frozenset[int]()


@dataclass(frozen=True, slots=True)
class Chain:
    """A deployment behind an endpoint."""

    endpoint: Endpoint
    record: DeploymentRecord | FollowedDeployment
    """That of our own contracts, or one that lists its contracts."""
    originator_ids: frozenset[int]
    """Originators that are the chain."""

    @property
    def sparse_ids(self) -> frozenset[int]:
        """Those of the originators whose payloads come under any sequence ids (ADR 50)."""
        record = self.record
        return record.sparse_originator_ids if isinstance(record, FollowedDeployment) else _NONE

    @property
    def node_registry(self) -> FollowedRegistry:
        """The registry on the chain. Raises ConfigurationError where the record names none."""
        return node_registry_of(self.record)

    def read_nodes(self, wanted: Sequence[int] = ()) -> tuple[BlockReference, Sequence[Node]]:
        """Return the head, and the registry there.

        Raises ConfigurationError for unknown ids, and where no node is enabled.
        """
        block = self.endpoint.head().reference
        nodes = Registry(self.endpoint, self.node_registry.address).nodes(block)
        known = {each.node_id for each in nodes}
        for each in wanted:
            if each not in known:
                listed = ", ".join(map(str, sorted(known))) or "none"
                raise ConfigurationError("NODE", f"one of the registry: {listed}", each)
        if not any(each.is_enabled for each in nodes):
            raise ConfigurationError("registry", "an enabled node", f"none at block {block}")
        return block, nodes

    def judge(self, node: Node, block: BlockReference, envelope: bytes) -> Verdict:
        """Compare a payload that a node vouched for with the chain up to a block."""
        return self._judge(node, block, partial(fetch_mined, self.endpoint), envelope)

    def find(
        self, node: Node, block: BlockReference, envelope: bytes, transaction_hash: bytes
    ) -> Found:
        """Look a payload up on the chain up to a block, exactly as a node vouched for it."""
        mined = fetch_mined(self.endpoint, transaction_hash)

        def known(wanted: bytes) -> MinedTransaction | None:
            return mined if wanted == transaction_hash else None

        verdict = self._judge(node, block, known, envelope)
        if verdict is Verdict.REFUTED and mined is not None:
            return Found(ChainStatus.CONFIRMED, mined.receipt.block.reference)
        return Found(ChainStatus.FALSE if verdict is Verdict.PROVED else ChainStatus.ABSENT)

    def still_there(self, blocks: Iterable[BlockReference]) -> frozenset[BlockReference]:
        """Return which of some blocks the chain has now, by one batch of requests.

        A payload that was found in such a block is still on the chain.
        """
        wanted = sorted(set(blocks), key=lambda each: each.number)
        found = self.endpoint.headers([each.number for each in wanted])
        return frozenset(each.reference for each in found if each is not None) & set(wanted)

    def final(self) -> BlockHeader | None:
        """Return the last final block, None where the endpoint knows no final block."""
        return self.endpoint.tagged_header("finalized")

    def _judge(self, node: Node, block: BlockReference, find: Find, envelope: bytes) -> Verdict:
        contracts = EmittingContracts.of(self.record)
        judge = EnvelopeJudge(node, contracts, block, find, "this endpoint does not know")
        return judge.judge(envelope).verdict

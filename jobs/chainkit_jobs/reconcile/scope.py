"""The scope of an audit: everything that is compared, and by which rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pyspark import SparkContext

from chainkit.errors import StoreError
from chainkit.exports import Manifest
from chainkit.protocol.payload_contract import PayloadContract, sparse_originators
from chainkit_jobs.administration.logs import read_administration
from chainkit_jobs.administration.replay import REGISTRY, Administration
from chainkit_jobs.counters import counters_of
from chainkit_jobs.findings import Checks
from chainkit_jobs.proof import ChainProof, prove_chain
from chainkit_jobs.proof.result import WHOLE_BLOCKS
from chainkit_jobs.reconcile.bins import Bins
from chainkit_jobs.reconcile.comparability import (
    Comparability,
    NodeExport,
    compare_ranges,
    set_aside,
)
from chainkit_jobs.reconcile.expected import PayloadContracts
from chainkit_jobs.reconcile.identity import identify_nodes, registry_of
from chainkit_jobs.reconcile.inputs import Inputs
from chainkit_jobs.reconcile.nodes import registry_at
from chainkit_jobs.sources import (
    Export,
    block_hashes,
    envelopes_problem,
    payload_contracts,
)
from chainkit_jobs.spark.frames import session_in


@dataclass(frozen=True, slots=True)
class Options:
    """How much is asked of an audit."""

    with_signatures: bool = True
    """Whether signatures are checked: nine tenths of the work."""
    with_tables: bool = False
    """Whether to compare the tables of nodes' exports beside their envelopes."""
    with_costs: bool = False
    """Whether to compute the chain's costs, too, which takes about as long as the comparison."""
    work: Path | None = None
    """A folder for what need not be done again; see screening.job."""


DEFAULT_OPTIONS: Final = Options()


@dataclass(frozen=True, slots=True)
class AuditScope:
    """Everything that an audit compares: made once by ``read_scope``, and handed on."""

    chain: Export
    contracts: tuple[PayloadContract, ...]
    """Those whose events are payloads."""
    administration: Administration | None
    """The replay of the contracts' own events; None where the chain export begins after the first
    of them, because a history without its beginning would contradict all that follows; and where
    the contracts are not our own, whose events are not known."""
    nodes: tuple[NodeExport, ...]
    """All nodes whose export was identified, by id."""
    comparability: Comparability
    """The compared nodes, and why others are not compared."""
    options: Options
    proof: ChainProof | None
    """The part of the chain export that follows from the trusted block hash; None if none is."""

    @property
    def is_listed(self) -> bool:
        """Whether the chain export lists its payload contracts, which are not our own then."""
        return self.chain.manifest.payload_contracts is not None

    @property
    def own_contracts(self) -> PayloadContracts:
        """The addresses of our own two contracts; only where ``is_listed`` is False."""
        messages, updates = (contract.address for contract in self.contracts)
        return PayloadContracts(messages, updates)

    @property
    def sparse(self) -> frozenset[int]:
        """The originators whose sequence ids have gaps and come in any order."""
        return sparse_originators(self.contracts)

    @property
    def unread_counters(self) -> tuple[int, ...]:
        """The originators that count, and whose number in the last block is not known."""
        counters = counters_of(self.chain.manifest)
        counted = {contract.originator_id for contract in self.contracts} - self.sparse
        return tuple(
            each for each in sorted(counted) if each not in counters or counters[each].after is None
        )

    @property
    def has_registry(self) -> bool:
        """Whether the chain export names the registry that keys are read from."""
        return REGISTRY in self.chain.manifest.contracts

    @property
    def is_whole(self) -> bool:
        """Whether each payload up to the last block is proved to be in the chain export."""
        manifest = self.chain.manifest
        first = min(contract.block for contract in self.contracts)
        return (
            self.proof is not None
            and manifest.from_block <= first
            and not any(each.gap.code in WHOLE_BLOCKS for each in self.proof.unproved)
        )

    @property
    def compared(self) -> tuple[NodeExport, ...]:
        """The nodes that are compared, by id."""
        return self.comparability.comparable

    @property
    def signing_keys(self) -> dict[int, bytes]:
        """Compared node's id to its registered key (65 bytes)."""
        return {node.node.node_id: node.node.signing_key for node in self.compared}

    @property
    def checks(self) -> Checks:
        """The checks that this audit makes: the severity of findings depends on them."""
        return Checks(self.proof is not None, self.options.with_signatures)

    @property
    def bins(self) -> Bins:
        """The bins that the coverage is counted in."""
        return Bins.over(self.chain.manifest.from_block, self.chain.manifest.to_block)

    def compared_blocks(self, node: NodeExport) -> tuple[int, int]:
        """Return the first and last block that both exports contain."""
        own, whole = node.manifest, self.chain.manifest
        return max(own.from_block, whole.from_block), min(own.to_block, whole.to_block)

    def without(self, unreadable: Mapping[int, str]) -> AuditScope:
        """Set nodes aside whose rows turned out to be unreadable: node id to why."""
        return replace(self, comparability=set_aside(self.comparability, unreadable))


def read_scope(
    context: SparkContext,
    inputs: Inputs,
    trusted_hash: bytes | None = None,
    options: Options = DEFAULT_OPTIONS,
) -> AuditScope:
    """Decide what of some exports can be compared; ``inputs`` are proved: see ``proving``.

    The chain export is proved first if a block hash is trusted. Raises StoreError or
    ConfigurationError where the chain export cannot be used at all or an id is not registered, and
    StoreError where the chain export does not follow from the 32 bytes of ``trusted_hash``.
    """
    proof = None if trusted_hash is None else _proved(context, inputs.chain, trusted_hash)
    return scope_of_inputs(inputs, options, proof)


def scope_of_inputs(
    inputs: Inputs, options: Options = DEFAULT_OPTIONS, proof: ChainProof | None = None
) -> AuditScope:
    """Decide which parts of exports can be compared, by their footers alone: see ``read_scope``."""
    chain = inputs.chain
    contracts, is_listed = payload_contracts(chain), chain.manifest.payload_contracts is not None
    late = _begins_late(chain.manifest)
    administration = None
    if is_listed and REGISTRY not in chain.manifest.contracts:
        registry = registry_of(inputs, chain.manifest.to_block)
    else:
        addresses = {REGISTRY: chain.contract(REGISTRY)}
        if not is_listed:
            addresses |= {contract.name: contract.address for contract in contracts}
        administration = read_administration(chain, addresses)
        registry = registry_at(administration, chain.manifest.to_block, late)
    identified = identify_nodes(inputs, registry)
    nodes = identified.nodes
    comparability = compare_ranges(
        chain, nodes, _block_hashes(chain, nodes), _problems(inputs, nodes)
    )
    return AuditScope(
        chain=chain,
        contracts=contracts,
        administration=None if late or is_listed else administration,
        nodes=nodes,
        comparability=replace(
            comparability,
            refused=(*inputs.refused, *identified.refused, *comparability.refused),
        ),
        options=options,
        proof=proof,
    )


def _problems(inputs: Inputs, nodes: Sequence[NodeExport]) -> dict[int, str]:
    """Return by node id why an export cannot be read; a file with a fault is not opened."""
    found = {}
    for node in nodes:
        fault = inputs.faults.get(node.export.directory)
        problem = f"its export cannot be used: {fault}" if fault else envelopes_problem(node.export)
        if problem is not None:
            found[node.node.node_id] = problem
    return found


def _proved(context: SparkContext, chain: Export, trusted_hash: bytes) -> ChainProof:
    proof = prove_chain(session_in(context), chain, trusted_hash)
    if not proof.problems_total and proof.is_anchored:
        return proof
    subject = f"export {chain.directory}"
    expected = f"what follows from block {chain.manifest.to_block} 0x{trusted_hash.hex()}"
    got = f"{proof.problems_total} problems, {proof.proved.blocks} of {proof.held.blocks} blocks"
    hint = "`chainkit audit verify-chain` tells which"
    raise StoreError(subject, expected, f"{got} proved", hint)


def _begins_late(manifest: Manifest) -> str:
    first = manifest.first_block
    if manifest.from_block <= (first or 0):
        return ""
    known = "" if first is None else f", {first}"
    return (
        f"the chain export begins at block {manifest.from_block}, maybe after the registry's "
        f"first entries: export it from the deployment's first block{known}"
    )


def _block_hashes(chain: Export, nodes: Sequence[NodeExport]) -> dict[int, bytes]:
    last = chain.manifest.to_block
    exports = [export for node in nodes for export in (node.export, *node.others)]
    hashes = block_hashes(chain, {last, *(each.manifest.to_block for each in exports)})
    found = "0x" + hashes[last].hex() if last in hashes else "none"
    if found != chain.manifest.to_block_hash.lower():
        expected = f"block {last} with hash {chain.manifest.to_block_hash}"
        raise StoreError(f"export {chain.directory}", expected, found)
    return hashes

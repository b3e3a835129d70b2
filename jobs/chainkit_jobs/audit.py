"""The job: read the exports, compare them, and gather the few rows that the report shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from chainkit.errors import StoreError
from chainkit.exports import Manifest
from chainkit_jobs.administration.replay import REGISTRY, Administration
from chainkit_jobs.comparison import Comparability, NodeExport, compare_ranges, identify_nodes
from chainkit_jobs.evidence.chain_rows import (
    SequenceBounds,
    chain_findings,
    event_findings,
    payload_findings,
)
from chainkit_jobs.evidence.rows import node_findings
from chainkit_jobs.expected import PayloadContracts, check_decoded, expected_envelopes
from chainkit_jobs.findings import complete
from chainkit_jobs.gas import gas_table, message_costs
from chainkit_jobs.nodes import read_administration, registry_at
from chainkit_jobs.proof import ChainProof, prove_chain
from chainkit_jobs.reconcile import ComparedNode, compare_keys, judge, node_counts
from chainkit_jobs.served import served_envelopes
from chainkit_jobs.sources import (
    PAYLOAD_CONTRACTS,
    Export,
    check_same_network,
    envelopes_problem,
    read_blocks,
    read_export,
    read_logs,
    read_raw_envelopes,
    read_receipts,
)

TIMELINE_BINS: Final = 60
COST_SAMPLE: Final = 2000
"""Points in the plot of gas by size: more would hide one another."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Exports of one network, proved against their manifests."""

    chain: Export
    nodes: tuple[tuple[int | None, Export], ...]
    """Each with its node's id, or None where its key tells it."""


@dataclass(frozen=True, slots=True)
class Payloads:
    """What the chain export holds in all."""

    count: int
    quarantined: int
    first_sequence: int | None
    last_sequence: int | None
    costed: int
    """Messages whose transaction carried no other, so that its gas is theirs."""


@dataclass(frozen=True, slots=True)
class Audit:
    """Everything the outputs are made of, in a fixed order."""

    chain: Export
    nodes: tuple[NodeExport, ...]
    comparability: Comparability
    payloads: Payloads
    is_administration_compared: bool
    """Whether the export begins early enough to tell who ruled the contracts."""
    counts: dict[int, Row]
    """Node id to expected, served, matched and outside."""
    findings: list[Row]
    """Columns of findings.FINDINGS."""
    gas: list[Row]
    """Columns of gas.GAS."""
    cost_sample: list[Row]
    """contract, payload_size and gas of single messages."""
    timeline: list[Row]
    """contract, first block of a bin, messages in it."""
    timeline_step: int
    """Blocks in a bin of the timeline."""
    proof: ChainProof | None = None
    """What of the chain export hangs on the block hash that is trusted; None if none is."""


def read_inputs(chain_directory: Path, nodes: Sequence[tuple[int | None, Path]]) -> Inputs:
    """Open a chain export and the exports of some nodes, without Spark.

    ``nodes`` are pairs of node id (None: found by its key) and folder. Raises StoreError where
    an export is none, was changed after it was written, or is of another chain or contracts.
    """
    chain = read_export(chain_directory, "chain")
    first, last = chain.manifest.from_block, chain.manifest.to_block
    if first > last:
        expected = f"a first block up to its last, {last}"
        raise StoreError(f"export {chain_directory}", expected, first)
    exports = [(node_id, read_export(directory, "node")) for node_id, directory in nodes]
    check_same_network(chain, [export for _, export in exports])
    return Inputs(chain, tuple(exports))


def run_audit(spark: SparkSession, inputs: Inputs, trusted_hash: bytes | None = None) -> Audit:
    """Compare nodes' exports with a chain export, proved first if a block hash is trusted.

    A node whose export cannot be compared is set aside and named; the others are compared.
    Raises StoreError or ConfigurationError where an export cannot be used at all, and StoreError
    where the chain export does not follow from the 32 bytes of ``trusted_hash``.
    """
    chain = inputs.chain
    proof = None if trusted_hash is None else _proved(spark, chain, trusted_hash)
    logs = read_logs(spark, chain)
    contracts = {name: chain.contract(name) for name in (REGISTRY, *PAYLOAD_CONTRACTS)}
    administration = read_administration(logs, contracts, chain.manifest.to_block)
    late = _begins_late(chain.manifest)
    registry = registry_at(administration, chain.manifest.to_block, late)
    nodes = identify_nodes(inputs.nodes, registry)
    hashes = _block_hashes(spark, chain, nodes)
    found = {node.node.node_id: envelopes_problem(node.export) for node in nodes}
    problems = {node_id: problem for node_id, problem in found.items() if problem is not None}
    comparability = compare_ranges(chain, nodes, hashes, problems)
    # What was not seen from the beginning would contradict all that follows.
    audit = _compare(spark, chain, tuple(nodes), comparability, None if late else administration)
    return replace(audit, proof=proof)


def _proved(spark: SparkSession, chain: Export, trusted_hash: bytes) -> ChainProof:
    proof = prove_chain(spark, chain, trusted_hash)
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


def _block_hashes(
    spark: SparkSession, chain: Export, nodes: Sequence[NodeExport]
) -> dict[int, bytes]:
    last = chain.manifest.to_block
    numbers = sorted({last, *(node.manifest.to_block for node in nodes)})
    rows = read_blocks(spark, chain).filter(sf.col("number").isin(numbers)).collect()
    hashes = {row["number"]: bytes(row["hash"]) for row in rows}
    found = "0x" + hashes[last].hex() if last in hashes else "none"
    if found != chain.manifest.to_block_hash.lower():
        expected = f"block {last} with hash {chain.manifest.to_block_hash}"
        raise StoreError(f"export {chain.directory}", expected, found)
    return hashes


def _compare(
    spark: SparkSession,
    chain: Export,
    nodes: tuple[NodeExport, ...],
    comparability: Comparability,
    administration: Administration | None,
) -> Audit:
    contracts = PayloadContracts(chain.contract("GroupMessages"), chain.contract("IdentityUpdates"))
    logs, blocks = read_logs(spark, chain), read_blocks(spark, chain)
    manifest = chain.manifest
    step = 1 + (manifest.to_block - manifest.from_block) // TIMELINE_BINS
    with (
        _kept(expected_envelopes(logs, blocks, contracts)) as expected,
        _kept(message_costs(expected, read_receipts(spark, chain))) as costs,
    ):
        check_decoded(expected)
        payloads = _payloads(expected, costs)
        _check_counters(chain, payloads)
        counts, found = _judge_nodes(spark, chain, comparability, expected, payloads)
        if administration:
            found += event_findings(administration) + payload_findings(expected, administration)
        keys = {node.node.node_id: node.node.signing_key for node in comparability.comparable}
        return Audit(
            chain=chain,
            nodes=nodes,
            comparability=comparability,
            payloads=payloads,
            counts=counts,
            findings=complete(found, keys),
            is_administration_compared=administration is not None,
            gas=_rows(gas_table(costs).orderBy("contract", "size_from")),
            cost_sample=_rows(_cost_sample(costs)),
            timeline=_rows(_timeline(expected, manifest.from_block, step)),
            timeline_step=step,
        )


def _judge_nodes(
    spark: SparkSession,
    chain: Export,
    comparability: Comparability,
    expected: DataFrame,
    payloads: Payloads,
) -> tuple[dict[int, Row], list[Row]]:
    nodes = comparability.comparable
    if not nodes:
        return {}, []
    registered_keys = {node.node.node_id: node.node.signing_key for node in nodes}
    raw = read_raw_envelopes(spark, {node.node.node_id: node.export for node in nodes})
    verified = served_envelopes(raw, registered_keys)
    # Signatures are the cost of an audit: verify each once, then look at the result thrice.
    with (
        _kept(verified) as served,
        _kept(compare_keys(expected, served, sorted(registered_keys))) as keys,
    ):
        judged = judge(keys, [_compared_node(chain, node) for node in nodes])
        counts = {row["node_id"]: row for row in _rows(node_counts(judged))}
        found = _rows(node_findings(judged, served, raw))
        found += chain_findings(keys, _bounds(chain.manifest, payloads))
    empty = {node_id: _no_counts(node_id) for node_id in registered_keys}
    return empty | counts, found


def _no_counts(node_id: int) -> Row:
    """Where neither the chain nor any node holds an envelope, there is no key to count."""
    return {"node_id": node_id} | dict.fromkeys(("expected", "served", "matched", "outside"), 0)


def _check_counters(chain: Export, payloads: Payloads) -> None:
    """Logs beyond the counter contradict it: such an export must accuse nobody of anything."""
    before, after = chain.manifest.sequence_before, chain.manifest.sequence_after
    first, last = payloads.first_sequence, payloads.last_sequence
    subject = f"export {chain.directory}"
    if before is not None and first is not None and first <= before:
        raise StoreError(subject, f"sequences above {before}, its sequence_before", first)
    if after is not None and last is not None and last > after:
        raise StoreError(subject, f"sequences up to {after}, its sequence_after", last)


def _bounds(manifest: Manifest, payloads: Payloads) -> SequenceBounds:
    return SequenceBounds(
        before=manifest.sequence_before,
        first=payloads.first_sequence,
        last=payloads.last_sequence,
        after=manifest.sequence_after,
    )


def _compared_node(chain: Export, node: NodeExport) -> ComparedNode:
    own, whole = node.manifest, chain.manifest
    return ComparedNode(
        node_id=node.node.node_id,
        first_block=max(own.from_block, whole.from_block),
        last_block=min(own.to_block, whole.to_block),
        highest_sequence=whole.sequence_after,
    )


def _payloads(expected: DataFrame, costs: DataFrame) -> Payloads:
    [row] = expected.agg(
        sf.count("*").alias("count"),
        sf.count("quarantine_reason").alias("quarantined"),
        sf.min("sequence_id").alias("first"),
        sf.max("sequence_id").alias("last"),
    ).collect()
    return Payloads(
        count=row["count"],
        quarantined=row["quarantined"],
        first_sequence=None if row["first"] is None else int(row["first"]),
        last_sequence=None if row["last"] is None else int(row["last"]),
        costed=costs.count(),
    )


def _timeline(expected: DataFrame, first_block: int, step: int) -> DataFrame:
    bin_start = sf.expr(f"({first_block} + ((block_number - {first_block}) div {step}) * {step})")
    counted = expected.groupBy("contract", bin_start.alias("block")).agg(
        sf.count("*").alias("messages")
    )
    return counted.select("contract", "block", "messages").orderBy("contract", "block")


def _cost_sample(costs: DataFrame) -> DataFrame:
    """Return a sample that every run takes alike: a transaction's hash is random, but fixed."""
    sample = costs.orderBy("transaction_hash").limit(COST_SAMPLE)
    return sample.select("contract", "payload_size", "gas")


def _rows(frame: DataFrame) -> list[Row]:
    """Bring few rows to the driver, with bytes as bytes and decimals exact."""
    rows: list[Row] = frame.toArrow().to_pylist()
    return rows


@contextmanager
def _kept(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep a frame between the actions that need it, and let go of it."""
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()

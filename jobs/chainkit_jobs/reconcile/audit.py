"""The job: read the exports, compare them, and gather the few rows that the report shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any, Final

from pyspark import SparkContext

from chainkit.errors import MalformedLog, StoreError
from chainkit.exports import Manifest
from chainkit.terminal.bar import progress_bar
from chainkit_jobs.administration.logs import read_administration
from chainkit_jobs.administration.replay import REGISTRY, Administration
from chainkit_jobs.cost.digest import CostDigest, read_digest
from chainkit_jobs.findings import complete
from chainkit_jobs.proof import ChainProof, prove_chain
from chainkit_jobs.reconcile.chain_findings import (
    SequenceBounds,
    chain_findings,
    event_findings,
    payload_findings,
)
from chainkit_jobs.reconcile.chain_keys import chain_keys
from chainkit_jobs.reconcile.comparability import (
    Comparability,
    NodeExport,
    compare_ranges,
    identify_nodes,
    set_aside,
)
from chainkit_jobs.reconcile.doubtful import misplaced_rows
from chainkit_jobs.reconcile.expected import PayloadContracts, expected_envelopes
from chainkit_jobs.reconcile.judge import compared_blocks, judge_nodes
from chainkit_jobs.reconcile.node_tables import NodeTables, node_table_findings
from chainkit_jobs.reconcile.nodes import registry_at
from chainkit_jobs.reconcile.screening.job import Found, Screening, results_folder
from chainkit_jobs.reconcile.screening.plan import NodeInput, make_plan
from chainkit_jobs.reconcile.screening.results import FORBIDDEN, QUARANTINED
from chainkit_jobs.reconcile.screening.rules import posting_rules
from chainkit_jobs.reconcile.screening.screen import ScreenedNode
from chainkit_jobs.sources import (
    PAYLOAD_CONTRACTS,
    Export,
    block_hashes,
    check_same_network,
    envelopes_problem,
    open_export,
    prove_export,
    read_blocks,
    read_logs,
)
from chainkit_jobs.spark.frames import session_in

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Exports of one network."""

    chain: Export
    nodes: tuple[tuple[int | None, Export], ...]
    """Each with its node's id, or None where its key tells it."""


@dataclass(frozen=True, slots=True)
class Options:
    """How much is asked of an audit."""

    with_signatures: bool = True
    """Whether signatures are checked: nine tenths of the work."""
    with_tables: bool = False
    """Whether to compare what nodes' exports say beside their envelopes."""
    with_costs: bool = False
    """Whether to tell what the chain cost, too, which takes about as long as the comparison."""
    work: Path | None = None
    """A folder for what need not be done again; see screening.job."""


DEFAULT_OPTIONS: Final = Options()


@dataclass(frozen=True, slots=True)
class Payloads:
    """The payloads of the chain export, in all."""

    count: int
    quarantined: int
    first_sequence: int | None
    last_sequence: int | None


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
    tables_not_compared: tuple[str, ...]
    """A sentence for each table of a node that was not compared."""
    with_signatures: bool
    """Whether the nodes' signatures were checked."""
    coverage: list[Row]
    """Columns of coverage.COVERAGE, by node and block."""
    costs: CostDigest | str | None = None
    """The chain's costs, the reason why they are not known, or None where nobody asked."""
    proof: ChainProof | None = None
    """The part of the chain export that follows from the trusted block hash; None if none is."""


def open_inputs(chain_directory: Path, nodes: Sequence[tuple[int | None, Path]]) -> Inputs:
    """Open a chain export and the exports of some nodes, without Spark; see ``proving``.

    ``nodes`` are pairs of node id (None: found by its key) and folder. Raises StoreError where
    an export is none, or is of another chain or contracts.
    """
    chain = open_export(chain_directory, "chain")
    first, last = chain.manifest.from_block, chain.manifest.to_block
    if first > last:
        expected = f"a first block up to its last, {last}"
        raise StoreError(f"export {chain_directory}", expected, first)
    exports = [(node_id, open_export(directory, "node")) for node_id, directory in nodes]
    check_same_network(chain, [export for _, export in exports])
    return Inputs(chain, tuple(exports))


@contextmanager
def proving(inputs: Inputs, threads: int | None = None) -> Iterator[Callable[[], None]]:
    """Prove the files of all exports beside whatever is done meanwhile.

    Call what it gives before any file is believed: it waits, and raises StoreError where an export
    was changed after it was written. ``threads`` are as many as cores where none are named.
    """
    abandoned = Event()

    def report(more: int) -> None:
        if abandoned.is_set():
            raise CancelledError

    def prove() -> None:
        for export in (inputs.chain, *(export for _, export in inputs.nodes)):
            prove_export(export, report, threads)

    with ThreadPoolExecutor(1) as pool:
        proof = pool.submit(prove)
        try:
            yield proof.result
        finally:
            # A caller that leaves early does not wait for the rest.
            abandoned.set()


def read_inputs(chain_directory: Path, nodes: Sequence[tuple[int | None, Path]]) -> Inputs:
    """Open exports as ``open_inputs`` does, and prove their files. Raises StoreError."""
    inputs = open_inputs(chain_directory, nodes)
    with proving(inputs) as proved:
        proved()
    return inputs


def run_audit(
    context: SparkContext,
    inputs: Inputs,
    trusted_hash: bytes | None = None,
    options: Options = DEFAULT_OPTIONS,
) -> Audit:
    """Compare nodes' exports with a chain export, proved first if a block hash is trusted.

    A node whose export cannot be compared is set aside and named; the others are compared.
    Raises StoreError or ConfigurationError where an export cannot be used at all, and StoreError
    where the chain export does not follow from the 32 bytes of ``trusted_hash``.
    """
    chain = inputs.chain
    proof = None if trusted_hash is None else _proved(context, chain, trusted_hash)
    contracts = {name: chain.contract(name) for name in (REGISTRY, *PAYLOAD_CONTRACTS)}
    administration = read_administration(chain, contracts)
    late = _begins_late(chain.manifest)
    registry = registry_at(administration, chain.manifest.to_block, late)
    nodes = identify_nodes(inputs.nodes, registry)
    hashes = _block_hashes(chain, nodes)
    found = {node.node.node_id: envelopes_problem(node.export) for node in nodes}
    problems = {node_id: problem for node_id, problem in found.items() if problem is not None}
    comparability = compare_ranges(chain, nodes, hashes, problems)
    # A history without its beginning would contradict all that follows.
    ruled = None if late else administration
    with results_folder(context, options.work) as work:
        wanted = replace(options, work=work)
        audit = _compare(context, chain, tuple(nodes), comparability, ruled, wanted)
    costs = read_digest(session_in(context), chain) if options.with_costs else None
    return replace(audit, proof=proof, costs=costs)


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
    hashes = block_hashes(chain, {last, *(node.manifest.to_block for node in nodes)})
    found = "0x" + hashes[last].hex() if last in hashes else "none"
    if found != chain.manifest.to_block_hash.lower():
        expected = f"block {last} with hash {chain.manifest.to_block_hash}"
        raise StoreError(f"export {chain.directory}", expected, found)
    return hashes


def _compare(
    context: SparkContext,
    chain: Export,
    nodes: tuple[NodeExport, ...],
    comparability: Comparability,
    administration: Administration | None,
    options: Options,
) -> Audit:
    contracts = PayloadContracts(chain.contract("GroupMessages"), chain.contract("IdentityUpdates"))
    plan = make_plan(
        chain,
        [_screened(chain, node) for node in comparability.comparable],
        contracts,
        posting_rules(administration),
        with_signatures=options.with_signatures,
        with_quarantined=options.with_tables,
    )
    with progress_bar("comparing", len(plan.units) + len(plan.leftovers)) as advance:
        screening = Screening(context, plan, options.work, advance)
    comparability = set_aside(comparability, screening.unreadable)
    _check_decoded(screening.found)
    payloads = _payloads(screening.found)
    _check_counters(chain, payloads)
    judged = judge_nodes(
        context,
        chain,
        contracts,
        comparability.comparable,
        screening,
        with_signatures=options.with_signatures,
    )
    tables = NodeTables([], ("what nodes' exports say beside their envelopes: see --tables",))
    if options.with_tables:
        tables = node_table_findings(
            session_in(context),
            chain,
            comparability.comparable,
            screening.found.frame(QUARANTINED),
            administration,
            judged.findings,
            misplaced_rows(screening.found),
        )
    found = judged.findings + tables.findings
    found += _about_chain(context, chain, contracts, screening.found, payloads)
    if administration:
        found += event_findings(administration)
        found += payload_findings(screening.found.rows(FORBIDDEN), administration)
    keys = {node.node.node_id: node.node.signing_key for node in comparability.comparable}
    return Audit(
        chain=chain,
        nodes=nodes,
        comparability=comparability,
        payloads=payloads,
        counts=judged.counts,
        findings=complete(found, keys),
        is_administration_compared=administration is not None,
        tables_not_compared=tables.not_compared,
        with_signatures=options.with_signatures,
        coverage=judged.coverage,
    )


def _screened(chain: Export, node: NodeExport) -> NodeInput:
    first, last = compared_blocks(chain, node)
    return NodeInput(
        ScreenedNode(node.node.node_id, node.node.signing_key, first, last), node.export
    )


def _about_chain(
    context: SparkContext,
    chain: Export,
    contracts: PayloadContracts,
    screening: Found,
    payloads: Payloads,
) -> list[Row]:
    keys = None
    if not screening.is_consecutive:
        spark = session_in(context)
        logs, blocks = read_logs(spark, chain), read_blocks(spark, chain)
        keys = chain_keys(expected_envelopes(logs, blocks, contracts))
    return chain_findings(keys, _bounds(chain.manifest, payloads))


def _check_decoded(screening: Found) -> None:
    """Raise MalformedLog if the export holds a log that the contracts cannot have emitted."""
    malformed = [unit.malformed for unit in screening.units if unit.malformed]
    for log in sorted(malformed, key=lambda log: (log["block_number"], log["log_index"]))[:1]:
        place = f"block {log['block_number']}, log {log['log_index']}"
        raise MalformedLog("chain export", "payload logs that decode", log["malformed"], place)


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


def _payloads(screening: Found) -> Payloads:
    held = [unit for unit in screening.units if unit.payloads]
    return Payloads(
        count=sum(unit.payloads for unit in held),
        quarantined=sum(unit.quarantined for unit in held),
        first_sequence=min((first for first, _ in screening.ranges.values()), default=None),
        last_sequence=max((last for _, last in screening.ranges.values()), default=None),
    )

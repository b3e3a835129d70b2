"""An audit of contracts that are not our own: two counters, or sparse sequence ids (ADR 50)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from chainkit.protocol.envelope import ServedEnvelope, sign_originator_envelope
from chainkit.protocol.envelope import unsigned_originator_envelope as unsigned
from chainkit.protocol.proto import envelopes_pb2
from chainkit.protocol.reports import sign_inconsistency_report
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import PayloadEvent, TopicKind
from chainkit_indexer.export import write_export
from support.audit.answering_node import answering
from support.audit.audit_exports import key_of, write_node
from support.chains.exported_chain import rows_of
from support.chains.other_chain import (
    GROUP,
    KEY,
    OtherChain,
    OtherNode,
    commit,
    compiled_codes,
    other_chain,
    publish_some,
    sparse_chain,
    update,
)
from support.command_line import Outcome, run, write_keystore
from support.endpoints.fault_proxy import Fault, FaultProxy
from support.endpoints.faults import result_changed

OTHER = key_of(2)
AUDITOR = keccak256(b"auditor")


@pytest.fixture(scope="module")
def codes() -> Mapping[str, bytes]:
    return compiled_codes()


@pytest.fixture(scope="module")
def sparse(codes: Mapping[str, bytes], tmp_path_factory: Any) -> Iterator[OtherChain]:
    """Ids in any order, one of them twice, one that no cursor reaches, and a malformed payload."""
    with sparse_chain(codes, tmp_path_factory.mktemp("sparse"), nodes=(KEY, OTHER)) as chain:
        first = chain.bootstrapped({1000: commit(1), 17: commit(2)})
        chain.mined.mine([first, chain.update(update(1))])
        chain.mined.mine([chain.bootstrapped({400: commit(3), 17: commit(4), 5: b"\xff"})])
        chain.mined.mine([chain.bootstrapped({0: commit(5)}), chain.update(update(2))])
        yield chain


@pytest.fixture(scope="module")
def counted(codes: Mapping[str, bytes], tmp_path_factory: Any) -> Iterator[OtherChain]:
    with other_chain(codes, tmp_path_factory.mktemp("counted")) as chain:
        publish_some(chain)
        yield chain


def exported(chain: OtherChain, out: Path, *options: str, url: str = "") -> Outcome:
    where = ("--rpc", url or chain.endpoint.name, "--deployment", str(chain.record_path))
    return run("audit", "export-chain", *where, "--out", str(out), *options)


def manifest_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return content


def operated(chain: OtherChain, folder: Path) -> list[ServedEnvelope]:
    """Export what a node serves that follows the chain, and return it."""
    node = OtherNode(chain, folder.with_suffix(".db"))
    node.catch_up()
    with node.store() as store:
        write_export(store, folder)
    return node.served()


def stranger(folder: Path, like: Path, envelopes: list[ServedEnvelope]) -> Path:
    """Write the export of a node that signs some envelopes with another key."""
    shared = ("chain_id", "genesis_hash", "contracts", "from_block", "to_block", "to_block_hash")
    about = {name: value for name, value in manifest_of(like).items() if name in shared}
    signed = [
        sign_originator_envelope(e.unsigned_originator_envelope, e.transaction_hash, OTHER)
        for e in envelopes
    ]
    return write_node(folder, signed, OTHER, **about)


def reconciled(folder: Path, *options: str, codes: Collection[int] = (0, 1)) -> dict[str, Any]:
    done = run(
        *("audit", "reconcile", "--chain", str(folder / "chain"), "--out", str(folder / "audit")),
        *("--node", f"100={folder / 'node'}", "--node", f"200={folder / 'other'}", "--json"),
        *options,
    )
    assert done.code in codes, done.err
    summary: dict[str, Any] = done.content
    return summary


def head_hash(folder: Path) -> str:
    return str(manifest_of(folder)["to_block_hash"])


@dataclass(frozen=True)
class Audited:
    """An audit of the sparse chain, of an honest node and of one with planted faults."""

    folder: Path
    honest: Mapping[tuple[int, int], ServedEnvelope]
    planted: Mapping[tuple[int, int], ServedEnvelope]
    summary: dict[str, Any]

    @property
    def trust(self) -> tuple[str, str]:
        return "--trust", head_hash(self.folder / "chain")


@pytest.fixture(scope="module")
def audited(spark: SparkSession, sparse: OtherChain, tmp_path_factory: Any) -> Audited:
    folder: Path = tmp_path_factory.mktemp("audited")
    assert exported(sparse, folder / "chain").code == 0
    served = operated(sparse, folder / "node")
    honest = {(each.originator_id, each.sequence_id): each for each in served}
    times = {row["number"]: row["timestamp"] for row in rows_of(folder / "chain", "blocks")}
    second = max(times) - 1

    def forged(like: ServedEnvelope, sequence_id: int, payload: bytes) -> ServedEnvelope:
        event = PayloadEvent(TopicKind.GROUP_MESSAGE, GROUP, payload, sequence_id, 0)
        return replace(like, unsigned_originator_envelope=unsigned(event, times[second]))

    planted = dict(honest)
    later = planted.pop((0, 400))
    # The second payload under 17, which came in the block of 400; and an id that nobody gave.
    planted[0, 17] = forged(later, 17, commit(4))
    planted[0, 999] = forged(later, 999, commit(6))
    planted[1, 1] = at_no_blocks_time(honest[1, 1])
    stranger(folder / "other", folder / "node", list(planted.values()))
    summary = reconciled(folder, "--trust", head_hash(folder / "chain"))
    return Audited(folder, honest, planted, summary)


def at_no_blocks_time(served: ServedEnvelope) -> ServedEnvelope:
    envelope = envelopes_pb2.UnsignedOriginatorEnvelope.FromString(
        served.unsigned_originator_envelope
    )
    envelope.originator_ns += 1
    return replace(served, unsigned_originator_envelope=envelope.SerializeToString())


def test_reconcile__sparse_ids_and_a_node_with_planted_faults__each_is_found(
    audited: Audited,
) -> None:
    chain, summary = ("--chain", str(audited.folder / "chain")), audited.summary

    proved = run("audit", "verify-chain", *chain, *audited.trust)

    assert proved.code == 0, proved.out
    assert {(0, 17), (0, 400), (0, 1000), (1, 1), (1, 2)} == audited.honest.keys()
    held = summary["chain"]
    # Served and malformed; 17 came twice, and no cursor is below 0.
    assert (held["payloads"], held["quarantined"], held["left_out"]) == (6, 1, 2)
    assert [(n["node_id"], n["expected"], n["matched"]) for n in summary["nodes"]] == [
        (100, 5, 5),
        (200, 5, 2),
    ]
    assert [node["findings"] for node in summary["nodes"]] == [
        {},
        {"ENVELOPE_ALTERED": 2, "ENVELOPE_INVENTED": 1, "ENVELOPE_MISSING": 1},
    ]
    assert any("not chainkit's own" in each for each in summary["not_compared"])


def counting(record: str) -> str:
    """The same contracts in another record, which says that they count."""
    return record.replace('"sparse"', '"counted"')


def test_bundle__planted_faults_over_sparse_ids__only_what_no_contract_excuses_is_proved(
    audited: Audited, sparse: OtherChain, tmp_path: Path
) -> None:
    chain, record = str(audited.folder / "chain"), ("--deployment", str(sparse.record_path))
    keys = write_keystore(tmp_path, AUDITOR)
    made = run(
        *("audit", "bundle", audited.folder / "audit", "--chain", chain, *keys, "--json"),
        *("--out", tmp_path / "bundles", "--reported-at", "2026-11-22T10:00:00Z"),
    )
    assert made.code == 0, made.err
    [bundle] = made.content
    checked = run("council", "verify", bundle["directory"], *audited.trust, *record, "--json")
    (other := tmp_path / "other.json").write_text(counting(sparse.record_path.read_text()))
    strange = run("council", "verify", bundle["directory"], *audited.trust, "--deployment", other)

    assert bundle["node_id"] == 200
    reasons = {each["finding_id"]: each["reason"] for each in bundle["findings"]}
    [proving] = [each["finding_id"] for each in bundle["findings"] if each["proves_itself"]]
    assert "no block gives payload 1 the envelope's time" in reasons.pop(proving)
    assert sorted(reasons.values()) == [
        "nobody knows what contracts that are not chainkit's own emit on another branch, or after "
        "an upgrade",
        "nothing was served that proves it",
        # The second payload under 17: a transaction emitted it.
        "what the node signed is byte for byte what the chain demands",
    ]
    assert (checked.code, checked.content["verdict"]) == (0, "proved"), checked.err
    verdicts = [each["verdict"] for each in checked.content["findings"]]
    assert sorted(verdicts) == ["not proved", "not proved", "proved", "refuted"]
    assert strange.code == 2
    assert "BootstrappedMessages of the record, name Boots" in " ".join(strange.err.split())


def test_triage__evidence_about_both_nodes__only_the_one_that_lies_should_be_disabled(
    audited: Audited, sparse: OtherChain, tmp_path: Path
) -> None:
    evidence = tmp_path / "evidence"
    evidence.mkdir()

    def report(name: str, node_id: int, served: ServedEnvelope, key: SigningKey) -> None:
        parts = served.unsigned_originator_envelope, served.transaction_hash, key
        envelopes = [sign_originator_envelope(*parts)]
        data = sign_inconsistency_report(node_id, envelopes, 1, SigningKey(AUDITOR))
        (evidence / name).write_bytes(data)

    def triaged(*options: str) -> Outcome:
        record = ("--deployment", str(sparse.record_path), "--rpc", sparse.endpoint.name)
        return run("council", "triage", str(evidence), *record, *options)

    report("honest.pb", 100, audited.honest[0, 17], KEY)
    report("honest-update.pb", 100, audited.honest[1, 1], KEY)
    report("second.pb", 200, audited.planted[0, 17], OTHER)
    report("invented.pb", 200, audited.planted[0, 999], OTHER)
    before = triaged("--json")
    report("impossible.pb", 200, audited.planted[1, 1], OTHER)
    after = triaged("--json")
    proposed = triaged("--propose", str(tmp_path / "out"), "--council", str(tmp_path / "none"))

    assert (before.code, before.content["disable"]) == (0, []), before.err
    reasons = {each["path"]: each["reason"] for each in before.content["not_counted"]}
    assert {name: reason.split(":")[0] for name, reason in reasons.items()} == {
        "honest.pb": "refuted",
        "honest-update.pb": "refuted",
        "second.pb": "refuted",
        "invented.pb": "not proved",
    }
    assert (after.code, after.content["disable"]) == (1, [200]), after.err
    assert proposed.code == 2
    assert "a record that the deploy script wrote" in " ".join(proposed.err.split())


def test_reconcile__two_counters__omissions_are_found_and_ends_are_known(
    spark: SparkSession, counted: OtherChain, tmp_path: Path
) -> None:
    chain = tmp_path / "chain"
    # In two runs: the second goes on behind the ids of the first, of both originators.
    head = counted.mined.height()
    assert exported(counted, chain, "--to-block", str(head - 2), "--range-blocks", "2").code == 0
    assert exported(counted, chain).code == 0
    served = operated(counted, tmp_path / "node")
    fewer = [e for e in served if (e.originator_id, e.sequence_id) != (1, 3)]
    stranger(tmp_path / "other", tmp_path / "node", fewer)

    summary = reconciled(tmp_path)

    manifest = manifest_of(chain)
    assert manifest["format"] == 7
    assert manifest["counters"] == {
        "0": {"after": 4, "before": 0},
        "1": {"after": 5, "before": 0},
    }
    assert len(fewer) == len(served) - 1
    assert [node["findings"] for node in summary["nodes"]] == [{}, {"ENVELOPE_MISSING": 1}]
    lacking = summary["assurance"]["lacking"]
    assert not any("the end of" in each for each in lacking)
    assert any("no registry" in each for each in lacking)


def drop_last_log(call: Any, result: Any) -> Any:
    """Leave the last log of the last receipt out, where there is one."""
    if not result or not result[-1].get("logs"):
        return result
    return [*result[:-1], result[-1] | {"logs": result[-1]["logs"][:-1]}]


CUT = Fault(
    "a log is left out",
    result_changed(drop_last_log),
    methods=frozenset({"eth_getBlockReceipts"}),
)


def test_export_chain__a_log_is_withheld__a_counter_or_the_proof_tells(
    spark: SparkSession, counted: OtherChain, sparse: OtherChain, tmp_path: Path
) -> None:
    outcomes = []
    for name, chain in (("counted", counted), ("sparse", sparse)):
        with FaultProxy(chain.endpoint.name) as proxy:
            proxy.arm(CUT)
            outcomes.append(exported(chain, tmp_path / name, url=proxy.url))

    told, written = outcomes
    assert told.code == 2
    assert "sequence id" in told.err
    # Nothing counts there: the receipts root of the header does it.
    assert written.code == 0
    folder = tmp_path / "sparse"
    verified = run("audit", "verify-chain", "--chain", str(folder), "--trust", head_hash(folder))
    assert verified.code == 1
    assert "RECEIPTS_ROOT" in verified.out


def test_export_node__answers_before_and_after_a_late_payload__only_the_lying_node_is_accused(
    spark: SparkSession, audited: Audited, sparse: OtherChain, tmp_path: Path
) -> None:
    late = (0, 400)
    earlier = {place: each for place, each in audited.honest.items() if place != late}
    asked = {
        "node": (earlier, KEY),
        "again": (audited.honest, KEY),
        "other": (audited.planted, OTHER),
    }
    manifests = []
    for name, (served, key) in asked.items():
        with answering(served, key) as url:
            where = ("--rpc", sparse.endpoint.name, "--deployment", str(sparse.record_path))
            out = ("--out", str(tmp_path / name), "--json", "--page-rows", "2")
            done = run("audit", "export-node", url, *where, *out)
        assert done.code == 0, done.err
        manifests.append(done.content["answered"])
    (tmp_path / "chain").symlink_to(audited.folder / "chain")

    more = ("--node", f"100={tmp_path / 'again'}")
    summary = reconciled(tmp_path, *more, *audited.trust, codes=[2])

    assert manifests[:2] == [{"0": 1000, "1": 2}] * 2
    # Nobody knows which blocks a node knew when it was asked: what it lacks, and what the chain
    # export lacks, accuses nobody.
    assert [node["findings"] for node in summary["nodes"]] == [{}, {"ENVELOPE_ALTERED": 2}]
    assert [node["undecided"] for node in summary["nodes"]] == [0, 1]
    assert any("their ids are sparse" in each for each in summary["not_compared"])


def test_cost__contracts_with_sparse_ids__each_function_that_is_known_is_named(
    audited: Audited, tmp_path: Path
) -> None:
    chain, out = ("--chain", str(audited.folder / "chain")), tmp_path / "cost"

    done = run("audit", "cost", *chain, "--out", str(out), "--json")

    assert done.code == 0, done.err
    total = done.content["total"]
    # Six messages in three transactions, two of which carried several; and two updates.
    assert (total["messages"], total["shared"], total["shared_messages"]) == (8, 2, 5)
    lines = [json.loads(line) for line in (out / "functions.jsonl").read_text().splitlines()]
    functions = {(line["contract"], line["function"]): line["messages"] for line in lines}
    assert functions["BootstrappedUpdates", "addIdentityUpdate(bytes32,bytes)"] == 2
    assert functions["NodeRegistry", "addNode(address,bytes,string)"] == 0
    bootstrap = keccak256(b"bootstrapMessages(bytes16,bytes[],uint64[])")[:4].hex()
    assert functions["BootstrappedMessages", f"0x{bootstrap}"] == 6

"""Nodes' tables are judged beside their envelopes: each case is a node of one network.

Every code has cases that must raise it, and near misses that must not.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit.signatures import keccak256
from chainkit_jobs.administration.logs import read_administration
from chainkit_jobs.findings import complete
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.expected import EXPECTED, expected_envelopes
from chainkit_jobs.reconcile.finding_rows import COLUMNS
from chainkit_jobs.reconcile.node_tables import NodeTables, node_table_findings
from chainkit_jobs.reconcile.node_tables.rows import listed
from chainkit_jobs.sources import Export, read_blocks, read_export, read_logs
from support.audit.audit_exports import key_of, registered, renew_digest, time_of, write_chain
from support.audit.node_table_cases import CASES, COUNTER, ELSEWHERE, IDS, POSTS, at, chain_posts
from support.audit.node_tables import envelope_row, honest_tables, registry_rows, write_tables
from support.audit.scopes import scope_of
from support.chain_times import chain_ns


@dataclass(frozen=True)
class Scene:
    chain: Export
    nodes: list[NodeExport]
    result: NodeTables

    def of(self, case: str) -> list[dict[str, Any]]:
        return [row for row in self.result.findings if row["node_id"] == IDS[case]]

    def one(self, case: str, sequence_id: int | None = None) -> dict[str, Any]:
        [row] = [row for row in self.of(case) if row["sequence_id"] == sequence_id]
        return row


def registry() -> list[dict[str, Any]]:
    disabled, late = IDS["disabled"], IDS["registered late"]
    others = sorted(set(IDS.values()) - {late})
    return [
        *(registered(node_id, log_index=n) for n, node_id in enumerate(others)),
        registered(late, block=11),
        registered(disabled, block=12, is_enabled=False),
        registered(disabled, block=15),
    ]


def write_case(root: Path, name: str, history: list[dict[str, Any]]) -> NodeExport:
    case, node_id = CASES[name], IDS[name]
    key = key_of(node_id)
    tables = honest_tables(chain_posts(), key, history)
    case.change(tables, key)
    held = {table: rows for table, rows in tables.items() if table not in case.without}
    return write_tables(root / str(node_id), node_id, key, held, **case.about)


def found_before() -> list[dict[str, Any]]:
    """Findings of the comparison of envelopes about the served bytes of a journal."""
    case = "bytes of the journal served"
    key = key_of(IDS[case])
    digest = keccak256(b"blockchain|" + ELSEWHERE.unsigned + ELSEWHERE.transaction_hash)
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    wrong = row | {
        "code": "ENVELOPE_ALTERED",
        "node_id": IDS[case],
        "originator_id": 0,
        "sequence_id": Decimal(3),
        "served_digest": digest,
        "envelope": ELSEWHERE.envelope(key),
    }
    return [wrong, wrong | {"served_digest": bytes(32)}, wrong | {"code": "SIGNATURE_INVALID"}]


@pytest.fixture(scope="module")
def scene(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    root = tmp_path_factory.mktemp("scene")
    # A log that the chain export repeats contradicts the export, and no node.
    posts = [*chain_posts(), POSTS[2]]
    folder = write_chain(root / "chain", posts, registry(), sequence_after=COUNTER)
    history = registry_rows(folder)
    nodes = [write_case(root, name, history) for name in CASES]
    chain = read_export(folder, "chain")
    names = ("NodeRegistry", "GroupMessages", "IdentityUpdates")
    administration = read_administration(chain, {name: chain.contract(name) for name in names})
    scope = scope_of(chain, nodes, administration)
    expected = expected_envelopes(
        read_logs(spark, chain), read_blocks(spark, chain), scope.contracts
    )
    exchanged = IDS["wrong columns"]
    misplaced = spark.createDataFrame(
        [(exchanged, Decimal(12)), (exchanged, Decimal(13))],
        "node_id long, claimed_sequence_id decimal(20,0)",
    )
    expected.persist()
    result = node_table_findings(spark, scope, expected, found_before(), misplaced)
    expected.unpersist()
    return Scene(chain, nodes, result)


@pytest.mark.parametrize("case", CASES)
def test_node_tables__one_node_says_so__exactly_these_findings(scene: Scene, case: str) -> None:
    found = [
        (row["code"], None if row["sequence_id"] is None else int(row["sequence_id"]))
        for row in scene.of(case)
    ]

    assert sorted(found, key=str) == sorted(CASES[case].found, key=str)


def test_findings__all__have_the_columns_and_an_id_of_their_own(scene: Scene) -> None:
    rows = complete(scene.result.findings, {})

    assert all(list(row) == list(COLUMNS) for row in scene.result.findings)
    assert len({row["finding_id"] for row in rows}) == len(rows)


def test_finding__column__names_it_and_both_values_and_the_chains_log(scene: Scene) -> None:
    row = scene.one("wrong columns", 3)

    assert row["detail"] == "block_number: expected 12, got 11"
    assert (row["block_number"], row["log_index"]) == (12, 1003)
    assert row["transaction_hash"] == POSTS[3].transaction_hash
    assert row["expected_digest"] is not None
    assert scene.one("wrong columns", 1)["detail"] == "sequence_id: expected 1, got 70"
    assert scene.one("wrong columns", 11)["detail"].startswith("topic: expected 0x000101")
    short = scene.one("wrong topics of a short group id", 23)["detail"]
    assert short == f"topic: expected 0x00{'05' * 16}, got 0x00{'05' * 16}{'00' * 16}"
    assert scene.one("wrong columns", 12)["detail"].split("; ") == [
        "sequence_id: expected 12, got 13",
        "log_index: expected 1012, got 1013",
        f"originator_ns: expected {chain_ns(time_of(POSTS[12].block), 12)},"
        f" got {chain_ns(time_of(POSTS[13].block), 13)}",
    ]


@pytest.mark.parametrize(
    ("sequence_id", "detail"),
    [
        (4, "other than on the chain: payload"),
        (7, "the payload is valid"),
        (8, "this sequence's payload is valid; other than on the chain: topic, payload"),
        (9, "other than on the chain: topic"),
        (14, "other than on the chain: topic"),
        (15, "other than on the chain: log_index"),
        (17, "this sequence is held 2 times"),
        (18, "not a ClientEnvelope"),
        (19, "expected not a ClientEnvelope, got no aad"),
        (99, "the contracts never gave out this sequence"),
    ],
)
def test_finding__quarantine__says_what_is_wrong(
    scene: Scene, sequence_id: int, detail: str
) -> None:
    assert scene.one("wrong quarantine", sequence_id)["detail"] == detail


def test_finding__journal__names_reorg_transaction_and_the_chains_place(scene: Scene) -> None:
    hash_ = POSTS[5].transaction_hash.hex()

    assert scene.one("wrong journal", 5)["detail"] == (
        f"reorg 1, transaction 0x{hash_}: dropped, though block 14, log 1005 holds it as sequence 5"
    )


def test_finding__retracted__stands_beside_the_bytes_and_names_the_journals(scene: Scene) -> None:
    case = "bytes of the journal served"
    row = scene.one(case, 3)

    other = f"kept in the journal of node {IDS['wrong journal']}, reorg 1"
    assert row["detail"] == f"{other}; dropped in the journal of node {IDS[case]}, reorg 1"
    assert row["envelope"] == ELSEWHERE.envelope(key_of(IDS[case]))


def test_finding__registry__names_the_chains_log_where_there_is_one(scene: Scene) -> None:
    found = {str(row["detail"]): row["block_number"] for row in scene.of("other history")}

    lacking = f"the node's history lacks this NodeUpdated of node {IDS['disabled']}"
    assert found[lacking] == 15
    assert sorted(found.values(), key=str) == [15, 2, None]


def test_finding__behind__counts_the_valid_payloads_and_blocks(scene: Scene) -> None:
    detail = "blocks 13 to 20, which its export does not reach: 13 valid payloads"

    assert scene.one("behind")["detail"] == detail


def test_finding__disabled__names_the_event_and_what_is_served(scene: Scene) -> None:
    row = scene.one("disabled")

    assert row["detail"] == "blocks 12 to 14, disabled: 2 valid payloads, of which it serves 2"
    assert row["block_number"] == 12
    assert row["log_index"] is not None


def test_finding__unregistered__ends_before_the_first_entry(scene: Scene) -> None:
    detail = "blocks 1 to 10, not registered yet: 1 valid payloads, of which it serves 1"

    assert scene.one("registered late")["detail"] == detail


def test_not_compared__each_table_that_is_missing__is_said(scene: Scene) -> None:
    old, other = IDS["an older export"], IDS["history of another registry"]

    assert list(scene.result.not_compared) == [
        f"node {old}: quarantine, journal, registry_updates, which its export does not hold",
        f"node {other}: its history of the registry: its manifest names no registry",
    ]


def test_compared__each_table__names_the_nodes_that_it_was_compared_of(scene: Scene) -> None:
    every = sorted(IDS.values())
    old, other = IDS["an older export"], IDS["history of another registry"]

    others = [each for each in every if each != old]
    assert scene.result.compared == {
        "envelopes": every,
        "quarantine": others,
        "journal": others,
        "registry_updates": [each for each in others if each != other],
    }


def test_node_tables__a_file_stops_half_way__is_told_and_the_others_are_compared(
    spark: SparkSession, scene: Scene, tmp_path: Path
) -> None:
    key = key_of(1)
    many = [at(n, POSTS[3]) for n in range(1, 400)]
    rows = {"envelopes": [envelope_row(post, key) for post in many]}
    broken = write_tables(tmp_path / "broken", 1, key, rows)
    path = broken.export.directory / "envelopes.parquet"
    content = bytearray(path.read_bytes())
    content[40:400] = b"\xff" * 360
    path.write_bytes(content)
    renew_digest(broken.export.directory, path.name)
    [wrong] = [node for node in scene.nodes if node.node.node_id == IDS["wrong columns"]]
    nothing = spark.createDataFrame([], from_arrow_schema(EXPECTED))

    result = node_table_findings(spark, scope_of(scene.chain, [broken, wrong]), nothing, [])

    found = [row for row in result.findings if row["code"] == "ENVELOPE_COLUMNS_CONTRADICT"]
    assert {row["node_id"] for row in found} == {IDS["wrong columns"]}
    # Without knowing what the bytes hold, the two rows that exchanged their columns are not told.
    assert sorted(int(row["sequence_id"]) for row in found) == [1, 2, 3, 5, 6, 7, 8, 10, 11]
    assert result.compared["envelopes"] == [IDS["wrong columns"]]
    [unreadable] = result.unreadable
    assert unreadable.startswith(
        "node 1: its columns beside the envelopes cannot be read: envelopes.parquet: "
    )


def test_listed__more_of_a_kind_than_the_most__the_first_says_how_many(
    spark: SparkSession,
) -> None:
    columns = (
        "code string, node_id long, originator_id long, sequence_id decimal(20,0), "
        "block_number long, log_index long, transaction_hash binary, expected_digest binary, "
        "detail string, kind string"
    )
    rows = [
        ("NODE_BEHIND", 100, 0, Decimal(n), n, 0, b"t", None, f"detail {n}", kind)
        for n, kind in ((9, "a"), (7, "a"), (8, "a"), (8, "a"), (5, "b"), (6, "b"))
    ]

    found = listed(spark.createDataFrame(rows, columns), most=2)

    assert sorted((int(row["sequence_id"]), row["detail"]) for row in found) == [
        (5, "detail 5"),
        (6, "detail 6"),
        (7, "detail 7 (the first of 3 such, up to sequence 9; 2 are listed)"),
        (8, "detail 8"),
    ]
    assert list(found[0]) == list(COLUMNS)

"""`chainkit audit import-chain` on what the real cryo wrote of a chain on anvil."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from chainkit.cli.main import chainkit
from chainkit.contracts.deployment import read_deployment_record
from chainkit_jobs.adapters.cryo import Cryo
from chainkit_jobs.adapters.importing import import_chain
from support.audit.imports import FIXTURES, answered_rows, read_chain
from support.exports import read_manifest

CRYO = FIXTURES / "cryo"

NEVER_TOLD = {
    "blocks": {
        *("gas_limit", "sha3_uncles", "difficulty", "mix_hash", "nonce", "withdrawals_root"),
        *("blob_gas_used", "excess_blob_gas", "parent_beacon_block_root", "requests_hash"),
        "transaction_count",
    },
    "transactions": {"v", "r", "s", "access_list", "authorization_list", "blob_versioned_hashes"},
    "receipts": set[str](),
    "logs": set[str](),
}
"""Columns that cryo writes nothing for."""


RECORD = read_deployment_record(CRYO / "deployment.json")
LAST = 22


def run(spark: SparkSession, source: str, out: Path) -> Path:
    imported = import_chain(spark, Cryo(), CRYO / source, RECORD, out, range_blocks=10)
    assert imported.faults == ()
    return out


@pytest.fixture(scope="module")
def chain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chain export, imported from raw bytes."""
    return run(spark, "binary", tmp_path_factory.mktemp("import") / "chain")


def expected_row(table: str, row: dict[str, Any]) -> dict[str, Any]:
    told = {name: None if name in NEVER_TOLD[table] else value for name, value in row.items()}
    if table == "transactions":
        told |= dict.fromkeys(NEVER_TOLD[table])
        if told["type"] == 0:
            told["chain_id"] = None
        if told["type"] > 1:
            told["gas_price"] = None
    return told


def test_import__cryo__gives_what_the_endpoint_answered(chain: Path) -> None:
    rows = read_chain(chain)

    for table, listed in answered_rows(CRYO / "answers.json").items():
        height = "number" if table == "blocks" else "block_number"
        expected = [expected_row(table, row) for row in listed if row[height] >= RECORD.first_block]
        assert rows[table] == expected
    assert {row["type"] for row in rows["transactions"]} == {0, 1, 2, 4}
    assert {row["status"] for row in rows["receipts"]} == {0, 1}
    assert {len(row["topics"]) for row in rows["logs"]} >= {0, 1}
    assert {row["contract_address"] is None for row in rows["receipts"]} == {True, False}


def test_import__whole_deployment__manifest_names_chain_and_ranges(chain: Path) -> None:
    manifest = read_manifest(chain, "chain")
    last = answered_rows(CRYO / "answers.json")["blocks"][-1]

    assert (manifest.source, manifest.chain_id, manifest.range_blocks) == ("cryo", 31337, 10)
    assert manifest.genesis_hash == "0x" + RECORD.genesis_hash.hex()
    assert (manifest.from_block, manifest.to_block) == (RECORD.first_block, LAST)
    assert manifest.to_block_hash == "0x" + last["hash"].hex()
    assert (manifest.sequence_before, manifest.sequence_after) == (None, None)
    assert manifest.first_payload_block == RECORD.group_messages.block
    ranges = {
        (about["from_block"], about["to_block"], about["finished"])
        for about in manifest.files.values()
    }
    assert ranges == {(1, 9, True), (10, 19, True), (20, LAST, False)}
    assert len(manifest.files) == 4 * len(ranges)


def test_import__hex_and_other_partitioning__gives_the_same_bytes(
    spark: SparkSession, chain: Path, tmp_path: Path
) -> None:
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    assert before is not None
    spark.conf.set(name, "5")
    try:
        other = run(spark, "hex", tmp_path / "other")
    finally:
        spark.conf.set(name, before)

    expected, got = (
        {path.relative_to(folder): path.read_bytes() for path in files(folder)}
        for folder in (chain, other)
    )
    assert got == expected


def files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def test_command__json__tells_what_was_written_and_a_second_time_refuses(
    spark: SparkSession, tmp_path: Path
) -> None:
    out = tmp_path / "chain"
    arguments = ["audit", "import-chain", "--format", "cryo", "--source", str(CRYO / "binary")]
    arguments += ["--deployment", str(CRYO / "deployment.json"), "--out", str(out), "--json"]
    runner = CliRunner(mix_stderr=False)

    first = runner.invoke(chainkit, [*arguments, "--from-block", "14", "--to-block", "15"])
    again = runner.invoke(chainkit, arguments)

    told = json.loads(first.stdout)
    assert first.exit_code == 0
    assert told["faults"] == []
    assert (told["written"]["from_block"], told["written"]["to_block"]) == (14, 15)
    assert told["written"]["rows"] == {"blocks": 2, "transactions": 8, "receipts": 8, "logs": 2}
    assert "a folder without an export" in str(again.exception)


def test_import__record_that_lists_its_contracts__export_describes_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The same chain, in a record by hand: two contracts that draw from one sequence."""
    events = {"GroupMessages": "MessageSent", "IdentityUpdates": "IdentityUpdateCreated"}
    own = json.loads((CRYO / "deployment.json").read_text())
    places = {
        name: {field: contract[field] for field in ("address", "block")}
        for name, contract in own["contracts"].items()
    }
    record = {name: own[name] for name in ("format", "chain_id", "genesis_hash")} | {
        "payload_contracts": [
            places[name]
            | {"name": name, "originator_id": 3, "event": f"{event}(bytes32,bytes,uint64)"}
            for name, event in events.items()
        ],
        "counters": {"3": places["OriginatorSequence"] | {"function": "last()"}},
        "node_registry": places["NodeRegistry"],
    }
    (path := tmp_path / "record.json").write_text(json.dumps(record))
    out = tmp_path / "chain"
    arguments = ["audit", "import-chain", "--format", "cryo", "--source", str(CRYO / "binary")]
    options = ["--deployment", str(path), "--out", str(out), "--from-block", "1"]

    result = CliRunner().invoke(chainkit, [*arguments, *options])

    assert result.exit_code == 0, result.output
    manifest = read_manifest(out, "chain")
    assert manifest.contracts.keys() == {*events, "NodeRegistry"}
    assert [(each["name"], each["originator_id"]) for each in manifest.payload_contracts or ()] == [
        ("GroupMessages", 3),
        ("IdentityUpdates", 3),
    ]
    assert (manifest.first_block, manifest.counters) == (4, None)
    assert sum(file["rows"] for file in manifest.files.values()) > 0

"""`chainkit audit verify-chain`: a chain export against one block hash, in Spark."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from chainkit.cli.main import chainkit
from chainkit.errors import ChainkitError, ConfigurationError
from chainkit_jobs.cli.verify_chain import verify_chain_command
from chainkit_jobs.proof import ChainProof, prove_chain
from chainkit_jobs.proof.result import Counts
from chainkit_jobs.sources import read_export
from support.audit.audit_exports import base_posts, registered, renew_digest
from support.audit.chain_proofs import in_short
from support.chains.chain import LocalChain
from support.chains.proved_chain import ProvedChain, every_kind, proved_chain, sent_of
from support.payloads import commit

LAST = 20
GROUP = b"\x0a" * 32


@pytest.fixture(scope="module")
def chain() -> ProvedChain:
    return proved_chain([*every_kind(3), *sent_of(base_posts(), [registered(100)])])


@pytest.fixture(scope="module")
def export(chain: ProvedChain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chain.write(tmp_path_factory.mktemp("verify") / "chain")


def prove(spark: SparkSession, export: Path) -> ChainProof:
    read = read_export(export, "chain")
    return prove_chain(spark, read, bytes.fromhex(read.manifest.to_block_hash[2:]))


def verify(export: Path, trust: str, *options: str) -> Result:
    arguments = ["--chain", str(export), "--trust", trust, *options]
    result = CliRunner(mix_stderr=False).invoke(verify_chain_command, arguments)
    if result.exception is not None and not isinstance(
        result.exception, (SystemExit, ChainkitError)
    ):
        raise result.exception
    return result


def tamper(export: Path, file_name: str, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change the rows of a file as its exporter could: its digest is the manifest's."""
    table = pq.read_table(export / file_name)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), export / file_name)
    renew_digest(export, file_name)


@pytest.fixture
def partitions(spark: SparkSession) -> Iterator[Callable[[int], None]]:
    name, adaptive = "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled"
    before = spark.conf.get(name)
    spark.conf.set(adaptive, "false")
    yield lambda count: spark.conf.set(name, str(count))
    spark.conf.set(name, before or "2")
    spark.conf.set(adaptive, "true")


def test_prove__clean_chain_in_any_files_and_tasks__is_proved_to_the_last_row(
    spark: SparkSession,
    chain: ProvedChain,
    export: Path,
    tmp_path: Path,
    partitions: Callable[[int], None],
) -> None:
    counts = Counts(*(len(chain.rows[table]) for table in chain.rows))
    proofs = []
    for files, tasks in ((None, 1), (3, 5)):
        partitions(tasks)
        path = chain.write(tmp_path / f"{files}", blocks_per_file=files) if files else export
        proofs.append(prove(spark, path))

    assert proofs[0] == proofs[1]
    assert proofs[0].problems == () and proofs[0].is_anchored
    assert proofs[0].held == proofs[0].proved == counts
    told = {(each.gap.table, each.gap.column) for each in proofs[0].unproved}
    assert ("receipts", "l1_fee") in told and ("manifest", "genesis_hash") in told
    assert ("manifest", "chain_id") not in told


def test_prove__tampered_files__are_found_whatever_the_files_and_tasks(
    spark: SparkSession,
    chain: ProvedChain,
    tmp_path: Path,
    partitions: Callable[[int], None],
) -> None:
    def swallow(rows: list[dict[str, Any]]) -> None:
        rows[:] = [row for row in rows if row["number"] not in (11, 12)]

    def other_data(rows: list[dict[str, Any]]) -> None:
        row = next(row for row in rows if row["block_number"] == 10)
        row["data"] = b"\x01" + row["data"]

    found = []
    for files, tasks in ((None, 1), (5, 4)):
        partitions(tasks)
        path = chain.write(tmp_path / f"{files}", blocks_per_file=files)
        span = "/000000000006-000000000010" if files else ""
        blocks = "/000000000011-000000000015" if files else ""
        tamper(path, f"blocks{blocks}.parquet", swallow)
        tamper(path, f"logs{span}.parquet", other_data)
        found.append(prove(spark, path))

    assert found[0] == found[1]
    assert in_short(found[0].problems) == [
        ("RECEIPTS_ROOT", 10, "receipts", None, None),
        ("BLOCK_MISSING", 11, "blocks", None, None),
        ("BLOCK_MISSING", 12, "blocks", None, None),
    ]
    assert not found[0].is_anchored
    # The trusted hash reaches down to the gap, and no further.
    assert found[0].proved.blocks == LAST - 12 and found[0].proved.logs == 5
    assert found[0].held.blocks == LAST - 2


def test_verify__clean_chain__says_what_is_proved_and_what_is_not(
    spark: SparkSession, chain: ProvedChain, export: Path
) -> None:
    # As a person may paste it.
    result = verify(export, chain.head_hash.hex().upper())

    assert result.exit_code == 0, result
    lines = result.stdout.splitlines()
    assert lines[0] == f"blocks 1 to 20 0x{chain.head_hash.hex()}"
    assert "blocks                  20          20" in lines
    assert "logs                    18          18" in lines
    assert "  COLUMN             receipts.l1_fee: 1 row, blocks 4 to 4" in lines
    assert lines[-1] == "no problems"


def test_verify__changed_rows__exits_1_and_tells_the_first(
    spark: SparkSession, chain: ProvedChain, tmp_path: Path
) -> None:
    def all_gas(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["gas_used"] += 1
            row["block_hash"] = b"\x01" * 32

    export = chain.write(tmp_path / "chain")
    tamper(export, "receipts.parquet", all_gas)
    trust = f"0x{chain.head_hash.hex()}"

    result = verify(export, trust)
    as_json = verify(export, trust, "--json")

    assert result.exit_code == as_json.exit_code == 1
    assert result.stdout.count("\n  BLOCK_HASH") + result.stdout.count("\n  GAS_USED") == 20
    assert (
        "GAS_USED           block 2, receipts 0 gas_used: expected 50000, got 50001"
        in result.stdout
    )
    assert "40 problems:" in result.stdout and "… and 20 more" in result.stdout
    content = json.loads(as_json.stdout)
    assert content["problem_counts"] == {"BLOCK_HASH": 20, "GAS_USED": 20}
    assert len(content["problems"]) == content["problems_total"] == 40
    assert content["problems"][0]["got"] == "0x" + "01" * 32


def test_verify__header_of_an_import_tells_not_all__exits_2(
    spark: SparkSession, tmp_path: Path
) -> None:
    chain = proved_chain(every_kind(3))
    chain.rows["blocks"][9]["mix_hash"] = None
    export = chain.write(tmp_path / "chain")

    result = verify(export, f"0x{chain.head_hash.hex()}")

    assert result.exit_code == 2
    assert "  HEADER             blocks.mix_hash: 1 row, blocks 10 to 10" in result.stdout
    assert "blocks                  20          10" in result.stdout
    assert result.stdout.endswith("no problems\n")


@pytest.mark.parametrize("trust", ["", "0x12", "0x" + "g" * 64, "0x" + "0" * 65])
def test_verify__no_hash__is_a_usage_error(export: Path, trust: str) -> None:
    result = verify(export, trust)

    assert result.exit_code == 2
    assert "'--trust': expected a block hash, 0x and 64 hex digits, got" in result.stderr


def test_verify__hash_of_another_block__is_refused(chain: ProvedChain, export: Path) -> None:
    other = f"0x{chain.hash_of(19).hex()}"

    error = verify(export, other).exception

    assert isinstance(error, ConfigurationError)
    assert "the hash of block 20, in which export" in str(error) and other in str(error.got)
    # A hash that the export gives would be pasted back.
    assert chain.head_hash.hex() not in str(error)


def test_prove__manifest_lies_about_its_last_block__is_found(
    spark: SparkSession, chain: ProvedChain, tmp_path: Path
) -> None:
    proof = prove(spark, chain.write(tmp_path / "chain", to_block_hash="0x" + "01" * 32))

    assert in_short(proof.problems) == [("TRUSTED_HASH", LAST, "blocks", None, "hash")]
    assert proof.proved == Counts()


def test_verify__export_of_a_real_chain__hangs_on_its_head(
    spark: SparkSession, local_chain: LocalChain, tmp_path: Path
) -> None:
    for size in (100, 900, 5000):
        local_chain.publish_message(GROUP, commit(GROUP, size))
    local_chain.mine(2)
    arguments = ["audit", "export-chain", "--rpc", local_chain.url, "--out", str(tmp_path / "c")]
    arguments += ["--deployment", str(local_chain.record_path)]
    exported = CliRunner().invoke(chainkit, arguments, catch_exceptions=False)
    assert exported.exit_code == 0, exported.output

    result = verify(tmp_path / "c", f"0x{local_chain.head().hash.hex()}", "--json")

    content = json.loads(result.stdout)
    assert result.exit_code == 0, content
    assert content["held"] == content["proved"]
    assert content["proved"]["logs"] > 3 and content["is_anchored"]
    assert {each["code"] for each in content["unproved"]} == {"MANIFEST"}

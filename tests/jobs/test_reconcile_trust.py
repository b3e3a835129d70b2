"""`chainkit audit reconcile --trust`: the chain export is proved before anything is compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from chainkit.cli.main import chainkit
from chainkit.errors import ChainkitError, ConfigurationError, StoreError
from support.audit.audit_exports import (
    administration,
    base_posts,
    honest,
    key_of,
    registered,
    renew_digest,
    write_node,
)
from support.chains.proved_chain import ProvedChain, proved_chain, sent_of

A, B = 100, 200

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(scope="module")
def chain() -> ProvedChain:
    registry = administration([registered(A), registered(B, log_index=1)], {})
    return proved_chain(sent_of(base_posts(), registry))


@pytest.fixture
def exports(chain: ProvedChain, tmp_path: Path) -> Path:
    """A folder with an export of the chain, and those of two nodes that serve all of it."""
    chain.write(tmp_path / "chain")
    posts = [
        replace(post, transaction=chain.transaction_of(post.sequence_id)) for post in base_posts()
    ]
    for node_id in (A, B):
        key = key_of(node_id)
        head = "0x" + chain.head_hash.hex()
        write_node(tmp_path / str(node_id), honest(posts, key), key, to_block_hash=head)
    return tmp_path


def reconcile(exports: Path, trusted: str) -> Result:
    nodes = [part for node_id in (A, B) for part in ("--node", str(exports / str(node_id)))]
    out = ("--out", str(exports / "audit"))
    trust = ("--trust", trusted, "--without-costs")
    arguments = ["--chain", str(exports / "chain"), *nodes, *out, *trust]
    result = CliRunner(mix_stderr=False).invoke(chainkit, ["audit", "reconcile", *arguments])
    if result.exception is not None and not isinstance(
        result.exception, (SystemExit, ChainkitError)
    ):
        raise result.exception
    return result


def test_reconcile__export_that_follows_from_the_trusted_hash__is_compared_and_says_so(
    exports: Path, chain: ProvedChain
) -> None:
    result = reconcile(exports, chain.head_hash.hex().upper())

    assert result.exit_code == 0, result.output
    assert " ".join(result.output.splitlines()[:2]).startswith(
        "clean: every node compared serves what the chain demands, under its own signature; the "
        "chain export is proved from block 20"
    )
    trust = json.loads((exports / "audit" / "summary.json").read_text())["trust"]
    assert trust["block_hash"] == "0x" + chain.head_hash.hex()
    assert trust["proved"] == {table: len(rows) for table, rows in chain.rows.items()}
    assert any("genesis_hash" in sentence for sentence in trust["not_proved"])
    assert trust["block_hash"] in (exports / "audit" / "report.html").read_text()


def test_reconcile__one_byte_changed_and_the_digest_renewed__compares_nothing(
    exports: Path, chain: ProvedChain
) -> None:
    path = exports / "chain" / "receipts.parquet"
    table = pq.read_table(path)
    gas = table.column("gas_used").to_pylist()
    changed = pa.array([gas[0] + 1, *gas[1:]], pa.int64())
    place = table.schema.get_field_index("gas_used")
    pq.write_table(table.set_column(place, table.schema.field(place), changed), path)
    renew_digest(exports / "chain", "receipts.parquet")

    result = reconcile(exports, chain.head_hash.hex())

    assert isinstance(result.exception, StoreError)
    assert f"what follows from block 20 0x{chain.head_hash.hex()}" in str(result.exception)
    assert "verify-chain" in str(result.exception)
    assert not (exports / "audit").exists()


def test_reconcile__hash_of_another_block__is_refused(exports: Path, chain: ProvedChain) -> None:
    result = reconcile(exports, chain.hash_of(19).hex())

    assert isinstance(result.exception, ConfigurationError)
    assert "the hash of block 20, in which export" in str(result.exception)
    # A hash that the export gives would be pasted back.
    assert chain.head_hash.hex() not in str(result.exception)


def test_reconcile__hash_that_is_none__is_a_usage_error(exports: Path) -> None:
    result = reconcile(exports, "0x1234")

    assert result.exit_code == 2
    assert "expected a block hash, 0x and 64 hex digits, got '0x1234'" in result.stderr

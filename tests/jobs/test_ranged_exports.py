"""A node's export in ranges of blocks is audited like one in a single file."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from chainkit.exports import describe_file
from chainkit_jobs.reconcile.audit import Audit, run_audit
from chainkit_jobs.sources import envelopes_problem, read_export
from support.audit.audit_exports import (
    FIRST_BLOCK,
    LAST_BLOCK,
    base_posts,
    honest,
    key_of,
    registered,
    rewrite_table,
    write_chain,
    write_node,
)
from support.audit.inputs import read_inputs
from support.exports import read_manifest
from support.payloads import commit

A, B = 100, 200
MIDDLE = 12


def in_ranges(export: Path, rows_in_first: int) -> Path:
    """Replace the one file of envelopes by two, as an indexer writes them."""
    table = pq.read_table(export / "envelopes.parquet")
    (export / "envelopes.parquet").unlink()
    (export / "envelopes").mkdir()
    files = {}
    for first, last, part in (
        (FIRST_BLOCK, MIDDLE, table.slice(0, rows_in_first)),
        (MIDDLE + 1, LAST_BLOCK, table.slice(rows_in_first)),
    ):
        name = f"envelopes/{first:010}-{last:010}.parquet"
        pq.write_table(part, export / name)
        place = {"from_block": first, "to_block": last, "finished": True}
        files[name] = describe_file(export / name, part.num_rows) | place
    manifest = export / "manifest.json"
    content = json.loads(manifest.read_text()) | {"files": files, "range_blocks": MIDDLE}
    manifest.write_text(json.dumps(content))
    read_manifest(export, "node")
    return export


def audit_of(spark: SparkSession, root: Path, altered: int) -> tuple[Audit, bytes]:
    """Audit A, which is honest, and B, which alters one payload; return its envelope too."""
    posts = base_posts()
    registry = [registered(A), registered(B, log_index=1)]
    chain = write_chain(root / "chain", posts, registry)
    forged = list(posts)
    forged[altered - 1] = type(posts[0])(
        altered, posts[altered - 1].block, commit(b"\x01" * 32, seed=77)
    )
    b = key_of(B)
    nodes = [
        (None, in_ranges(write_node(root / "a", honest(posts, key_of(A)), key_of(A)), 2)),
        (None, in_ranges(write_node(root / "b", honest(forged, b), b), 3)),
    ]
    return run_audit(spark.sparkContext, read_inputs(chain, nodes)), forged[altered - 1].envelope(b)


@pytest.mark.parametrize("altered", [1, 5])
def test_audit__node_exports_in_ranges__finds_the_row_with_its_own_bytes(
    spark: SparkSession, tmp_path: Path, altered: int
) -> None:
    # The fifth payload is the first row of its file, as the first payload is of its own.
    audit, envelope = audit_of(spark, tmp_path, altered)

    [finding] = audit.findings
    assert (finding["code"], finding["node_id"]) == ("ENVELOPE_ALTERED", B)
    assert int(finding["sequence_id"]) == altered
    assert bytes(finding["envelope"]) == envelope


def test_problem__one_range_of_several_is_another_table__names_the_file(tmp_path: Path) -> None:
    key = key_of(A)
    export = in_ranges(write_node(tmp_path / "a", honest(base_posts(), key), key), 3)
    name = f"envelopes/{MIDDLE + 1:010}-{LAST_BLOCK:010}.parquet"
    table = pq.read_table(export / name).drop_columns(["envelope"])
    rewrite_table(export, name, table)

    problem = envelopes_problem(read_export(export, "node"))

    assert problem is not None
    assert f"{name}: expected envelope of type binary, got none" in problem

import hashlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainkit.protocol.envelope import sign_originator_envelope
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import keccak256
from chainkit_jobs.reconcile.node_tables import columns
from chainkit_jobs.reconcile.node_tables.reading import missing_tables, table_problem
from support.audit.audit_exports import GROUP, Post, base_posts, key_of, rewrite_table, time_of
from support.audit.node_tables import envelope_row, honest_tables, write_tables
from support.chain_times import chain_ns
from support.payloads import commit

KEY = key_of(100)
POST = Post(5, 10, commit(GROUP))


def said(envelope: bytes) -> dict[str, Any] | None:
    return columns.read_row({"said_log_index": 7, "envelope": envelope})


def test_read_row__envelope__is_replaced_by_what_its_bytes_say() -> None:
    assert said(POST.envelope(KEY)) == {
        "said_log_index": 7,
        "originator_id": 0,
        "sequence_id": Decimal(5),
        "own_ns": chain_ns(time_of(10), 5),
        "own_transaction": POST.transaction_hash,
        "own_payload": hashlib.sha256(POST.payload).hexdigest(),
        "own_topic": b"\0" + GROUP,
        "digest": keccak256(b"blockchain|" + POST.unsigned + POST.transaction_hash),
    }


def signed(**fields: Any) -> bytes:
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope.FromString(POST.unsigned)
    for name, value in fields.items():
        setattr(unsigned, name, value)
    return sign_originator_envelope(unsigned.SerializeToString(), POST.transaction_hash, KEY)


@pytest.mark.parametrize(
    "envelope",
    [
        b"\xff",
        signed(originator_ns=chain_ns(time_of(10), 5) + 1),
        signed(originator_ns=time_of(10) * 10**9),
        signed(originator_sequence_id=6),
        signed(originator_ns=chain_ns(-2, 5)),
        signed(originator_ns=2**63 - 1),
        sign_originator_envelope(POST.unsigned + b"\x28\x01", POST.transaction_hash, KEY),
    ],
    ids=[
        *("no envelope", "a nanosecond later", "a whole second", "the time of another id"),
        *("before 1970", "the latest time", "an unknown field"),
    ],
)
def test_read_row__bytes_that_no_chain_demands__are_left_out(envelope: bytes) -> None:
    assert said(envelope) is None


def test_read_row__another_originator_and_sequence__is_what_the_bytes_say() -> None:
    time_ns = chain_ns(time_of(10), 2**64 - 1)
    changes = {"originator_sequence_id": 2**64 - 1, "originator_ns": time_ns}
    row = said(signed(originator_node_id=7, **changes))

    assert row is not None
    assert (row["originator_id"], row["sequence_id"]) == (7, Decimal(2**64 - 1))


def test_table_problem__sound__is_none(tmp_path: Path) -> None:
    node = write_tables(tmp_path / "node", 100, KEY, honest_tables(base_posts(), KEY))

    assert missing_tables(node.export) == []
    assert [table_problem(node.export, name) for name in ("envelopes", "journal")] == [None, None]


def test_missing_tables__older_export__names_them(tmp_path: Path) -> None:
    rows = {"envelopes": [envelope_row(POST, KEY)]}
    node = write_tables(tmp_path / "node", 100, KEY, rows)

    assert missing_tables(node.export) == ["quarantine", "journal", "registry_updates"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda table: table.drop_columns(["log_index"]),
            "expected log_index of type int64, got none",
        ),
        (
            lambda table: table.set_column(
                6, "log_index", pa.array(["1"] * table.num_rows, pa.string())
            ),
            "expected log_index of type int64, got string",
        ),
        (
            lambda table: table.set_column(
                6, "log_index", pa.array([None] * table.num_rows, pa.int64())
            ),
            "a row has no log_index",
        ),
    ],
)
def test_table_problem__other_columns__names_the_file(
    tmp_path: Path, change: Any, problem: str
) -> None:
    node = write_tables(tmp_path / "node", 100, KEY, honest_tables(base_posts(), KEY))
    folder = node.export.directory
    table = change(pq.read_table(folder / "quarantine.parquet"))
    rewrite_table(folder, "quarantine.parquet", table)

    assert table_problem(node.export, "quarantine") == f"quarantine.parquet: {problem}"

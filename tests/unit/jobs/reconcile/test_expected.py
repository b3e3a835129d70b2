"""The code inside Spark's workers does its work without Spark: rows in, rows out."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from chainkit.exports import tables
from chainkit.protocol.envelope import QuarantineReason
from chainkit.protocol.payload_contract import PayloadContract
from chainkit.signatures import address_of, keccak256
from chainkit.types import TopicKind
from chainkit_jobs.reconcile import expected, served
from support.audit.audit_exports import MALFORMED_SEQUENCE, base_posts, key_of, payload_log, time_of
from support.vectors import from_hex, load

KEY = key_of(100)
POST = base_posts()[2]


def joined(**changes: Any) -> dict[str, Any]:
    """A payload log as it comes out of the join with the blocks."""
    row = payload_log(POST)
    return row | {"contract": "GroupMessages", "block_timestamp": time_of(POST.block)} | changes


def raw(envelope: bytes) -> dict[str, Any]:
    return {
        "node_id": 100,
        "row_index": 5,
        "claimed_sequence_id": Decimal(77),
        "envelope": envelope,
    }


def test_decode_log__good_payload__has_the_digest_that_nodes_sign() -> None:
    row = expected.decode_row(joined())

    assert row["sequence_id"] == Decimal(3)
    assert row["digest"] == keccak256(b"blockchain|" + POST.unsigned + POST.transaction_hash)
    assert row["quarantine_reason"] is None
    assert row["payload_size"] == len(POST.payload)
    assert "malformed" not in row


def test_decode_log__payload_of_another_topic__says_why_it_is_quarantined() -> None:
    other_group = b"\x09" * 32 + joined()["data"][32:]

    assert expected.decode_row(joined(data=other_group))["quarantine_reason"] is (
        QuarantineReason.WRONG_TOPIC
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"block_timestamp": None}, "a block that the export does not hold"),
        ({"data": b"\x00" * 40}, "expected (bytes32,bytes,uint64)"),
        ({"topics": [b"\x00" * 32]}, "expected MessageSent or IdentityUpdateCreated"),
    ],
)
def test_decode_log__impossible__says_so_instead_of_a_digest(
    changes: dict[str, Any], reason: str
) -> None:
    row = expected.decode_row(joined(**changes))

    assert reason in row["malformed"]
    assert "digest" not in row


def test_decode_log_batch__mixed__keeps_schema_and_order() -> None:
    malformed = base_posts()[MALFORMED_SEQUENCE - 1]
    rows = [joined(), joined(block_timestamp=None), joined() | payload_log(malformed)]
    schema = pa.schema(
        [
            *tables.LOGS,
            pa.field("contract", pa.string()),
            pa.field("block_timestamp", pa.int64()),
        ]
    )
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)

    contract = PayloadContract("GroupMessages", rows[0]["address"], 1, TopicKind.GROUP_MESSAGE)

    [decoded] = expected._decode_batches([batch], {contract.name: contract})

    assert decoded.schema == expected.EXPECTED
    assert decoded["quarantine_reason"].to_pylist() == [None, None, "not a ClientEnvelope"]
    assert decoded["sequence_id"].to_pylist() == [3, None, 4]


def test_decode_envelope__signed_by_the_registered_key__has_no_problem() -> None:
    row = served.decode_row(raw(POST.envelope(KEY)), KEY.public_key)

    assert (row["originator_id"], row["sequence_id"]) == (0, Decimal(3))
    assert row["digest"] == expected.decode_row(joined())["digest"]
    assert row["signature_problem"] is None


def test_decode_envelope__largest_sequence__is_exact() -> None:
    envelope = replace(POST, sequence_id=2**64 - 1).envelope(KEY)

    assert served.decode_row(raw(envelope), KEY.public_key)["sequence_id"] == Decimal(2**64 - 1)


def test_decode_envelope__another_key__names_both_addresses() -> None:
    other = key_of(200)

    row = served.decode_row(raw(POST.envelope(other)), KEY.public_key)

    assert row["signature_problem"] == (
        f"signed by {address_of(other.public_key)}, registered is {address_of(KEY.public_key)}"
    )


@pytest.mark.parametrize("envelope", [b"", b"\xff\xff", POST.unsigned])
def test_decode_envelope__not_one__stands_at_the_claimed_place(envelope: bytes) -> None:
    row = served.decode_row(raw(envelope), KEY.public_key)

    assert row["unreadable"]
    assert (row["sequence_id"], row["row_index"]) == (Decimal(77), 5)
    assert row["digest"] is None


def test_decode_envelope__every_golden_vector__digest_and_signature_hold() -> None:
    for case in load("envelopes")["cases"]:
        envelope = from_hex(case["originator_envelope"])
        public_key = from_hex(case["public_key"])

        row = served.decode_row(raw(envelope), public_key)

        assert row["digest"] == from_hex(case["digest"]), case["name"]
        assert row["signature_problem"] is None, case["name"]

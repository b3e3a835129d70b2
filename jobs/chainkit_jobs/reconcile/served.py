"""A node's side: decodes the raw envelope bytes, and checks whether the node signed them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit.errors import InvalidSignature, MalformedEnvelope
from chainkit.exports import tables
from chainkit.protocol.envelope import (
    blockchain_proof_digest,
    is_in_one_form,
    parse_originator_envelope,
)
from chainkit.signatures import address_of, recover_public_key
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID

SERVED: Final = pa.schema(
    [
        ("node_id", pa.int64()),
        ("row_index", pa.int64()),
        ("originator_id", pa.int64()),
        ("sequence_id", tables.UINT64),
        ("digest", pa.binary()),
        ("transaction_hash", pa.binary()),
        ("signature_problem", pa.string()),
        ("is_in_one_form", pa.bool_()),
        ("unreadable", pa.string()),
    ]
)
"""One row per served envelope. ``row_index`` leads back to its bytes; ``digest`` is the digest that
its BlockchainProof signs. ``signature_problem`` is null where the signature is the registered
node's; ``is_in_one_form`` is about the bytes that no signature covers. Where ``unreadable`` has a
reason why the bytes are no envelope, the place is only claimed."""


def served_envelopes(raw: DataFrame, registered_keys: Mapping[int, bytes]) -> DataFrame:
    """Return the content of the nodes' envelopes (columns of SERVED), by their bytes alone.

    ``raw`` has the columns of sources.read_raw_envelopes; ``registered_keys`` are the 65 bytes that
    the registry holds for each node. A node without a key has no ``signature_problem``.
    """
    decode = partial(_decode_batches, registered_keys=dict(registered_keys))
    columns = raw.select("node_id", "row_index", "claimed_sequence_id", "envelope")
    return columns.mapInArrow(decode, from_arrow_schema(SERVED))


def _decode_batches(
    batches: Iterable[pa.RecordBatch], registered_keys: Mapping[int, bytes]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [decode_row(row, registered_keys.get(row["node_id"])) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=SERVED)


def decode_row(row: dict[str, Any], registered_key: bytes | None) -> dict[str, Any]:
    """Decode one raw envelope into a row of SERVED; without a key its signature is not checked."""
    place = dict.fromkeys(SERVED.names) | {name: row[name] for name in ("node_id", "row_index")}
    try:
        served = parse_originator_envelope(row["envelope"])
    except MalformedEnvelope as error:
        return {
            **place,
            "originator_id": BLOCKCHAIN_ORIGINATOR_ID,
            "sequence_id": row["claimed_sequence_id"],
            "unreadable": str(error),
        }
    digest = blockchain_proof_digest(served.unsigned_originator_envelope, served.transaction_hash)
    problem = None
    if registered_key is not None:
        problem = signature_problem(served.node_signature, digest, registered_key)
    return {
        **place,
        "originator_id": served.originator_id,
        "sequence_id": Decimal(served.sequence_id),
        "digest": digest,
        "transaction_hash": served.transaction_hash,
        "signature_problem": problem,
        "is_in_one_form": is_in_one_form(row["envelope"], served),
    }


def signature_problem(signature: bytes, digest: bytes, registered_key: bytes) -> str | None:
    """Return why a signature is not the registered node's, or None if it is."""
    try:
        public_key = recover_public_key(signature, digest)
    except InvalidSignature as error:
        return str(error)
    if public_key == registered_key:
        return None
    return f"signed by {address_of(public_key)}, registered is {address_of(registered_key)}"

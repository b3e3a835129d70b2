"""The chain as this node has verified it, to compare reports about its payloads with."""

from __future__ import annotations

from sqlalchemy import select

from chainkit.errors import MalformedData
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.blocks import read_final_block
from chainkit_indexer.storage.store import Store

_LARGEST_ID = 2**63 - 1
"""The largest sequence id that a database column holds."""


class ChainRows:
    """The chain's envelopes up to the final block."""

    def __init__(self, store: Store) -> None:
        """Take the node's database."""
        self._store = store

    def holds(self, envelope: bytes) -> bool:
        """Return whether this node, too, signed what a served OriginatorEnvelope contains.

        That is the same unsigned envelope of the same transaction, in a final block. False also
        where this node does not know yet, and for an envelope that is not of the chain. Raises
        StoreError.
        """
        try:
            served = parse_originator_envelope(envelope)
        except MalformedData:
            return False
        rows = schema.chain_envelopes.c
        if max(served.originator_id, served.sequence_id) > _LARGEST_ID:
            return False
        with self._store.reading() as connection:
            own = connection.execute(
                select(rows.envelope, rows.transaction_hash).where(
                    rows.originator_id == served.originator_id,
                    rows.sequence_id == served.sequence_id,
                    rows.block_number <= read_final_block(connection),
                )
            ).one_or_none()
        if own is None or own.transaction_hash != served.transaction_hash:
            return False
        unsigned = parse_originator_envelope(own.envelope).unsigned_originator_envelope
        return unsigned == served.unsigned_originator_envelope

"""A node that answers CompareRanges and QueryEnvelopes from a database, without a socket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from sqlalchemy import delete

from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.signatures import SigningKey
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.identity import Identity
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.serving.comparing import LogComparer
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.reading import Reader
from chainkit_node.settings import ServingLimits
from chainkit_node.storage.payer_reports import StoredPayerReport, insert_report
from chainkit_node.storage.pruning import GRACE_SECONDS, Pruning
from chainkit_node.storage.range_digests import forget_ranges
from support.chains.fake_chain import FakeChain
from support.indexer.fake_node import open_store
from support.log_sides import ORIGINATOR

KEY = SigningKey(b"\5" * 32)
IDENTITY = Identity.of(FakeChain().deployment, KEY.public_key)
LONG_AGO = 1_000
"""Seconds since 1970, at which something expired."""


@cache
def signed(sequence_id: int, version: int = 1, originator_id: int = ORIGINATOR) -> bytes:
    """Return an OriginatorEnvelope with a signature."""
    stated = OriginatedEnvelope(originator_id, sequence_id, version, b"payload")
    return sign_originated(unsigned_originated(stated), KEY)


class ComparingNode:
    """A node whose methods count their calls, and the bytes on the way."""

    def __init__(self, path: Path, limits: ServingLimits | None = None) -> None:
        limits = limits or ServingLimits()
        self.store = open_store(path, IDENTITY)
        self.log = EnvelopeLog(self.store)
        self._comparer = LogComparer(self.log, limits)
        self._reader = Reader(self.log, limits, NodeMetrics())
        self.asked: list[bytes] = []
        self.bytes = 0

    def close(self) -> None:
        """End its threads and close its database."""
        self.log.close()
        self.store.close()

    async def compare_ranges(self, request: bytes) -> bytes:
        """Answer digests of ranges."""
        return self._counted(request, await self._comparer.compare_ranges(request))

    async def query_envelopes(self, request: bytes) -> bytes:
        """Answer envelopes."""
        return self._counted(request, await self._reader.query_envelopes(request))

    def hold(self, ids: Iterable[int], version: int = 1, expires_at: int | None = None) -> None:
        """Store envelopes of the originator's key."""
        self.store_raw({each: signed(each, version) for each in ids}, expires_at)

    def store_raw(self, envelopes: dict[int, bytes], expires_at: int | None = None) -> None:
        """Store envelopes by their ids, whatever they are."""
        rows: Sequence[StoredEnvelope] = [
            StoredEnvelope(ORIGINATOR, each, each, b"\1t", expires_at, envelope)
            for each, envelope in envelopes.items()
        ]
        with self.store.writing() as connection:
            self.store.insert_envelopes(connection, rows)
            forget_ranges(connection, ORIGINATOR, envelopes)

    def lose(self, ids: Iterable[int]) -> None:
        """Delete envelopes as if they had never been here."""
        gone = list(ids)
        table = schema.envelopes
        with self.store.writing() as connection:
            connection.execute(delete(table).where(table.c.sequence_id.in_(gone)))
            forget_ranges(connection, ORIGINATOR, gone)

    def prune(self) -> list[int]:
        """Prune all that has expired, as if attested reports covered every id."""
        ids = range(1, 2**62)
        pruning = Pruning(ORIGINATOR, False, LONG_AGO + GRACE_SECONDS)
        with self.store.writing() as connection:
            insert_report(
                connection, StoredPayerReport(ORIGINATOR, 1, ids[-1], b"", b"", b"", 1, 1)
            )
            return pruning.delete(connection, ids).sequence_ids

    def _counted(self, request: bytes, answer: bytes) -> bytes:
        self.asked.append(request)
        self.bytes += len(request) + len(answer)
        return answer

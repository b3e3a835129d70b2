"""Verifies what a node holds of all originators: signatures, order, digests (``node verify``).

Each envelope is judged again by its bytes and by the registry's key, as on the day it came, and the
row must say what the bytes say. An id that is missing must be a gap that the node knows, or one
that it pruned, and each stored digest of a range must be the one that the envelopes make: those of
pruned envelopes are all that is left of them. Nothing is asked of other nodes or of the chain:
``index verify`` compares originator 0 with the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, func, select

from chainkit.errors import ChainkitError, InvalidSignature, MalformedEnvelope
from chainkit.protocol.envelope import blockchain_proof_digest, parse_originator_envelope
from chainkit.protocol.received_envelope import read_received
from chainkit.protocol.served_topic import named_topic
from chainkit.signatures import recover_public_key
from chainkit_indexer.registry.history import nodes_at
from chainkit_indexer.storage.envelopes import StoredEnvelope, read_by_originators, read_highest
from chainkit_indexer.storage.schema import envelopes
from chainkit_indexer.storage.store import Store
from chainkit_node.storage.gaps import unknown_gaps
from chainkit_node.storage.pruned_ids import PRUNED
from chainkit_node.storage.range_digests import RangeKey, differing_ranges

PAGE_ENVELOPES: Final = 500
PAGE_BYTES: Final = 16 << 20
_LONGEST_BYTES: Final = 64
_EVER: Final = 0
"""A time at which nothing has expired."""


@dataclass(frozen=True, slots=True)
class StoredFault:
    """One thing in the database that cannot be so."""

    originator_id: int
    subject: str
    expected: str
    got: str

    def __str__(self) -> str:
        """Say it in one line."""
        place = f"{self.subject} of originator {self.originator_id}"
        return f"{place}: expected {self.expected}, got {self.got}"


@dataclass(slots=True)
class VerifiedLog:
    """The counts of one originator's log."""

    originator_id: int
    last_id: int
    """The highest sequence id."""
    is_of_chain: bool
    envelopes: int = 0
    missing_ids: int = 0
    """Ids between the first and ``last_id`` that are neither held nor pruned; of the chain's, the
    quarantined, and 0 where its ids are sparse."""
    pruned_ids: int = 0
    """Ids whose envelopes ``node prune`` deleted."""
    ranges: int = 0
    """Stored digests of ranges."""
    faults: int = 0


class LogVerifier:
    """Verifies a database that is only read; the node may run."""

    def __init__(self, store: Store, found: Callable[[StoredFault], None]) -> None:
        """Take the database; ``found`` gets each fault."""
        self._store = store
        self._found = found
        self._own_key = store.identity.node_public_key
        self._chain_ids = {each.originator_id for each in store.identity.contracts}
        self._sparse_ids = store.identity.sparse_originator_ids
        with store.reading() as connection:
            self._keys = {each.node_id: each.signing_key for each in nodes_at(connection, None)}
            # Envelopes that come meanwhile are left to the next verification.
            self._highest = read_highest(connection)
            self.envelopes: int = (
                connection.scalar(select(func.count()).select_from(envelopes)) or 0
            )

    def verify(self, advance: Callable[[int], None]) -> Iterator[VerifiedLog]:
        """Verify one log after the other, in the order of their originators.

        ``advance`` gets how many more envelopes were verified.
        """
        for originator_id, last_id in sorted(self._highest.items()):
            yield self._verified(originator_id, last_id, advance)

    def _verified(
        self, originator_id: int, last_id: int, advance: Callable[[int], None]
    ) -> VerifiedLog:
        log = VerifiedLog(originator_id, last_id, originator_id in self._chain_ids)
        before = 0
        while before < last_id:
            # The gaps of a page are read in its transaction: a node may run beside.
            with self._store.reading() as connection:
                rows = self._page(connection, originator_id, before, last_id)
                end = rows[-1].sequence_id if rows else last_id
                self._verify_order(connection, log, rows, range(before + 1, end + 1))
            for row in rows:
                self._verify_envelope(log, row)
            advance(len(rows))
            before = end
        if not log.is_of_chain:
            self._verify_ranges(log)
        return log

    def _page(
        self, connection: Connection, originator_id: int, before: int, last_id: int
    ) -> list[StoredEnvelope]:
        cursor = {originator_id: before}
        rows = read_by_originators(
            connection, [originator_id], cursor, PAGE_ENVELOPES, _EVER, PAGE_BYTES
        )
        return [row for row in rows if row.sequence_id <= last_id]

    def _verify_order(
        self, connection: Connection, log: VerifiedLog, rows: list[StoredEnvelope], ids: range
    ) -> None:
        """Compare the ids that are missing with the gaps that the node knows."""
        held = {row.sequence_id for row in rows}
        log.envelopes += len(held)
        if log.originator_id in self._sparse_ids:
            # Most ids between two payloads were never given out.
            return
        pruned = sum(map(len, PRUNED.runs(connection, log.originator_id, ids)))
        log.pruned_ids += pruned
        log.missing_ids += len(ids) - len(held) - pruned
        # The chain's missing ids are in quarantine; the node's own were given up (--resume-after).
        if log.is_of_chain or self._keys.get(log.originator_id) == self._own_key:
            return
        for missing in unknown_gaps(connection, log.originator_id, held, ids):
            text = f"ids {missing.start} to {missing.stop - 1}"
            self._fault(log, text, "envelopes, or a gap", "neither")

    def _verify_envelope(self, log: VerifiedLog, row: StoredEnvelope) -> None:
        subject = f"envelope {row.sequence_id}"
        try:
            said = self._of_chain(row) if log.is_of_chain else self._originated(row)
        except ChainkitError as error:
            self._fault(log, subject, error.expected or "what its originator signed", error.got)
            return
        for name, value in said.items():
            if (stored := getattr(row, name)) != value:
                self._fault(log, f"{name} of {subject}", _text(value), _text(stored))

    def _originated(self, row: StoredEnvelope) -> dict[str, object]:
        """Return what the row must say by the envelope's bytes. Raises ChainkitError."""
        key = self._keys.get(row.originator_id)
        if key is None:
            raise InvalidSignature("originator", "a node of the registry", "none")
        received = read_received(row.envelope, row.originator_id, key)
        return {
            "sequence_id": received.sequence_id,
            "originator_ns": received.originator_ns,
            "topic": received.topic,
            "expires_at": received.expires_at,
            "envelope": received.envelope,
        }

    def _of_chain(self, row: StoredEnvelope) -> dict[str, object]:
        served = parse_originator_envelope(row.envelope)
        if served.originator_id != row.originator_id:
            raise MalformedEnvelope("envelope", f"originator {row.originator_id}", "another's")
        signed = blockchain_proof_digest(
            served.unsigned_originator_envelope, served.transaction_hash
        )
        if recover_public_key(served.node_signature, signed) != self._own_key:
            raise InvalidSignature("envelope", "the signature of this node", "another's")
        return {
            "sequence_id": served.sequence_id,
            "originator_ns": served.originator_ns,
            # Only a payload that names the topic which it was posted to is served.
            "topic": named_topic(served.client_envelope),
            "expires_at": None,
        }

    def _verify_ranges(self, log: VerifiedLog) -> None:
        last: RangeKey | None = None
        while True:
            with self._store.reading() as connection:
                page = differing_ranges(connection, log.originator_id, last)
            log.ranges += page.compared
            for each in page.differing:
                text = f"digests of ids {each.first} to {each.last}"
                self._fault(log, text, "those of the envelopes", "others")
            if page.last is None:
                return
            last = page.last

    def _fault(self, log: VerifiedLog, subject: str, expected: object, got: object) -> None:
        log.faults += 1
        self._found(StoredFault(log.originator_id, subject, str(expected), str(got)))


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return f"0x{value.hex()}" if len(value) <= _LONGEST_BYTES else f"{len(value)} other bytes"
    return "none" if value is None else str(value)

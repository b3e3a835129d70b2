"""Keeps envelopes with missing dependencies, has nodes asked, and reports what stays missing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Final, Protocol

from sqlalchemy import Connection, func, select

from chainkit.errors import MalformedData, StoreError
from chainkit.protocol.received_envelope import ReceivedEnvelope, read_received
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.blocks import read_block, read_final_block, read_position
from chainkit_indexer.storage.envelopes import read_by_originators, read_highest, read_last
from chainkit_indexer.storage.store import Store
from chainkit_node.peers.directory import Listing
from chainkit_node.replicating.dependencies import (
    MOST_WAITING,
    Checked,
    Compared,
    Dependencies,
    KnownLogs,
)
from chainkit_node.replicating.intake import SafetyReports

LOOK_SECONDS: Final = 5.0

_MOST_BYTES: Final = 16 << 20
"""Bytes of one originator's last envelopes: no more of them are read at the start."""


class Logs(Protocol):
    """All logs as a node holds them; for several threads. Both methods may raise StoreError."""

    def known(self) -> KnownLogs:
        """Return what is held, and up to which time the chain is final."""

    def recent(self) -> Iterable[ReceivedEnvelope]:
        """Yield the last envelopes of each other node, MOST_WAITING of each at most."""


class DependencyKeeper:
    """``run`` and ``compared`` are for the event loop; ``take`` is for several threads.

    Waiting envelopes are in memory only: a start checks the last envelopes of each log again.
    """

    def __init__(
        self,
        logs: Logs,
        reports: SafetyReports,
        clock: Callable[[], float],
        dropped: Callable[[], None],
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """Take all logs, the reports, and a callback for each envelope that is dropped.

        ``clock`` is in seconds and only grows; the comparisons use the same clock.
        """
        self._logs = logs
        self._reports = reports
        self._clock = clock
        self._dropped = dropped
        self._look_seconds = look_seconds
        self._dependencies = Dependencies()
        self._held: Mapping[int, int] = {}
        self._lock = Lock()

    def take(self, received: Sequence[ReceivedEnvelope]) -> None:
        """Record envelopes that have been stored. Raises StoreError."""
        open_ones = [each for each in received if self._names_more(each)]
        known = self._logs.known() if open_ones else None
        with self._lock:
            if len(self._dependencies):
                for each in received:
                    self._dependencies.arrived(each)
            if known is not None:
                # Seldom read: what is held never becomes less.
                self._held = known.held
                now = self._clock()
                for each in open_ones:
                    if self._dependencies.add(each, known, now):
                        self._dropped()

    def compared(self, compared: Compared) -> None:
        """Record a comparison that has ended."""
        with self._lock:
            self._dependencies.compared(compared)

    def waiting(self) -> int:
        """Count the envelopes that wait."""
        with self._lock:
            return len(self._dependencies)

    async def run(self, hurry: Callable[[int], None]) -> None:
        """Check waiting envelopes until cancelled; ``hurry`` has a node compared soon."""
        # The indexer logs that a database is away.
        with suppress(StoreError):
            await asyncio.to_thread(self._take_recent)
        while True:
            await asyncio.sleep(self._look_seconds)
            if self.waiting():
                # The indexer logs that a database is away.
                with suppress(StoreError):
                    checked = await asyncio.to_thread(self._check)
                    for each in sorted(checked.to_compare):
                        hurry(each)

    def _names_more(self, received: ReceivedEnvelope) -> bool:
        return any(
            each != received.originator_id and sequence_id > self._held.get(each, 0)
            for each, sequence_id in received.depends_on.items()
        )

    def _take_recent(self) -> None:
        for each in self._logs.recent():
            self.take([each])

    def _check(self) -> Checked:
        known = self._logs.known()
        with self._lock:
            checked = self._dependencies.check(known, self._clock())
        for each in checked.offences:
            self._reports.submit_own_safety(each.node_id, each.misbehavior, each.envelopes)
        return checked


class StoredLogs:
    """All logs as the node's database knows them; for several threads."""

    def __init__(
        self, store: Store, listing: Callable[[], Listing], knows_own: Callable[[], bool]
    ) -> None:
        """Take the database, the newest listing, and whether this node's own log is whole."""
        self._store = store
        self._knows_own = knows_own
        self._listing = listing
        self._chain_ids = frozenset(each.originator_id for each in store.identity.contracts)

    def known(self) -> KnownLogs:
        """Read what is held, and up to which time the chain is final. Raises StoreError."""
        with self._store.reading() as connection:
            held = read_highest(connection) | self._chain(connection)
            block = read_block(connection, read_final_block(connection))
        listing = self._listing()
        final_ns = 0 if block is None else block.header.timestamp * NANOSECONDS_PER_SECOND
        return KnownLogs(
            held,
            self._chain_ids,
            frozenset(listing.nodes),
            listing.own_id,
            final_ns,
            self._knows_own(),
        )

    def recent(self) -> Iterator[ReceivedEnvelope]:
        """Yield the last envelopes of each other node. Raises StoreError."""
        listing, now = self._listing(), int(time.time())
        for node_id, node in listing.nodes.items():
            if node_id == listing.own_id:
                continue
            with self._store.reading() as connection:
                last = read_last(connection, node_id)
                after = 0 if last is None else max(0, last[0] - MOST_WAITING)
                rows = read_by_originators(
                    connection, [node_id], {node_id: after}, MOST_WAITING, now, _MOST_BYTES
                )
            for row in rows:
                # An envelope that a former key of the node signed is left out.
                with suppress(MalformedData):
                    yield read_received(row.envelope, node_id, node.signing_key)

    def _chain(self, connection: Connection) -> dict[int, int]:
        """Return the highest sequence ids that the chain has, or had before a reorg."""
        position = read_position(connection)
        ids = {} if position is None else position.sequence_ids
        rows = schema.journal.c
        query = select(rows.originator_id, func.max(rows.sequence_id)).group_by(rows.originator_id)
        taken_back = {row.originator_id: row[1] for row in connection.execute(query)}
        return {each: max(ids.get(each, 0), taken_back.get(each, 0)) for each in self._chain_ids}

"""The accounts of several nodes, each on a database of its own, without a network between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import delete

from chainkit.protocol.charges import Charge
from chainkit.protocol.payer_reports import PayerReport, sign_report, stored_report, written_report
from chainkit.protocol.proto import node_api_pb2
from chainkit.signatures import SigningKey
from chainkit.types import BlockReference, Node
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.schema import envelopes
from chainkit_indexer.storage.store import Store
from chainkit_node.accounting.books import Books, Outcome
from chainkit_node.peers.directory import Listing
from chainkit_node.storage import schema
from chainkit_node.storage.charges import insert_charges
from chainkit_node.storage.payer_reports import (
    RefusedReport,
    as_message,
    attested_through,
    read_refused_reports,
    read_reports_behind,
)
from support.chains.fake_chain import FakeChain
from support.indexer.fake_node import open_store

SECOND_NS = 10**9
MOST_READ = 1_000
"""Reports of one originator: more than those of a year."""
WAIT_NS = 12 * 60 * 60 * SECOND_NS
MADE_NS = 1_000_000 * SECOND_NS
"""The time of all envelopes; each node's clock is WAIT_NS later."""

Log = Mapping[int, Charge]


@dataclass
class Bookkeeper:
    """A node that holds envelopes and reports."""

    node_id: int
    store: Store
    listing: Listing
    now_ns: int = MADE_NS + WAIT_NS
    books: Books = field(init=False)

    def __post_init__(self) -> None:
        self.books = Books(self.store, key_of(self.node_id), lambda: self.now_ns)

    def holds(self, originator_id: int, log: Log) -> None:
        """Store envelopes, without their contents, and their payers' debts."""
        rows = [StoredEnvelope(originator_id, each, MADE_NS, b"\0", None, b"") for each in log]
        with self.store.writing() as connection:
            self.store.insert_envelopes(connection, rows)
            insert_charges(self.store, connection, originator_id, log.items())

    def makes(self) -> int:
        """Make the reports that are due."""
        return self.books.make(self.node_id, self.listing, WAIT_NS)

    def reports(self, originator_id: int, after: int = 0) -> list[node_api_pb2.SignedPayerReport]:
        """The stored reports of an originator behind an id, as other nodes get them."""
        with self.store.reading() as connection:
            rows = read_reports_behind(connection, originator_id, after, MOST_READ)
            return [as_message(connection, row) for row in rows]

    def asks(self, other: Bookkeeper) -> list[Outcome]:
        """Take all reports that another node has, once."""
        found = [each for node_id in self.listing.nodes for each in other.reports(node_id)]
        return [self.books.take(each, self.listing) for each in found]

    def catches_up(self, other: Bookkeeper) -> list[Outcome]:
        """Take what another node has behind what is attested here, as a node asks for it."""
        return [
            self.books.take(report, self.listing)
            for log_id in self.listing.nodes
            for report in other.reports(log_id, self.attested(log_id))
        ]

    def takes(self, report: PayerReport) -> Outcome:
        """Take a report that its originator has signed, whatever its content."""
        signed = sign_report(report, key_of(report.originator_id))
        return self.books.take(written_report(signed), self.listing)

    def attested(self, originator_id: int) -> int:
        with self.store.reading() as connection:
            return attested_through(connection, originator_id)

    def refused(self) -> list[RefusedReport]:
        with self.store.reading() as connection:
            return list(read_refused_reports(connection))

    def bytes_of(self, originator_id: int) -> list[tuple[bytes, bytes]]:
        """All bytes that must be equal on all nodes: the signed bytes, and their totals."""
        with self.store.reading() as connection:
            rows = read_reports_behind(connection, originator_id, 0, MOST_READ)
        return [(row.report, row.payers) for row in rows]

    def totals(self, originator_id: int) -> list[PayerReport]:
        return [stored_report(*each) for each in self.bytes_of(originator_id)]

    def forgets(self) -> None:
        """Empty the tables."""
        with self.store.writing() as connection:
            for table in (*schema.metadata.sorted_tables, envelopes):
                connection.execute(delete(table))


def key_of(node_id: int) -> SigningKey:
    return SigningKey(node_id.to_bytes(32, "big"))


def listed(*node_ids: int, disabled: int | None = None) -> Listing:
    """A registry's nodes."""
    nodes = {each: Node(each, key_of(each).public_key, "", each != disabled) for each in node_ids}
    return Listing(nodes, None, BlockReference(1, bytes(32)))


def bookkeepers(folder: Path, listing: Listing) -> list[Bookkeeper]:
    """A node for each of the registry."""
    found = []
    for each in listing.nodes:
        identity = Identity.of(FakeChain().deployment, key_of(each).public_key)
        store = open_store(folder / f"{each}.db", identity)
        found.append(Bookkeeper(each, store, replace(listing, own_id=each)))
    return found

"""A node's database with a peer's log that has expired, and reports that cover a part of it."""

from __future__ import annotations

from sqlalchemy import select, update

from chainkit_indexer.storage.schema import blocks, envelopes
from chainkit_node.storage.payer_reports import StoredPayerReport, insert_report
from chainkit_node.storage.pruned_ids import PRUNED
from chainkit_node.storage.range_digests import store_ranges
from support.network.held_logs import PEER, take
from support.network.originator import BEGIN_NS, SECOND_NS
from support.reporting import ACCUSED, Host, register

DAY = 86_400
NOW = BEGIN_NS // SECOND_NS + 10 * DAY
"""When the last block was mined that the node followed."""
EXPIRY = NOW - 2 * DAY


def hold_expired(database_url: str, count: int, covered: int) -> Host:
    """Return a database whose peer's messages have all expired, but for every seventh."""
    host = Host(database_url)
    register(host)
    host.chain.mine([], [])
    host.indexer.catch_up()
    ids = range(1, count + 1)
    take(host, [PEER.signed(each, each, expiry=EXPIRY if each % 7 else None) for each in ids])
    with host.store.writing() as connection:
        connection.execute(update(blocks).values(timestamp=NOW))
        while store_ranges(connection, ACCUSED, 100):
            pass
    attest(host, 1, covered)
    return host


def attest(host: Host, first: int, last: int) -> None:
    """Store an attested payer report about a range of the peer's ids."""
    with host.store.writing() as connection:
        report = StoredPayerReport(ACCUSED, first, last, b"", b"", b"", 1, 1)
        insert_report(connection, report)


def held_ids(host: Host) -> set[int]:
    """Return which of the peer's ids have envelopes."""
    table = envelopes.c
    with host.store.reading() as connection:
        query = select(table.sequence_id).where(table.originator_id == ACCUSED)
        return set(connection.scalars(query))


def pruned_ids(host: Host) -> set[int]:
    """Return which of the peer's ids are known as pruned."""
    with host.store.reading() as connection:
        runs = PRUNED.runs(connection, ACCUSED, range(1, 2**40))
        return {each for run in runs for each in run}

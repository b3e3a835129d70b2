"""Faults of payer reports and of the database's size, as ``node status`` is tested with."""

from __future__ import annotations

from chainkit_node.storage.payer_reports import (
    RefusedReport,
    StoredPayerReport,
    insert_refused,
    insert_report,
)
from chainkit_node.storage.storage_looks import DatabaseSize, write_look
from chainkit_node.storage.stored_bytes import StoredBytes
from support.faulty_node import FaultyNode
from support.reporting import ACCUSED, OWN


def filling(node: FaultyNode) -> None:
    hour = int(node.now) // 3_600
    with node.host.store.writing() as connection:
        for size in (DatabaseSize(hour - 24, 10**9, 0), DatabaseSize(hour, 3 * 10**9, 10 * 10**9)):
            write_look(connection, size, StoredBytes())


def refused_report(node: FaultyNode) -> None:
    reason = "it signed another report of ids 1 to 4, too"
    row = RefusedReport(ACCUSED, bytes(32), 1, 9, reason, b"", int(node.now * 1e9))
    with node.host.store.writing() as connection:
        insert_refused(connection, row)


def unattested_report(node: FaultyNode) -> None:
    stored_ns = int((node.now - 8 * 60 * 60) * 1e9)
    with node.host.store.writing() as connection:
        insert_report(connection, StoredPayerReport(OWN, 1, 9, b"", b"", b"", stored_ns, None))

"""A node's tables beside its envelopes: columns, quarantine, journal, registry, cursor.

No such table decides about an envelope; the bytes and the chain do (ADR 0008). Where a table
contradicts the chain, it misleads readers of the node's database or export, and this package
reports it.
"""

from chainkit_jobs.reconcile.node_tables.job import NodeTables, node_table_findings

__all__ = ["NodeTables", "node_table_findings"]

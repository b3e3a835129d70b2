"""A node's tables beside its envelopes: columns, quarantine, journal, registry, cursor.

None of it decides about an envelope; the bytes and the chain do (ADR 0008). Where it contradicts
the chain, whoever reads the node's database or export is misled, and that is found here.
"""

from chainkit_jobs.reconcile.node_tables.job import NodeTables, node_table_findings

__all__ = ["NodeTables", "node_table_findings"]

"""Scopes of audits over exports that a test wrote."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chainkit.types import Node
from chainkit_jobs.administration.replay import Administration
from chainkit_jobs.reconcile.comparability import Comparability, NodeExport
from chainkit_jobs.reconcile.scope import AuditScope, Options
from chainkit_jobs.sources import Export, payload_contracts, read_export
from support.audit.identities import key_of


def scope_of(
    chain: Export,
    nodes: Sequence[NodeExport],
    administration: Administration | None = None,
    **options: Any,
) -> AuditScope:
    """Return the scope in which all of some nodes are compared."""
    return AuditScope(
        chain=chain,
        contracts=payload_contracts(chain),
        administration=administration,
        nodes=tuple(nodes),
        comparability=Comparability(tuple(nodes), {}, ()),
        options=Options(**options),
        proof=None,
    )


def node_export(node_id: int, folder: Path) -> NodeExport:
    """Read the export of a node whose registered key is ``key_of`` its id."""
    node = Node(node_id, key_of(node_id).public_key, "", is_enabled=True)
    return NodeExport(node, read_export(folder, "node"))

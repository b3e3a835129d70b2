"""The registry of nodes: read at a block, its history, and the set of nodes that a council wants.

XIP-49 §3.1.1: a node is an NFT held by its operator; its signing key never changes and is never
used twice; only the registry's owner adds, enables and disables nodes. What its calls change stands
in ``chainkit.calls.registry_effects``.
"""

from chainkit.calls.checks import check_account, check_http_address, check_public_key
from chainkit.registry.answering import find_silent
from chainkit.registry.desired import DesiredNode, read_desired_nodes
from chainkit.registry.difference import (
    FieldDifference,
    NodeDifference,
    RegistryDifference,
    calls_towards,
    compare_nodes,
)
from chainkit.registry.events import RegistryEvent, telling
from chainkit.registry.history import read_history
from chainkit.registry.reading import (
    PAGE_SIZE,
    RegisteredNode,
    Registry,
    node_facts,
    status_word,
)

__all__ = [
    "PAGE_SIZE",
    "DesiredNode",
    "FieldDifference",
    "NodeDifference",
    "RegisteredNode",
    "Registry",
    "RegistryDifference",
    "RegistryEvent",
    "calls_towards",
    "check_account",
    "check_http_address",
    "check_public_key",
    "compare_nodes",
    "find_silent",
    "node_facts",
    "read_desired_nodes",
    "read_history",
    "status_word",
    "telling",
]

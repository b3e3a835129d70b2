"""The registry of nodes: read at a block, and its history.

XIP-49 §3.1.1: a node is an NFT held by its operator; its signing key never changes and is never
used twice; only the registry's owner adds, enables and disables nodes. Effects of its calls are in
``chainkit.council.calls.registry_effects``.
"""

from chainkit.contracts.checks import check_account, check_http_address, check_public_key
from chainkit.contracts.registry.answering import NOT_ASKED, find_silent
from chainkit.contracts.registry.events import RegistryEvent, telling
from chainkit.contracts.registry.history import read_history
from chainkit.contracts.registry.reading import (
    PAGE_SIZE,
    RegisteredNode,
    Registry,
    node_facts,
    status_word,
)

__all__ = [
    "NOT_ASKED",
    "PAGE_SIZE",
    "RegisteredNode",
    "Registry",
    "RegistryEvent",
    "check_account",
    "check_http_address",
    "check_public_key",
    "find_silent",
    "node_facts",
    "read_history",
    "status_word",
    "telling",
]

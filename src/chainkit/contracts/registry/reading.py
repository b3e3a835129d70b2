"""The registry at a block: its owner, its nodes and their holders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from eth_utils.address import to_checksum_address

from chainkit.chain import Endpoint
from chainkit.contracts.interface import ContractInterface, shipped_interface
from chainkit.errors import ConfigurationError, InconsistentAnswer, RefusedRequest
from chainkit.text.printable import printable
from chainkit.types import BlockReference, Node, status_name

PAGE_SIZE: Final = 100
"""Nodes asked for in one call: a page must fit what an endpoint allows one call to use."""


@dataclass(frozen=True, slots=True)
class RegisteredNode:
    """A node with the holder of its NFT, its operator."""

    node: Node
    holder: str
    """Checksummed address."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The NodeRegistry contract behind an endpoint; every read is pinned to a block."""

    endpoint: Endpoint
    address: bytes
    """20 bytes."""

    @property
    def interface(self) -> ContractInterface:
        """The contract's shipped ABI."""
        return shipped_interface("NodeRegistry")

    def owner(self, block: BlockReference) -> str:
        """Return the checksummed address that alone may change the registry."""
        (owner,) = self._call(block, "owner")
        return to_checksum_address(owner)

    def pending_owner(self, block: BlockReference) -> str:
        """Return the checksummed address that ownership is offered to, or the zero address."""
        (pending,) = self._call(block, "pendingOwner")
        return to_checksum_address(pending)

    def address_updates_open(self, block: BlockReference) -> bool:
        """Return whether holders may change their nodes' HTTP addresses."""
        (is_open,) = self._call(block, "httpAddressUpdatesOpen")
        return bool(is_open)

    def nodes(self, block: BlockReference) -> list[Node]:
        """Return all nodes, enabled or not, in the order of their ids.

        Raises InconsistentAnswer where a page is shorter than by the contract's own count, or the
        ids do not grow.
        """
        (count,) = self._call(block, "nodeCount")
        nodes: list[Node] = []
        while len(nodes) < count:
            limit = min(PAGE_SIZE, count - len(nodes))
            (page,) = self._call(block, "nodesPage", len(nodes), limit)
            if len(page) != limit:
                raise InconsistentAnswer("nodesPage", f"{limit} nodes", len(page), f"block {block}")
            nodes.extend(Node(node_id, *entry) for node_id, entry in page)
        ids = [node.node_id for node in nodes]
        if ids != sorted(set(ids)):
            raise InconsistentAnswer("nodesPage", "growing node ids", ids, f"block {block}")
        return nodes

    def registered_nodes(self, block: BlockReference) -> list[RegisteredNode]:
        """Return all nodes with their holders, in the order of their ids; errors as ``nodes``."""
        nodes = self.nodes(block)
        asked = [self.interface.encode("ownerOf", node.node_id) for node in nodes]
        answers = self.endpoint.calls([(self.address, each) for each in asked], block)
        return [
            RegisteredNode(node, self._holder(answer))
            for node, answer in zip(nodes, answers, strict=True)
        ]

    def find_node(self, node_id: int, block: BlockReference) -> RegisteredNode | None:
        """Return a node and its holder, or None if there is no such node at the block."""
        found = self._find(block, "ERC721NonexistentToken", "getNode", node_id)
        return None if found is None else self._with_holder(Node(node_id, *found), block)

    def node(self, node_id: int, block: BlockReference) -> RegisteredNode:
        """Return a node and its holder. Raises ConfigurationError if there is no such node."""
        found = self.find_node(node_id, block)
        if found is None:
            got = f"none at block {block}"
            raise ConfigurationError(f"node {node_id}", "a registered node", got)
        return found

    def find_node_of_key(self, key_address: str, block: BlockReference) -> RegisteredNode | None:
        """Return the node whose signing key has an address, or None if none ever had."""
        found = self._find(block, "UnknownSigningKey", "nodeByKeyAddress", key_address)
        return None if found is None else self._with_holder(Node(found[0], *found[1]), block)

    def _find(self, block: BlockReference, unknown: str, function: str, argument: Any) -> Any:
        """Return a function's answer, None where the call reverts with the error ``unknown``."""
        try:
            (found,) = self._call(block, function, argument)
        except RefusedRequest as error:
            if self.interface.revert_name(error) == unknown:
                return None
            raise
        return found

    def _with_holder(self, node: Node, block: BlockReference) -> RegisteredNode:
        (holder,) = self._call(block, "ownerOf", node.node_id)
        return RegisteredNode(node, to_checksum_address(holder))

    def _holder(self, answer: bytes) -> str:
        (holder,) = self.interface.result("ownerOf", answer)
        return to_checksum_address(holder)

    def _call(self, block: BlockReference, function: str, *arguments: Any) -> tuple[Any, ...]:
        return self.interface.call(self.endpoint, self.address, block, function, *arguments)


def status_word(node: Node) -> str:
    """Return ``enabled`` or ``disabled`` (XIP-49 §3.1.1)."""
    return status_name(node.is_enabled)


def node_facts(registered: RegisteredNode) -> dict[str, str]:
    """Return the registry's fields of a node, by name, safe to print."""
    return {
        "status": status_word(registered.node),
        "holder": registered.holder,
        "http address": printable(registered.node.http_address),
        "public key": f"0x{registered.node.signing_key.hex()}",
    }

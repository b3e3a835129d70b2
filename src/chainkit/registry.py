"""The registry of nodes: read at a block, and changed by a plan that is shown before it is sent.

XIP-49 §3.1.1: a node is an NFT held by its operator; its signing key never changes and is never
used twice; only the registry's owner adds, enables and disables nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

from eth_utils.address import is_hex_address, to_checksum_address

from chainkit.chain import Endpoint
from chainkit.errors import (
    ConfigurationError,
    InconsistentAnswer,
    RefusedRequest,
    TransactionFailed,
)
from chainkit.interface import ContractInterface, printable, shipped_interface
from chainkit.signatures import (
    PUBLIC_KEY_LENGTH,
    SigningKey,
    address_of,
    is_valid_public_key,
    keccak256,
)
from chainkit.transactions import (
    RECEIPT_TIMEOUT_SECONDS,
    Receipt,
    SignedTransaction,
    estimate_gas,
    send_transaction,
    sign_transaction,
    wait_for_receipt,
)
from chainkit.types import BlockReference, Node

PAGE_SIZE: Final = 100
"""Nodes asked for in one call: a page must fit what an endpoint allows one call to use."""

_NO_ACCOUNT: Final = "0x" + 40 * "0"


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

    def nodes(self, block: BlockReference) -> list[Node]:
        """Return all nodes, enabled or not, in the order of their ids.

        Raises InconsistentAnswer where a page is shorter than the contract's own count says,
        or the ids do not grow.
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

    def find_node(self, node_id: int, block: BlockReference) -> RegisteredNode | None:
        """Return a node and its holder, or None if there is no such node at the block."""
        try:
            (entry,) = self._call(block, "getNode", node_id)
        except RefusedRequest as error:
            if self.interface.revert_name(error) == "ERC721NonexistentToken":
                return None
            raise
        (holder,) = self._call(block, "ownerOf", node_id)
        return RegisteredNode(Node(node_id, *entry), to_checksum_address(holder))

    def node(self, node_id: int, block: BlockReference) -> RegisteredNode:
        """Return a node and its holder. Raises ConfigurationError if there is no such node."""
        found = self.find_node(node_id, block)
        if found is None:
            raise ConfigurationError(f"node {node_id}", "a registered node", f"none at {block}")
        return found

    def _call(self, block: BlockReference, function: str, *arguments: Any) -> tuple[Any, ...]:
        return self.interface.call(self.endpoint, self.address, block, function, *arguments)


@dataclass(frozen=True, slots=True)
class Plan:
    """One change of the registry, simulated but not sent."""

    target: bytes
    """20 bytes: the registry."""
    sender: str
    """Checksummed address: the registry's owner."""
    function: str
    arguments: Mapping[str, Any]
    """By name, decoded again from ``calldata``: what is shown is what would be sent."""
    calldata: bytes
    block: BlockReference
    """What the plan was read at and simulated on."""
    before: RegisteredNode | None
    """None if the node does not exist yet."""
    after: RegisteredNode
    gas: int
    """Estimated gas units."""

    @property
    def calldata_hash(self) -> bytes:
        """keccak256 of the calldata, 32 bytes: what people compare."""
        return keccak256(self.calldata)

    @property
    def difference(self) -> tuple[str, ...]:
        """What changes, a line each, safe to print."""
        subject, after = f"node {self.after.node.node_id}", node_facts(self.after)
        if self.before is None:
            return tuple(f"{subject} {name}: (none) -> {value}" for name, value in after.items())
        before = node_facts(self.before)
        return tuple(
            f"{subject} {name}: {before[name]} -> {value}"
            for name, value in after.items()
            if before[name] != value
        )


def status_word(node: Node) -> str:
    """Return ``enabled`` or ``disabled`` (XIP-49 §3.1.1)."""
    return "enabled" if node.is_enabled else "disabled"


def node_facts(registered: RegisteredNode) -> dict[str, str]:
    """Return what the registry says of a node, by name, safe to print."""
    return {
        "status": status_word(registered.node),
        "holder": registered.holder,
        "http address": printable(registered.node.http_address),
        "public key": f"0x{registered.node.signing_key.hex()}",
    }


def plan_add(
    registry: Registry,
    block: BlockReference,
    holder: str,
    public_key: bytes,
    http_address: str,
) -> Plan:
    """Plan to add an enabled node (XIP-49 §3.1.1) and simulate it as the registry's owner.

    Raises ConfigurationError for an invalid address, key or URL, or a key that a node has
    already, and RefusedRequest in the contract's words if the simulation reverts.
    """
    holder = check_account(holder)
    check_public_key(public_key)
    check_http_address(http_address)
    for node in registry.nodes(block):
        if node.signing_key == public_key:
            raise ConfigurationError(
                "public key", "one never registered", f"the key of node {node.node_id}"
            )
    arguments = (holder, public_key, http_address)
    calldata = registry.interface.encode("addNode", *arguments)
    (node_id,) = registry.interface.result("addNode", _simulate(registry, block, calldata))
    after = RegisteredNode(Node(node_id, public_key, http_address, True), holder)
    return _plan(registry, block, "addNode", calldata, None, after)


def plan_set_status(
    registry: Registry, block: BlockReference, node_id: int, is_enabled: bool
) -> Plan:
    """Plan to enable or disable a node (XIP-49 §3.1.1) and simulate it as the registry's owner.

    Raises ConfigurationError for an unknown node or one that has this status already, and
    RefusedRequest in the contract's words if the simulation reverts.
    """
    before = registry.node(node_id, block)
    if before.node.is_enabled == is_enabled:
        status = status_word(before.node)
        raise ConfigurationError(
            f"node {node_id}", "another status", f"{status} already at {block}"
        )
    after = replace(before, node=replace(before.node, is_enabled=is_enabled))
    calldata = registry.interface.encode("updateHealth", node_id, is_enabled)
    _simulate(registry, block, calldata)
    return _plan(registry, block, "updateHealth", calldata, before, after)


def sign_plan(registry: Registry, plan: Plan, chain_id: int, secret: bytes) -> SignedTransaction:
    """Sign a plan's transaction. Raises ConfigurationError if the key is not the owner's."""
    sender = address_of(SigningKey(secret).public_key)
    if sender != plan.sender:
        raise ConfigurationError("keystore", f"the registry's owner {plan.sender}", sender)
    return sign_transaction(
        registry.endpoint, secret, chain_id, plan.target, plan.calldata, plan.gas
    )


def execute_plan(
    registry: Registry,
    plan: Plan,
    signed: SignedTransaction,
    timeout_seconds: float = RECEIPT_TIMEOUT_SECONDS,
) -> Receipt:
    """Send a signed plan and prove from the chain that it did what was planned.

    It did if the receipt has status 1, the registry emitted NodeUpdated with the planned node,
    and the state read back at the receipt's block is the planned one. Raises TransactionFailed
    if any of this is missing, or no receipt comes in time.
    """
    send_transaction(registry.endpoint, signed)
    receipt = wait_for_receipt(registry.endpoint, signed.hash, timeout_seconds)
    place = f"transaction 0x{signed.hash.hex()} in block {receipt.block.reference}"
    subject = plan.function
    if not receipt.succeeded:
        raise TransactionFailed(subject, "status 1", _failure(registry, plan, receipt), place)
    planned = plan.after.node
    if not any(node == planned for node in _updated_nodes(registry, receipt)):
        raise TransactionFailed(subject, "NodeUpdated with the planned node", "no such log", place)
    found = registry.find_node(planned.node_id, receipt.block.reference)
    if found != plan.after:
        got = "no such node" if found is None else node_facts(found)
        raise TransactionFailed(subject, node_facts(plan.after), got, place)
    return receipt


def check_account(address: str, subject: str = "owner") -> str:
    """Return an account's address with its checksum; errors name the ``subject``.

    Raises ConfigurationError for anything but 0x and 40 hex digits, a checksum (EIP-55) that
    does not match, and the address that belongs to nobody.
    """
    if not address.startswith("0x") or not is_hex_address(address):
        raise ConfigurationError(subject, "0x and 40 hex digits", f'"{printable(address)}"')
    checksummed = to_checksum_address(address)
    # Digits all in one case carry no checksum.
    if address not in (checksummed, address.lower(), "0x" + address[2:].upper()):
        raise ConfigurationError(subject, f"the checksum of {checksummed}", address)
    if checksummed == _NO_ACCOUNT:
        raise ConfigurationError(subject, "an account", "the zero address")
    return checksummed


def check_public_key(public_key: bytes) -> None:
    """Raise ConfigurationError unless the key is an uncompressed secp256k1 point (§3.1.1)."""
    if len(public_key) != PUBLIC_KEY_LENGTH:
        got = f"{len(public_key)} bytes"
        raise ConfigurationError("public key", f"{PUBLIC_KEY_LENGTH} bytes", got)
    if not is_valid_public_key(public_key):
        expected = "0x04 and a point of secp256k1"
        raise ConfigurationError("public key", expected, f"0x{public_key.hex()[:16]}…")


def check_http_address(http_address: str) -> None:
    """Raise ConfigurationError unless this is a plain http(s) URL.

    Plain is printable ASCII (other hosts have a punycode form), with a host, and with no user
    before it: ``https://node.example@elsewhere`` would be read as the wrong host.
    """
    shown = f'"{printable(http_address)}"'
    if not http_address:
        raise ConfigurationError("http address", "an http:// or https:// URL", "an empty one")
    if any(not 0x20 < ord(character) < 0x7F for character in http_address):
        raise ConfigurationError("http address", "printable ASCII without spaces", shown)
    try:
        parts = urlsplit(http_address)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ConfigurationError("http address", "an http:// or https:// URL with a host", shown)
    if "@" in parts.netloc:
        raise ConfigurationError("http address", "a host without a user before it", shown)


def _simulate(registry: Registry, block: BlockReference, calldata: bytes) -> bytes:
    try:
        return registry.endpoint.call(registry.address, calldata, block, registry.owner(block))
    except RefusedRequest as error:
        words = registry.interface.revert_words(error)
        raise RefusedRequest("simulation", "no revert", words, f"block {block}") from error


def _plan(
    registry: Registry,
    block: BlockReference,
    function: str,
    calldata: bytes,
    before: RegisteredNode | None,
    after: RegisteredNode,
) -> Plan:
    owner = registry.owner(block)
    return Plan(
        target=registry.address,
        sender=owner,
        function=function,
        arguments=registry.interface.arguments(function, calldata),
        calldata=calldata,
        block=block,
        before=before,
        after=after,
        gas=estimate_gas(registry.endpoint, registry.address, calldata, owner, block),
    )


def _updated_nodes(registry: Registry, receipt: Receipt) -> list[Node]:
    found = []
    for log in receipt.logs:
        event = registry.interface.event("NodeUpdated", log)
        if log.address == registry.address and event is not None:
            found.append(Node(event["nodeId"], *event["node"].values()))
    return found


def _failure(registry: Registry, plan: Plan, receipt: Receipt) -> str:
    """Say why a transaction reverted, by calling it again on the block before."""
    parent = BlockReference(receipt.block.number - 1, receipt.block.parent_hash)
    try:
        registry.endpoint.call(plan.target, plan.calldata, parent, plan.sender)
    except RefusedRequest as error:
        return f"a revert: {registry.interface.revert_words(error)}"
    return "a revert, which the block before does not explain"

"""The registry contract and a few blocks in memory, encoded by eth_abi alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import eth_abi

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import DeployedContract, DeploymentRecord
from chainkit.contracts.registry import Registry
from chainkit.contracts.state import ContractState
from chainkit.signatures import SigningKey, address_of, keccak256
from chainkit.types import BlockReference, Node
from support.endpoints.fake_endpoint import FakeProvider, RpcError

ADDRESS = bytes.fromhex("5fbdb2315678afecb367f032d93f642f64180aa3")
OWNER = SigningKey(bytes(31) + b"\x01")
OWNER_ADDRESS = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf"
HOLDER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
NOBODY = "0x" + 40 * "0"
HEAD = 20
OTHER_CONTRACTS = {"GroupMessages": b"\x1a" * 20, "IdentityUpdates": b"\x1b" * 20}
RECORD = DeploymentRecord(
    31337,
    bytes(32),
    *(DeployedContract(name, address, 1, bytes(32)) for name, address in OTHER_CONTRACTS.items()),
    DeployedContract("NodeRegistry", ADDRESS, 3, bytes(32)),
    DeployedContract("OriginatorSequence", b"\x1c" * 20, 1, bytes(32)),
    deployer=bytes(20),
)
REVERTED = 3
"""JSON-RPC code of a revert."""


def node_key(number: int) -> SigningKey:
    return SigningKey(bytes(30) + b"\x77" + bytes([number]))


def block_hash(number: int) -> bytes:
    return keccak256(b"block %d" % number)


def block(number: int = HEAD) -> BlockReference:
    return BlockReference(number, block_hash(number))


def selector(signature: str) -> str:
    return "0x" + keccak256(signature.encode())[:4].hex()


def hexed(types: Sequence[str], *values: Any) -> str:
    return "0x" + eth_abi.encode(types, values).hex()


def reverted(signature: str, *arguments: Any) -> RpcError:
    """The answer of a contract that reverts with a custom error."""
    types = [kind for kind in signature[signature.index("(") + 1 : -1].split(",") if kind]
    data = selector(signature) + eth_abi.encode(types, arguments).hex()
    return RpcError(REVERTED, "execution reverted", data)


def entry(node: Node) -> tuple[bytes, bytes, bool]:
    # A string is encoded as bytes are, so that addresses which are no UTF-8 can be tried too.
    url = node.http_address.encode("utf-8", "surrogateescape")
    return (node.signing_key, url, node.is_enabled)


def three_nodes() -> list[Node]:
    return [
        Node(100 * number, node_key(number).public_key, f"https://{number}.example", number != 2)
        for number in (1, 2, 3)
    ]


@dataclass
class FakeRegistry:
    """Answers as NodeRegistry would; ``overrides`` replaces the answer of a function."""

    nodes: list[Node] = field(default_factory=three_nodes)
    holders: dict[int, str] = field(default_factory=dict)
    """Holders of the nodes that somebody else than HOLDER holds."""
    owner: str = OWNER_ADDRESS
    pending_owner: str = NOBODY
    is_open: bool = False
    """Whether operators may change their nodes' addresses."""
    overrides: dict[str, Any] = field(default_factory=dict)
    pinned: list[Any] = field(default_factory=list)
    """Which block each call was pinned to."""

    def registry(self, **answers: Any) -> Registry:
        return Registry(self.endpoint(**answers), ADDRESS)

    def endpoint(self, **answers: Any) -> Endpoint:
        return FakeProvider(self.answers() | answers).endpoint()

    def answers(self) -> dict[str, Any]:
        return {
            "eth_getBlockByNumber": self.header,
            "eth_call": self.call,
            "eth_estimateGas": hex(60_000),
            "eth_getCode": "0x",
        }

    def header(self, number: str, _full: bool) -> dict[str, str] | None:
        height = HEAD if number == "latest" else int(number, 16)
        if height > HEAD:
            return None
        return {
            "number": hex(height),
            "hash": "0x" + block_hash(height).hex(),
            "parentHash": "0x" + block_hash(height - 1).hex(),
            "timestamp": hex(1_700_000_000 + height),
        }

    def call(self, call: dict[str, str], pinned: Any) -> Any:
        self.pinned.append(pinned)
        functions = {
            "owner()": self._owner,
            "nodeCount()": self._count,
            "nodesPage(uint256,uint256)": self._page,
            "getNode(uint256)": self._node,
            "ownerOf(uint256)": self._holder,
            "nodeByKeyAddress(address)": self._node_of_key,
            "pendingOwner()": lambda _: hexed(["address"], self.pending_owner),
            "httpAddressUpdatesOpen()": lambda _: hexed(["bool"], self.is_open),
            "addNode(address,bytes,string)": self._added,
            "updateHealth(uint256,bool)": lambda _: "0x",
            "transferFrom(address,address,uint256)": lambda _: "0x",
            "setHttpAddressUpdatesOpen(bool)": lambda _: "0x",
            "updateHttpAddress(uint256,string)": lambda _: "0x",
            "transferOwnership(address)": lambda _: "0x",
            "acceptOwnership()": lambda _: "0x",
        }
        for signature, answer in functions.items():
            if call["data"].startswith(selector(signature)):
                name = signature[: signature.index("(")]
                return self.overrides.get(name, answer(bytes.fromhex(call["data"][10:])))
        raise AssertionError(f"no such function: {call['data'][:10]}")

    def state(self, **answers: Any) -> ContractState:
        return ContractState(self.endpoint(**answers), block())

    def set_status(self, node_id: int, is_enabled: bool) -> None:
        self.nodes = [
            replace(node, is_enabled=is_enabled) if node.node_id == node_id else node
            for node in self.nodes
        ]

    def _owner(self, _: bytes) -> str:
        return hexed(["address"], self.owner)

    def _count(self, _: bytes) -> str:
        return hexed(["uint256"], len(self.nodes))

    def _page(self, data: bytes) -> str:
        offset, limit = eth_abi.decode(["uint256", "uint256"], data)
        page = [(node.node_id, entry(node)) for node in self.nodes[offset : offset + limit]]
        return hexed(["(uint32,(bytes,bytes,bool))[]"], page)

    def _node(self, data: bytes) -> Any:
        (node_id,) = eth_abi.decode(["uint256"], data)
        for node in self.nodes:
            if node.node_id == node_id:
                return hexed(["(bytes,bytes,bool)"], entry(node))
        return reverted("ERC721NonexistentToken(uint256)", node_id)

    def _holder(self, data: bytes) -> Any:
        (node_id,) = eth_abi.decode(["uint256"], data)
        if node_id not in [node.node_id for node in self.nodes]:
            return reverted("ERC721NonexistentToken(uint256)", node_id)
        return hexed(["address"], self.holders.get(node_id, HOLDER))

    def _node_of_key(self, data: bytes) -> Any:
        (address,) = eth_abi.decode(["address"], data)
        for node in self.nodes:
            if address_of(node.signing_key).lower() == address:
                return hexed(["(uint32,(bytes,bytes,bool))"], (node.node_id, entry(node)))
        return reverted("UnknownSigningKey(address)", address)

    def _added(self, _: bytes) -> str:
        return hexed(["uint32"], 100 * (len(self.nodes) + 1))

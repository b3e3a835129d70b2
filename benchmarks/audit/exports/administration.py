"""The contracts' events before the first payload: their deployment, and the nodes' entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from eth_abi.abi import encode

from benchmarks.audit.exports.shape import FIRST_BLOCK, REGISTRY_BLOCK, Shape, hash_of, key_of
from chainkit.signatures import keccak256

CONTRACTS: Final[Mapping[str, bytes]] = {
    "NodeRegistry": b"\x33" * 20,
    "GroupMessages": b"\x11" * 20,
    "IdentityUpdates": b"\x22" * 20,
}
SENDER: Final = b"\x44" * 20

_NOBODY, _COUNCIL, _DEPLOYER, _HOLDER, _CODE = ("0x" + digit * 40 for digit in "0abcd")
_BOUNDS: Final = (1, 262_144)

_EVENTS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "OwnershipTransferred": (("address", "address"), ()),
    "Transfer": (("address", "address", "uint256"), ()),
    "NodeAdded": (("address", "uint256", "address"), ()),
    "NodeUpdated": ((), ("uint256", "(bytes,string,bool)")),
    "RoleGranted": (("bytes32", "address", "address"), ()),
    "PayloadBoundsSet": ((), ("address", "uint32", "uint32")),
    "Upgraded": (("address",), ()),
    "Initialized": ((), ("uint64",)),
}
"""Event to the types of its indexed arguments, which come first, and of the others."""


def administration_logs(shape: Shape) -> list[dict[str, Any]]:
    """Return the logs, as rows of chainkit.exports.tables.LOGS, that make the nodes known."""
    rows = [
        (FIRST_BLOCK, contract, event, arguments) for contract, event, *arguments in _deployment()
    ]
    for node_id in shape.node_ids:
        rows += [
            (REGISTRY_BLOCK, "NodeRegistry", event, arguments)
            for event, *arguments in _registration(node_id)
        ]
    return [_row(index, *row) for index, row in enumerate(rows)]


def _deployment() -> Iterator[tuple[Any, ...]]:
    yield "NodeRegistry", "OwnershipTransferred", _NOBODY, _COUNCIL
    for contract in ("GroupMessages", "IdentityUpdates"):
        yield contract, "Upgraded", _CODE
        yield contract, "RoleGranted", bytes(32), _COUNCIL, _DEPLOYER
        yield contract, "PayloadBoundsSet", _DEPLOYER, *_BOUNDS
        yield contract, "Initialized", 1


def _registration(node_id: int) -> Iterator[tuple[Any, ...]]:
    entry = (key_of(node_id).public_key, f"https://node{node_id}.example", True)
    yield "Transfer", _NOBODY, _HOLDER, node_id
    yield "NodeAdded", _COUNCIL, node_id, _HOLDER
    yield "NodeUpdated", node_id, entry


def _row(index: int, block: int, contract: str, event: str, arguments: list[Any]) -> dict[str, Any]:
    indexed, others = _EVENTS[event]
    name = keccak256(f"{event}({','.join((*indexed, *others))})".encode())
    topics = [encode((type_,), (value,)) for type_, value in zip(indexed, arguments, strict=False)]
    return {
        "block_number": block,
        "block_hash": hash_of(block),
        "transaction_hash": keccak256(f"administration {block}".encode()),
        "transaction_index": 0,
        "log_index": index,
        "address": CONTRACTS[contract],
        "topics": [name, *topics],
        "data": encode(others, arguments[len(indexed) :]),
    }

"""A node registry on a local chain, followed into a database of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eth_abi import encode
from sqlalchemy import select

from chainkit.chain import Endpoint, RetryPolicy
from chainkit.contracts.followed import FollowedDeployment, FollowedRegistry
from chainkit.contracts.registry import Registry
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import Node
from chainkit_indexer.registry.follower import (
    WINDOW_BLOCKS,
    RegistryFollower,
    RegistryIdle,
    RegistryStepResult,
)
from chainkit_indexer.registry.history import nodes_at
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from support.chains.chain import REGISTRY_OWNER, LocalChain, dev_address
from support.endpoints.fault_proxy import Answer, Call, Fault
from support.endpoints.faults import error

TABLES = (schema.registry_cursor, schema.registry_blocks, schema.registry_updates)
NEAR, DEEP = WINDOW_BLOCKS, 2
"""Windows so that a short chain is read as one is near the head, or as deep history."""


def key(number: int) -> bytes:
    return SigningKey(bytes(30) + b"\x55" + bytes([number])).public_key


def add_node(chain: LocalChain, number: int) -> int:
    return chain.add_node(dev_address(5), key(number), f"https://{number}.example.org")


def set_status(chain: LocalChain, node_id: int, is_enabled: bool) -> None:
    selector = keccak256(b"updateHealth(uint256,bool)")[:4]
    data = selector + encode(["uint256", "bool"], [node_id, is_enabled])
    chain.send(chain.record.node_registry.address, data, REGISTRY_OWNER)


def followed_registry(chain: LocalChain) -> FollowedRegistry:
    registry = FollowedDeployment.of(chain.record).registry
    assert registry is not None
    return registry


def connect(url: str) -> Endpoint:
    return Endpoint.connect(url, retry=RetryPolicy(attempts=1))


@dataclass
class RegistryNode:
    """A registry followed into a database of its own, by a new object for each step."""

    chain: LocalChain
    store: Store
    window_blocks: int = NEAR

    def step(self, endpoint: Endpoint | None = None) -> RegistryStepResult:
        registry = followed_registry(self.chain)
        follower = RegistryFollower(self.store, registry, self.window_blocks)
        return follower.step(endpoint or self.chain.endpoint)

    def catch_up(self) -> None:
        while not isinstance(self.step(), RegistryIdle):
            pass

    def rows(self, *tables: Any) -> list[list[tuple[Any, ...]]]:
        with self.store.reading() as connection:
            return [
                [
                    tuple(row)
                    for row in connection.execute(select(table).order_by(*table.primary_key))
                ]
                for table in tables
            ]

    def nodes(self, block: int | None = None) -> list[Node]:
        with self.store.reading() as connection:
            return nodes_at(connection, block)

    def listed(self, block: int) -> list[Node]:
        reference = self.chain.endpoint.header(block).reference
        return Registry(self.chain.endpoint, self.chain.record.node_registry.address).nodes(
            reference
        )


def new_store(chain: LocalChain, location: Path | str) -> Store:
    identity = Identity.of(FollowedDeployment.of(chain.record), key(99))
    return Store.open(str(location), identity)


def clean_rows(follower: RegistryNode, folder: Path) -> list[list[tuple[Any, ...]]]:
    store = new_store(follower.chain, folder / "clean.db")
    clean = RegistryNode(follower.chain, store, follower.window_blocks)
    clean.catch_up()
    store.close()
    return clean.rows(*TABLES)


def add_node_at(chain: LocalChain, url: bytes) -> None:
    selector = keccak256(b"addNode(address,bytes,string)")[:4]
    data = selector + encode(["address", "bytes", "bytes"], [dev_address(5), key(1), url])
    chain.send(chain.record.node_registry.address, data, REGISTRY_OWNER)


def narrow_range(blocks: int) -> Fault:
    refuse = error(-32602, f"block range too large: {blocks} blocks at most")

    def change(call: Call, answer: Answer) -> Answer:
        query = call.params[0]
        if "fromBlock" not in query:
            return answer
        asked = int(query["toBlock"], 16) - int(query["fromBlock"], 16) + 1
        return refuse(call, answer) if asked > blocks else answer

    return Fault("narrow", change, methods=frozenset({"eth_getLogs"}))

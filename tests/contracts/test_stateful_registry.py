"""Any sequence of calls, reorgs and reverts leaves NodeRegistry as the model says.

`FUZZ_SEED=… FUZZ_EXAMPLES=…` runs other and more examples than the fixed ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from coincurve import PrivateKey
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from support.chains.chain_machine import ACTORS, Action, ChainMachine, run_machine
from support.chains.mined import ZERO, MinedChain, deploy_compiled, mined_chain
from support.chains.registry_model import (
    FIELD_PRIME,
    ID_STEP,
    MAX_HTTP_ADDRESS_LENGTH,
    Page,
    RegistryModel,
)
from support.solidity import Transaction

# Hypothesis looks for a shorter example for as long as five minutes, the usual limit.
pytestmark = pytest.mark.timeout(0 if "FUZZ_SEED" in os.environ else 600)

EXAMPLES, STEPS = 20, 20

ACCOUNTS = [f"account {number}" for number in range(1, ACTORS + 1)]


def _key(secret: int) -> bytes:
    return PrivateKey(secret.to_bytes(32)).public_key.format(compressed=False)


def _changed(key: bytes, *, prefix: int = 4, x: int | None = None, y: int | None = None) -> bytes:
    old_x, old_y = int.from_bytes(key[1:33]), int.from_bytes(key[33:])
    coordinates = (old_x if x is None else x, old_y if y is None else y)
    return bytes([prefix]) + b"".join(value.to_bytes(32) for value in coordinates)


def _low_point() -> tuple[int, int]:
    """A point of the curve whose X leaves room for the field's prime in 256 bits."""
    x = 1
    y = pow(x**3 + 7, (FIELD_PRIME + 1) // 4, FIELD_PRIME)
    assert (y * y - x**3 - 7) % FIELD_PRIME == 0
    return x, y


LOW_X, LOW_Y = _low_point()
FIRST_Y = int.from_bytes(_key(1)[33:])
VALID_KEYS = [
    *map(_key, range(1, 9)),
    _changed(_key(1), y=FIELD_PRIME - FIRST_Y),  # another point with the same X
    _changed(_key(1), x=LOW_X, y=LOW_Y),
]
INVALID_KEYS = [
    b"",
    _key(1)[1:],
    _key(1) + b"\x00",
    PrivateKey((1).to_bytes(32)).public_key.format(compressed=True),
    _changed(_key(1), prefix=0),
    _changed(_key(1), prefix=2 + FIRST_Y % 2),
    _changed(_key(1), prefix=6 + FIRST_Y % 2),
    _changed(_key(1), y=FIRST_Y + 1),
    _changed(_key(1), x=0, y=0),
    _changed(_key(1), x=LOW_X + FIELD_PRIME, y=LOW_Y),  # a second name for a valid point
    _changed(_key(1), x=FIELD_PRIME, y=FIELD_PRIME),
]


@dataclass(frozen=True)
class Name:
    """An argument that is an address, by its name in the model."""

    name: str


@dataclass(frozen=True)
class NodeAt:
    """An argument that is a node's id: of that node, counted from the end of those there are."""

    back: int


@dataclass(frozen=True)
class HolderOf:
    """An argument that is the address of a node's holder, so that a transfer is right."""

    node: NodeAt


@dataclass(frozen=True)
class Call:
    sender: Name | HolderOf
    signature: str
    arguments: tuple[Any, ...] = ()

    def __call__(self, model: RegistryModel) -> Transaction:
        arguments = tuple(_resolved(model, item) for item in self.arguments)
        sender = _resolved(model, self.sender)
        # A contract, or nobody, cannot send.
        if sender not in [model.names[name] for name in ACCOUNTS]:
            sender = model.names[ACCOUNTS[0]]
        return Transaction(sender, model.registry, self.signature, arguments)


def _resolved(model: RegistryModel, item: Any) -> Any:
    if isinstance(item, Name):
        return model.address(item.name)
    if isinstance(item, NodeAt):
        return ID_STEP * max(0, len(model.nodes) - item.back)
    if isinstance(item, HolderOf):
        node = model.nodes.get(_resolved(model, item.node))
        return node.holder if node else model.owner
    return item


# The owner most of the time, or nearly everything would be refused.
owners = st.sampled_from(["owner"] * 4 + ACCOUNTS).map(Name)
anybody = st.sampled_from([*ACCOUNTS, "owner"]).map(Name)
addresses = st.sampled_from([*ACCOUNTS, *ACCOUNTS, "receiver", "registry", "zero"]).map(Name)
nodes = st.sampled_from([0, 0, 0, 1, 1, 1, 2, 3, -1]).map(NodeAt)
node_ids = nodes | st.sampled_from([0, 1, ID_STEP // 2, 2**256 - 1])
valid_http_addresses = st.text("abc:/.é", min_size=1, max_size=40)
http_addresses = st.one_of(
    valid_http_addresses,
    valid_http_addresses,
    st.sampled_from([0, MAX_HTTP_ADDRESS_LENGTH, MAX_HTTP_ADDRESS_LENGTH + 1]).map("h".__mul__),
)
valid_keys, invalid_keys = st.sampled_from(VALID_KEYS), st.sampled_from(INVALID_KEYS)
positions = st.sampled_from([0, 1, 1, 1, 2, 2, 3, 4, 5, 2**32, 2**256 - 1])
pages = st.lists(st.builds(Page, positions, positions), min_size=4, max_size=4)


def calls(
    senders: st.SearchStrategy[Any], signature: str, *arguments: st.SearchStrategy[Any]
) -> st.SearchStrategy[Call]:
    return st.builds(Call, senders, st.just(signature), st.tuples(*arguments))


def _transfers_of(node: NodeAt) -> st.SearchStrategy[Call]:
    """The holder stands for `from`, or anybody; the node's holder sends too, not the owner only."""
    holder = st.just(HolderOf(node))
    senders = st.one_of(owners, owners, owners, holder)
    sources = st.one_of(holder, holder, holder, addresses)
    plain = (sources, addresses, st.just(node))
    return st.one_of(
        calls(senders, "transferFrom(address,address,uint256)", *plain),
        calls(senders, "safeTransferFrom(address,address,uint256)", *plain),
        calls(
            senders,
            "safeTransferFrom(address,address,uint256,bytes)",
            *plain,
            st.binary(max_size=40),
        ),
    )


def _address_updates_of(node: NodeAt) -> st.SearchStrategy[Call]:
    senders = st.just(HolderOf(node)) | anybody
    return calls(senders, "updateHttpAddress(uint256,string)", st.just(node), http_addresses)


ADD = "addNode(address,bytes,string)"
additions = st.one_of(
    calls(owners, ADD, addresses, valid_keys, valid_http_addresses),
    calls(owners, ADD, addresses, valid_keys, http_addresses),
    calls(owners, ADD, addresses, invalid_keys, valid_http_addresses),
)
health_updates = calls(owners, "updateHealth(uint256,bool)", node_ids, st.booleans())
transfers = nodes.flatmap(_transfers_of)
address_updates = nodes.flatmap(_address_updates_of)
OPEN = "setHttpAddressUpdatesOpen(bool)"
openings = calls(owners, OPEN, st.sampled_from([True, True, False]))
successions = calls(owners, "transferOwnership(address)", addresses) | calls(
    st.sampled_from([Name("pending owner")] * ACTORS + [Name(name) for name in ACCOUNTS]),
    "acceptOwnership()",
)
trespasses = st.one_of(
    calls(anybody, "renounceOwnership()"),
    calls(anybody, "approve(address,uint256)", addresses, node_ids),
    calls(anybody, "setApprovalForAll(address,bool)", addresses, st.booleans()),
)
actions = st.one_of(
    additions, health_updates, transfers, address_updates, openings, successions, trespasses
)


def blocks(of: st.SearchStrategy[Any], largest: int) -> st.SearchStrategy[list[Action]]:
    return st.lists(of, min_size=1, max_size=largest)


class RegistryMachine(ChainMachine):
    @initialize(
        holders=st.lists(st.sampled_from(ACCOUNTS), min_size=1, max_size=4),
        is_open=st.booleans(),
        pages=pages,
    )
    def add_the_first_nodes(self, holders: list[str], is_open: bool, pages: list[Page]) -> None:
        self.model.pages = pages
        parts = zip(map(Name, holders), VALID_KEYS, ("a", "b", "c", "d"), strict=False)
        additions = (Call(Name("owner"), ADD, arguments) for arguments in parts)
        self.mine(*additions, Call(Name("owner"), OPEN, (is_open,)))

    @rule(block=blocks(additions, 3))
    def add(self, block: list[Action]) -> None:
        self.mine(*block)

    @rule(block=blocks(health_updates, 3))
    def enable_or_disable(self, block: list[Action]) -> None:
        self.mine(*block)

    @rule(block=blocks(transfers, 3))
    def transfer(self, block: list[Action]) -> None:
        self.mine(*block)

    @rule(block=blocks(openings | address_updates, 4))
    def update_addresses(self, block: list[Action]) -> None:
        self.mine(*block)

    @rule(block=blocks(successions, 3))
    def move_ownership(self, block: list[Action]) -> None:
        self.mine(*block)

    @rule(block=blocks(actions, 8))
    def mine_anything(self, block: list[Action]) -> None:
        self.mine(*block)

    @rule(pages=pages)
    def turn_the_pages(self, pages: list[Page]) -> None:
        self.model.pages = pages


@pytest.fixture(scope="module")
def chain() -> Iterator[MinedChain]:
    with mined_chain() as chain:
        yield chain


@pytest.fixture(scope="module")
def model(project: Any, test_contracts: Mapping[str, Any], chain: MinedChain) -> RegistryModel:
    """Deploys it; Ape gives the bytecode only, the chain is another one than its own."""
    deploy = partial(deploy_compiled, chain)
    names = {name: chain.accounts[number] for number, name in enumerate(ACCOUNTS, 1)}
    names |= {"zero": ZERO, "receiver": deploy(test_contracts["NodeHolder"])}
    registry = deploy(project.NodeRegistry, "(address)", names["account 1"])
    return RegistryModel(registry, names, [*VALID_KEYS, *INVALID_KEYS])


def test_calls_and_reorgs__in_any_order__leave_the_registry_as_the_model(
    chain: MinedChain, model: RegistryModel
) -> None:
    run_machine(lambda: RegistryMachine(chain, deepcopy(model)), examples=EXAMPLES, steps=STEPS)

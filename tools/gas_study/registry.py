"""Measures the registry's calls while it grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from coincurve import PrivateKey

from tools.gas_study.cases import FLOOR_HARDFORKS
from tools.gas_study.compiling import Bytecodes
from tools.gas_study.measuring_chain import MeasuringChain, call_data, floor_gas
from tools.gas_study.rows import Row

NODE_COUNTS: Final = (1, 10, 100, 1_000)
"""The number of nodes in the registry when its calls are measured."""

PAGE_LENGTH: Final = 10
"""Nodes asked for at once."""

REGISTRY_CASES: Final = (
    "addNode",
    "updateHealth, to false",
    "updateHealth, to true",
    "transferFrom",
    "updateHttpAddress",
    "getNode",
    "nodeBySigningKey",
    f"nodesPage, first {PAGE_LENGTH}",
    f"nodesPage, last {PAGE_LENGTH}",
    f"healthyNodesPage, first {PAGE_LENGTH}",
    f"healthyNodesPage, last {PAGE_LENGTH}",
    "allNodes",
    "healthyNodes",
)
"""The measured calls, in the order of the rows."""

_OWNER: Final = 0
_HOLDER: Final = 1
"""The account that holds every node."""
_NEXT_HOLDER: Final = 2

_NODES_PER_BLOCK: Final = 100
_ADD_NODE_GAS: Final = 1_000_000
_ID_STEP: Final = 100


@dataclass(frozen=True)
class Call:
    """A transaction to measure."""

    data: bytes
    sender: int = _OWNER
    before: bytes | None = None
    """The owner's call before the measured call, unmeasured."""


def registry_rows(chain: MeasuringChain, codes: Bytecodes) -> Iterator[Row]:
    """Grow a registry and measure each call at each of NODE_COUNTS; one row each.

    Views are measured as transactions too: the receipt is what a node counts against the gas of
    an ``eth_call``, which also includes the 21,000 gas of a transaction and the calldata.
    """
    owner = chain.accounts[_OWNER]
    address = chain.create(codes["NodeRegistry"], ("address",), owner)
    chain.gas_of(address, call_data("setHttpAddressUpdatesOpen(bool)", True))
    nodes = 0
    for count in NODE_COUNTS:
        _grow(chain, address, nodes, count)
        nodes = count
        for case, call in registry_calls(chain.accounts, nodes).items():
            yield _row(chain, address, case, nodes, call)


def registry_calls(accounts: Sequence[str], nodes: int) -> dict[str, Call]:
    """Return each call of REGISTRY_CASES on a registry of ``nodes`` nodes."""
    last = nodes * _ID_STEP
    last_page = max(0, nodes - PAGE_LENGTH)
    transfer = "transferFrom(address,address,uint256)"
    update = "updateHttpAddress(uint256,string)"
    page, healthy_page = "nodesPage(uint256,uint256)", "healthyNodesPage(uint256,uint256)"
    disable, enable = (call_data("updateHealth(uint256,bool)", last, to) for to in (False, True))
    calls = (
        Call(_add_node(accounts[_HOLDER], nodes)),
        Call(disable),
        Call(enable, before=disable),
        Call(call_data(transfer, accounts[_HOLDER], accounts[_NEXT_HOLDER], last)),
        Call(call_data(update, last, _http_address(nodes)), sender=_HOLDER),
        Call(call_data("getNode(uint256)", last)),
        Call(call_data("nodeBySigningKey(bytes)", _signing_key(nodes - 1))),
        Call(call_data(page, 0, PAGE_LENGTH)),
        Call(call_data(page, last_page, PAGE_LENGTH)),
        Call(call_data(healthy_page, 0, PAGE_LENGTH)),
        Call(call_data(healthy_page, last_page, PAGE_LENGTH)),
        Call(call_data("allNodes()")),
        Call(call_data("healthyNodes()")),
    )
    return dict(zip(REGISTRY_CASES, calls, strict=True))


def _row(chain: MeasuringChain, address: str, case: str, nodes: int, call: Call) -> Row:
    with chain.undone():
        if call.before is not None:
            chain.gas_of(address, call.before, _OWNER)
        gas = chain.gas_of(address, call.data, call.sender)
    floor = floor_gas(call.data) if chain.hardfork in FLOOR_HARDFORKS else None
    return Row("registry", case, None, nodes, chain.hardfork, gas, None, floor)


def _grow(chain: MeasuringChain, address: str, nodes: int, count: int) -> None:
    """Add nodes until there are ``count``, many to a block."""
    holder = chain.accounts[_HOLDER]
    for start in range(nodes, count, _NODES_PER_BLOCK):
        for index in range(start, min(start + _NODES_PER_BLOCK, count)):
            chain.submit(address, _add_node(holder, index), _OWNER, _ADD_NODE_GAS)
        chain.mine()


def _add_node(holder: str, index: int) -> bytes:
    signature = "addNode(address,bytes,string)"
    return call_data(signature, holder, _signing_key(index), _http_address(index))


def _signing_key(index: int) -> bytes:
    secret = (index + 1).to_bytes(32, "big")
    return PrivateKey(secret).public_key.format(compressed=False)


def _http_address(index: int) -> str:
    """Return an address of 39 bytes: three slots, of which one holds the length."""
    return f"https://node-{index:05d}.operator.example:443"

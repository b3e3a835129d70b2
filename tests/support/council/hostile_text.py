"""Calldata that no tool of this package makes, and that the registry takes all the same."""

from __future__ import annotations

from eth_abi.abi import encode

from chainkit.contracts.interface import shipped_interface
from support.council.fake_registry import HOLDER, node_key


def add_node_without_utf_8() -> bytes:
    """Return a call of addNode whose URL holds a byte that is no UTF-8."""
    values = [HOLDER, node_key(5).public_key, b"https://node.example/\xff"]
    selector = shipped_interface("NodeRegistry").selector("addNode")
    # To Solidity, a string is bytes like any.
    return selector + encode(["address", "bytes", "bytes"], values)

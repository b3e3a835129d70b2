"""An endpoint's answers about a chain of blocks 0 to 9, and each way to damage an answer."""

from __future__ import annotations

from typing import Any

import pytest

from chainkit.text.hexadecimal import hex0x
from support.endpoints.fake_endpoint import FakeProvider


def block(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "number": hex(number),
        "hash": hex0x(bytes([number]) * 32),
        "parentHash": hex0x(bytes([max(number - 1, 0)]) * 32),
        "timestamp": "0x6774866c",
    } | changes


def damaged(example: dict[str, Any], *optional: str) -> list[Any]:
    """The object with each field missing or of another type."""
    without = [
        pytest.param({k: v for k, v in example.items() if k != name}, id=f"no {name}")
        for name in example
        if name not in optional
    ]
    return without + [
        pytest.param(example | {name: value}, id=f"{name} {value!r}")
        for name in example
        if name not in optional
        for value in (None, 7, "", "0xzz", {}, True)
        # An empty mapping iterates like an empty list of topics.
        if (name, value) not in (("topics", {}), ("topics", ""))
    ]


def chain(**answers: Any) -> FakeProvider:
    """A chain of blocks 0 to 9."""

    def block_by_number(tag: str, full: bool) -> dict[str, Any] | None:
        number = 9 if tag == "latest" else int(tag, 16)
        return block(number) if number <= 9 else None

    return FakeProvider(
        {
            "eth_chainId": "0x7a69",
            "eth_getBlockByNumber": block_by_number,
            "eth_getCode": "0x6001",
        }
        | answers
    )

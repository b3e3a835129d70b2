"""Calls, events and errors by their Solidity signatures, to the byte and without any ABI file.

The models write the signatures out, so an argument that changed its type or its place is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from eth_abi import encode
from eth_abi.grammar import TupleType, parse
from eth_utils import keccak


@dataclass(frozen=True)
class Transaction:
    """One call that an account sends; addresses are lower case."""

    sender: str
    to: str
    signature: str
    arguments: tuple[Any, ...] = ()

    @property
    def function(self) -> str:
        return self.signature.partition("(")[0]

    @property
    def data(self) -> bytes:
        return encode_call(self.signature, *self.arguments)


@dataclass(frozen=True)
class RawLog:
    """The parts of a log that a contract decides."""

    address: str
    topics: tuple[bytes, ...]
    data: bytes


@dataclass(frozen=True)
class Event:
    """An event that a model expects; its first ``indexed`` arguments are topics."""

    address: str
    signature: str
    arguments: tuple[Any, ...]
    indexed: int = 0

    def raw(self) -> RawLog:
        kinds = types_of(self.signature)
        topics = (
            encode([kind], [value])
            for kind, value in zip(kinds[: self.indexed], self.arguments, strict=False)
        )
        data = encode(kinds[self.indexed :], self.arguments[self.indexed :])
        return RawLog(self.address, (keccak(text=self.signature), *topics), data)


class Refused(Exception):
    """A model says that a call reverts with this custom error."""

    def __init__(self, signature: str, *arguments: Any) -> None:
        super().__init__(signature, *arguments)
        self.data = encode_call(signature, *arguments)


@dataclass(frozen=True)
class Question:
    """A call that changes nothing, and the answer that a model gives."""

    to: str
    signature: str
    arguments: tuple[Any, ...]
    returns: str
    answer: tuple[Any, ...] | Refused

    @property
    def request(self) -> tuple[str, list[Any]]:
        data = encode_call(self.signature, *self.arguments)
        return "eth_call", [{"to": self.to, "data": "0x" + data.hex()}, "latest"]

    @property
    def expected(self) -> bytes:
        if isinstance(self.answer, Refused):
            return self.answer.data
        return encode(types_of(self.returns), self.answer)


@dataclass(frozen=True)
class StorageQuestion:
    """A slot, and the word that a model says it holds."""

    address: str
    slot: int
    expected: bytes

    @property
    def request(self) -> tuple[str, list[Any]]:
        return "eth_getStorageAt", [self.address, hex(self.slot), "latest"]


@cache
def types_of(signature: str) -> tuple[str, ...]:
    """Return the types between the outer brackets: of a call, an event or a list of results."""
    if signature.endswith("()"):
        return ()
    found = parse(signature[signature.index("(") :])
    assert isinstance(found, TupleType)
    return tuple(component.to_type_str() for component in found.components)


@lru_cache(maxsize=4096)
def encode_call(signature: str, *arguments: Any) -> bytes:
    return keccak(text=signature)[:4] + encode(types_of(signature), arguments)

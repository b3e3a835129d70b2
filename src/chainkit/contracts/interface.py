"""Our contracts by the shipped ABIs: calls, results, events and errors.

The ABI always comes from the package, never from an endpoint, a file or a proposal: the choice of
the ABI decides the shown meaning of the calldata.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from eth_abi.codec import ABICodec
from eth_abi.decoding import StringDecoder
from eth_abi.exceptions import DecodingError
from eth_abi.registry import BaseEquals
from eth_abi.registry import registry as default_registry
from eth_utils.abi import collapse_if_tuple
from eth_utils.address import to_checksum_address

from chainkit.documents.package_data import read_package_json
from chainkit.errors import InconsistentAnswer, MalformedData, MalformedLog, RefusedRequest
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import parse_bytes
from chainkit.text.printable import printable
from chainkit.types import BlockReference, Log

if TYPE_CHECKING:
    from chainkit.chain import Endpoint

SELECTOR_LENGTH: Final = 4
"""Bytes that name a function in calldata, or an error in revert data."""

_SOLIDITY_ERRORS: Final[tuple[dict[str, Any], ...]] = (
    {"type": "error", "name": "Error", "inputs": [{"name": "message", "type": "string"}]},
    {"type": "error", "name": "Panic", "inputs": [{"name": "code", "type": "uint256"}]},
)
"""Errors that every contract may revert with: `require` with a text, and a failed assertion."""


class _TolerantStringDecoder(StringDecoder):
    """Keeps bytes that are no UTF-8 as surrogates: a stranger's string must not hide a list."""

    def __init__(self) -> None:
        super().__init__("surrogateescape")  # type: ignore[no-untyped-call]


def _codec() -> ABICodec:
    registry = default_registry.copy()  # type: ignore[no-untyped-call]
    registry.unregister_decoder("string")
    registry.register_decoder(BaseEquals("string"), _TolerantStringDecoder, label="string")  # type: ignore[no-untyped-call]
    return ABICodec(registry)


_CODEC: Final = _codec()


class ContractInterface:
    """The shipped ABI of one contract, by the names of its functions, events and errors."""

    def __init__(self, name: str) -> None:
        """Read the ABI of a contract. The last one of several overloaded functions counts."""
        self.name = name
        entries = read_package_json("chainkit.contracts.abi", f"{name}.json")
        self._functions = {item["name"]: item for item in entries if item["type"] == "function"}
        self._events = {item["name"]: item for item in entries if item["type"] == "event"}
        self._events_by_topic = {_hash(item): item for item in self._events.values()}
        errors = [item for item in entries if item["type"] == "error"]
        self._errors = {
            _hash(item)[:SELECTOR_LENGTH]: item for item in [*errors, *_SOLIDITY_ERRORS]
        }

    def selector(self, function: str) -> bytes:
        """Return the first four bytes of every call of a function."""
        return _hash(self._functions[function])[:SELECTOR_LENGTH]

    def inputs(self, function: str) -> dict[str, str]:
        """Return the types of a function's arguments by name, in its order."""
        entry = self._functions[function]
        names = (item["name"] for item in entry["inputs"])
        return dict(zip(names, _types(entry["inputs"]), strict=True))

    def encode(self, function: str, *arguments: Any) -> bytes:
        """Return the calldata of a call. Raises MalformedData for text that is no UTF-8."""
        types = _types(self._functions[function]["inputs"])
        try:
            return self.selector(function) + _CODEC.encode(types, arguments)
        except UnicodeEncodeError as error:
            # The tolerant decoder keeps such bytes as surrogates, which cannot be encoded.
            subject = f"arguments of {function}"
            raise MalformedData(subject, "text in UTF-8", "text that is no UTF-8") from error

    def arguments(self, function: str, calldata: bytes) -> dict[str, Any]:
        """Return the arguments by name that calldata of a function holds.

        Raises MalformedData where the calldata calls another function or does not decode.
        """
        entry = self._functions[function]
        selector = _hash(entry)[:SELECTOR_LENGTH]
        if calldata[:SELECTOR_LENGTH] != selector:
            got = f"selector 0x{calldata[:SELECTOR_LENGTH].hex()}"
            raise MalformedData(f"calldata of {self.name}", f"{function} 0x{selector.hex()}", got)
        try:
            return _named(entry["inputs"], calldata[SELECTOR_LENGTH:])
        except (DecodingError, OverflowError) as error:
            expected = f"({','.join(_types(entry['inputs']))})"
            raise MalformedData(f"calldata of {function}", expected, error) from error

    def result(self, function: str, data: bytes) -> tuple[Any, ...]:
        """Return a function's answer. Raises InconsistentAnswer if the bytes do not decode."""
        types = _types(self._functions[function]["outputs"])
        try:
            return _CODEC.decode(types, data)
        except (DecodingError, OverflowError) as error:
            subject = f"{function} of {self.name}"
            raise InconsistentAnswer(subject, f"({','.join(types)})", error) from error

    def event(self, name: str, log: Log) -> dict[str, Any] | None:
        """Return an unindexed event's arguments by name, None if the log is another event.

        Raises MalformedLog where the data cannot be that event's.
        """
        entry = self._events[name]
        if log.topics != (_hash(entry),):
            return None
        try:
            return _named(entry["inputs"], log.data)
        except (DecodingError, OverflowError) as error:
            expected = f"({','.join(_types(entry['inputs']))})"
            raise MalformedLog("log data", expected, error, log.place) from error

    def decode_event(self, log: Log) -> tuple[str, dict[str, Any]] | None:
        """Return a log's event and its arguments by name, None if the contract has no such event.

        Raises MalformedLog where topics or data cannot be the event's.
        """
        entry = self._events_by_topic.get(log.topics[0]) if log.topics else None
        if entry is None:
            return None
        indexed = [item for item in entry["inputs"] if item["indexed"]]
        others = [item for item in entry["inputs"] if not item["indexed"]]
        expected = f"{entry['name']}({','.join(_types(entry['inputs']))})"
        if len(log.topics) != 1 + len(indexed):
            count = f"{1 + len(indexed)} topics of {expected}"
            raise MalformedLog("log", count, len(log.topics), log.place)
        try:
            # No event of ours has an indexed argument of which the topic holds only the hash.
            found = _named(indexed, b"".join(log.topics[1:])) | _named(others, log.data)
        except (DecodingError, OverflowError) as error:
            raise MalformedLog("log", expected, error, log.place) from error
        return entry["name"], {item["name"]: found[item["name"]] for item in entry["inputs"]}

    def revert_name(self, error: RefusedRequest) -> str | None:
        """Return the name of the error that a contract reverted with, None if it has no name."""
        entry = self._errors.get(_revert_data(error)[:SELECTOR_LENGTH])
        return entry["name"] if entry else None

    def revert_words(self, error: RefusedRequest) -> str:
        """Describe a refusal by the contract's own error: its name and arguments."""
        data = _revert_data(error)
        entry = self._errors.get(data[:SELECTOR_LENGTH])
        if entry is None:
            return f"revert data 0x{data.hex()}" if data else printable(str(error.got))
        try:
            return render_call(entry["name"], _named(entry["inputs"], data[SELECTOR_LENGTH:]))
        except (DecodingError, OverflowError):
            return f"revert data 0x{data.hex()}"

    def call(
        self,
        endpoint: Endpoint,
        address: bytes,
        block: BlockReference,
        function: str,
        *arguments: Any,
    ) -> tuple[Any, ...]:
        """Return what a function answers at a block; errors as in Endpoint.call."""
        return self.result(
            function, endpoint.call(address, self.encode(function, *arguments), block)
        )


@cache
def shipped_interface(name: str) -> ContractInterface:
    """Return a contract's interface, read once."""
    return ContractInterface(name)


def render(value: Any) -> str:
    """Write a decoded argument on one line: hex for bytes, true or false, text in quotes."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {render(item)}" for name, item in value.items()) + "}"
    if isinstance(value, str) and not _is_address(value):
        return f'"{printable(value)}"'
    return str(value)


def render_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Write a call or an error as ``name(argument=value, …)``."""
    return f"{name}({', '.join(f'{key}={render(value)}' for key, value in arguments.items())})"


def _is_address(value: str) -> bool:
    # Only what _value made of an `address`: a string of that very form reads the same unquoted.
    return len(value) == 42 and value.startswith("0x") and value.isascii() and value.isalnum()


def _revert_data(error: RefusedRequest) -> bytes:
    try:
        return parse_bytes(error.data) if isinstance(error.data, str) else b""
    except ValueError:
        return b""


def _types(inputs: list[dict[str, Any]]) -> list[str]:
    return [collapse_if_tuple(item) for item in inputs]


def _hash(entry: dict[str, Any]) -> bytes:
    return keccak256(f"{entry['name']}({','.join(_types(entry['inputs']))})".encode())


def _named(inputs: list[dict[str, Any]], data: bytes) -> dict[str, Any]:
    # Not strict: Solidity accepts padding that is not zero, so a call with such padding works.
    values = _CODEC.decode(_types(inputs), data, strict=False)
    return {item["name"]: _value(item, value) for item, value in zip(inputs, values, strict=True)}


def _value(item: dict[str, Any], value: Any) -> Any:
    if item["type"] == "tuple":
        members = zip(item["components"], value, strict=True)
        return {member["name"]: _value(member, part) for member, part in members}
    return to_checksum_address(value) if item["type"] == "address" else value

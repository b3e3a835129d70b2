"""The accounts that are to hold the contracts of one network, and the bounds, with their sources.

The files are `deployments/parameters/<network>.json`. Each address and each bound names where it
comes from, and each address says whether it must be a contract: on a chain where the named Safe
does not exist, nobody holds its address, and all rights given to the address would be lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from eth_utils.address import is_checksum_address

from chainkit.documents.fields import read_json
from chainkit.errors import ConfigurationError
from chainkit.text.printable import printable

PAYLOAD_SIZE_CAP: Final = 1024 * 1024
"""Bytes: what the contracts' `payloadSizeCap` answers, the highest bound that may be set."""

SEQUENCED_LOGS: Final = ("GroupMessages", "IdentityUpdates")
"""The contracts that publish payloads, each behind a proxy and with bounds of its own."""

_NO_ACCOUNT: Final = "0x" + 40 * "0"
_KINDS: Final = {"account": False, "contract": True}


@dataclass(frozen=True, slots=True)
class PayloadBounds:
    """The sizes that a payload may have, both ends included, in bytes."""

    minimum: int
    maximum: int

    def __str__(self) -> str:
        """Both ends, for a person."""
        return f"{self.minimum} to {self.maximum} bytes"


@dataclass(frozen=True, slots=True)
class Parameters:
    """The accounts and bounds that a deployment is given."""

    chain_id: int
    message_admin: bytes
    """20 bytes: gets DEFAULT_ADMIN_ROLE on GroupMessages and IdentityUpdates."""
    registry_owner: bytes
    """20 bytes: owns the NodeRegistry."""
    payload_bounds: Mapping[str, PayloadBounds]
    """By contract name, for each of SEQUENCED_LOGS; where none is wanted, there is no name."""
    message_admin_is_contract: bool
    """Whether the address must have code, as a Safe's has."""
    registry_owner_is_contract: bool


def read_parameters(path: Path) -> Parameters:
    """Read a parameter file. Raises ConfigurationError that names the file and every bad field."""
    subject = f"deployment parameters {path}"
    content = read_json(path, subject)
    if not isinstance(content, Mapping):
        raise ConfigurationError(subject, "an object", type(content).__name__)
    fields = _Fields(content)
    admin, owner = fields.account("message_admin"), fields.account("registry_owner")
    parameters = Parameters(
        chain_id=fields.integer("chain_id", 1, 2**64 - 1),
        message_admin=admin[0],
        registry_owner=owner[0],
        payload_bounds={name: fields.bounds(f"payload_bounds.{name}") for name in SEQUENCED_LOGS},
        message_admin_is_contract=admin[1],
        registry_owner_is_contract=owner[1],
    )
    fields.note_unknown()
    if fields.faults:
        expected = "; ".join(f"{path} {wanted}" for path, wanted, _ in fields.faults)
        got = "; ".join(f"{path} {found}" for path, _, found in fields.faults)
        place = ", ".join(path for path, _, _ in fields.faults)
        raise ConfigurationError(subject, expected, got, place)
    return parameters


class _Fields:
    """Typed access by dotted path that notes each fault and continues: one error reports all."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content
        self._known: set[str] = set()
        self.faults: list[tuple[str, str, str]] = []

    def integer(self, path: str, minimum: int, maximum: int) -> int:
        value = self._value(path)
        if isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum:
            return value
        self._fault(path, f"an integer from {minimum} to {maximum}", value)
        return minimum

    def account(self, path: str) -> tuple[bytes, bool]:
        """Return an account's address, and whether it must be a contract."""
        address, kind = self._value(f"{path}.address"), self._value(f"{path}.kind")
        valid = isinstance(address, str) and is_checksum_address(address)
        if not valid or address == _NO_ACCOUNT:
            self._fault(f"{path}.address", "a checksummed address but zero", address)
        if not isinstance(kind, str) or kind not in _KINDS:
            self._fault(f"{path}.kind", " or ".join(_KINDS), kind)
        self._source(path)
        return bytes.fromhex(address[2:]) if valid else b"", _KINDS.get(str(kind), False)

    def bounds(self, path: str) -> PayloadBounds:
        minimum = self.integer(f"{path}.minimum", 0, PAYLOAD_SIZE_CAP)
        # The contract refuses a maximum of 0: nothing but empty payloads could be published.
        maximum = self.integer(f"{path}.maximum", 1, PAYLOAD_SIZE_CAP)
        if minimum > maximum and not self._is_faulty(f"{path}.m"):
            self._fault(f"{path}.minimum", f"at most the maximum, {maximum}", minimum)
        self._source(path)
        return PayloadBounds(minimum, maximum)

    def note_unknown(self) -> None:
        """Note each field that nothing asked for: else a misspelled field would be ignored.

        A field within a value that is at fault itself is not noted, too.
        """
        parents = {
            path[:end] for path in self._known for end, each in enumerate(path) if each == "."
        }
        self._note_unknown(self._content, "", parents)

    def _note_unknown(self, content: Mapping[str, Any], prefix: str, parents: set[str]) -> None:
        for name, value in content.items():
            path = f"{prefix}{name}"
            if path in parents:
                if isinstance(value, Mapping):
                    self._note_unknown(value, f"{path}.", parents)
            elif path not in self._known:
                self.faults.append((printable(path), "no such field", "one"))

    def _source(self, path: str) -> None:
        value = self._value(f"{path}.source")
        if not isinstance(value, str) or not value.strip():
            self._fault(f"{path}.source", "where the value comes from", value)

    def _value(self, path: str) -> Any:
        self._known.add(path)
        value: Any = self._content
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def _is_faulty(self, prefix: str) -> bool:
        return any(path.startswith(prefix) for path, _, _ in self.faults)

    def _fault(self, path: str, expected: str, got: Any) -> None:
        self.faults.append((path, expected, "nothing" if got is None else repr(got)))

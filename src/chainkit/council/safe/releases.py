"""The Safe's contracts, known by their code: no contract's own statement is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from chainkit.documents.package_data import read_package_json
from chainkit.signatures import keccak256

SINGLETONS: Final = ("Safe", "SafeL2")
"""The code that a Safe's proxy runs; SafeL2 emits more events, for chains without tracing."""

PROXY: Final = "SafeProxy"
MULTI_SEND: Final = "MultiSendCallOnly"
HANDLERS: Final = (
    "CompatibilityFallbackHandler",
    "ExtensibleFallbackHandler",
    "TokenCallbackHandler",
)
"""Fallback handlers: code that answers for a Safe what the Safe itself does not know."""


@dataclass(frozen=True, slots=True)
class KnownContract:
    """A contract of a release of the Safe."""

    name: str
    version: str
    """The version, such as 1.4.1."""
    code_hash: bytes
    """keccak256 of its runtime code, which has no immutables."""
    address: bytes | None
    """20 bytes: the contract's address on every chain that has it; None for a proxy."""

    def __str__(self) -> str:
        """Name and version, for a person."""
        return f"{self.name} {self.version}"


@cache
def known_contracts() -> Mapping[tuple[str, str], KnownContract]:
    """Return all known contracts by name and version, the oldest first."""
    content = read_package_json("chainkit.council.safe", "releases.json")
    return {
        (name, version): KnownContract(
            name=name,
            version=version,
            code_hash=bytes.fromhex(known["code_hash"][2:]),
            address=bytes.fromhex(known["address"][2:]) if "address" in known else None,
        )
        for version, contracts in content.items()
        for name, known in contracts.items()
    }


def known_versions() -> tuple[str, ...]:
    """Return the releases that are known, the oldest first."""
    return tuple(dict.fromkeys(version for _, version in known_contracts()))


def identify(code: bytes) -> KnownContract | None:
    """Return the known contract with this runtime code, None if there is none."""
    code_hash = keccak256(code)
    return next((one for one in known_contracts().values() if one.code_hash == code_hash), None)

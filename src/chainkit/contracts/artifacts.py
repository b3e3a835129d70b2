"""The contracts' code as it stands on a chain if this package was deployed.

`tools/write_abis.py` writes the data. Solidity leaves an immutable as zeros in the compiled code
and the constructor fills it in, so the code on a chain is known once the immutables are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from eth_utils.abi import collapse_if_tuple

from chainkit import __version__
from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.contracts.storage_layout import Layout, Storage, parse_layout, parse_storage
from chainkit.documents.package_data import read_package_json
from chainkit.signatures import keccak256

CONTRACTS: Final = (*SEQUENCED_LOGS, "NodeRegistry", "OriginatorSequence", "SequencedLogProxy")
"""All contracts that are deployed."""

RELEASES_FILE: Final = "releases.json"

_WORD: Final = 32
"""Bytes that an immutable fills, whatever its type."""

Positions = Mapping[str, tuple[int, ...]]
"""The byte offsets of each immutable in the runtime code, by its variable's name."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One contract as it was compiled for this package."""

    name: str
    creation_code: bytes
    """The code that a deployment sends, before the ABI-encoded arguments of the constructor."""
    masked_code: bytes
    """The runtime code with zeros for the immutables."""
    immutables: Positions
    storage: Storage
    """Empty for a contract without storage, and for those that cannot be upgraded."""
    layouts: Mapping[str, Layout]
    """By namespace as in ``storage``, of every contract, with what is within each type."""


@dataclass(frozen=True, slots=True)
class Release:
    """One version of an upgradeable contract, with the data that an upgrade from it needs."""

    version: str
    code_size: int
    """Bytes of the runtime code."""
    masked_code_hash: bytes
    """keccak256 of the runtime code with zeros for the immutables, 32 bytes."""
    immutables: Positions
    interface: tuple[str, ...]
    """Functions, events and errors in Solidity's words, sorted."""
    storage: Storage


@cache
def artifact(name: str) -> Artifact:
    """Return the shipped artifact of one of CONTRACTS, read once."""
    content = _read(f"{name}.json")
    return Artifact(
        name=name,
        creation_code=bytes.fromhex(content["creation_code"][2:]),
        masked_code=bytes.fromhex(content["runtime_code"][2:]),
        immutables=_parse_positions(content["immutables"]),
        storage=parse_storage(content.get("storage", {})),
        layouts={space: parse_layout(layout) for space, layout in content["layouts"].items()},
    )


def creation_code(name: str) -> bytes:
    """Return what a deployment sends, before the ABI-encoded arguments of the constructor."""
    return artifact(name).creation_code


def runtime_code(name: str, immutables: Mapping[str, bytes]) -> bytes:
    """Return the code that must stand on a chain, given each immutable by its variable's name.

    An address may be given by its 20 bytes. Raises ValueError unless exactly the contract's own
    immutables are named: code with one left out would never be found on a chain.
    """
    found = artifact(name)
    if set(immutables) != set(found.immutables):
        raise ValueError(f"immutables of {name}: {sorted(found.immutables)}, not {immutables}")
    return _filled(found.masked_code, found.immutables, immutables)


def immutables_of(name: str, code: bytes) -> dict[str, bytes]:
    """Return the immutables that code on a chain holds, 32 bytes each, by variable name.

    Empty where the code is not this contract's, whatever its immutables are.
    """
    found = artifact(name)
    if len(code) != len(found.masked_code) or masked(code, found.immutables) != found.masked_code:
        return {}
    return {
        variable: code[starts[0] : starts[0] + _WORD]
        for variable, starts in found.immutables.items()
    }


def masked(code: bytes, positions: Positions) -> bytes:
    """Return runtime code with zeros for the immutables, as the compiler writes it."""
    return _filled(code, positions, dict.fromkeys(positions, b""))


def releases(name: str) -> tuple[Release, ...]:
    """Return the releases of an upgradeable contract, the newest first: this package leads."""
    return (_own_release(name), *reversed(_past_releases(name)))


def identify_release(name: str, code: bytes) -> Release | None:
    """Return the newest release with this code, whatever its immutables; None if there is none."""
    for release in releases(name):
        if len(code) == release.code_size:
            hash_ = keccak256(masked(code, release.immutables))
            if hash_ == release.masked_code_hash:
                return release
    return None


def interface_lines(abi: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the functions, events and errors of an ABI in Solidity's words, sorted."""
    kinds = ("function", "event", "error")
    return tuple(sorted(_declaration(entry) for entry in abi if entry["type"] in kinds))


def parse_release(content: Mapping[str, Any]) -> Release:
    """Build a release from the JSON that `tools/write_abis.py` wrote."""
    return Release(
        version=content["version"],
        code_size=content["code_size"],
        masked_code_hash=bytes.fromhex(content["masked_code_hash"][2:]),
        immutables=_parse_positions(content["immutables"]),
        interface=tuple(content["interface"]),
        storage=parse_storage(content["storage"]),
    )


@cache
def _own_release(name: str) -> Release:
    own = artifact(name)
    abi = read_package_json("chainkit.contracts.abi", f"{name}.json")
    return Release(
        version=f"{__version__}, this package",
        code_size=len(own.masked_code),
        masked_code_hash=keccak256(own.masked_code),
        immutables=own.immutables,
        interface=interface_lines(abi),
        storage=own.storage,
    )


@cache
def _past_releases(name: str) -> tuple[Release, ...]:
    return tuple(parse_release(content) for content in _read(RELEASES_FILE)[name])


def _read(name: str) -> Any:
    return read_package_json("chainkit.contracts.artifact", name)


def _parse_positions(content: Mapping[str, Sequence[int]]) -> Positions:
    return {name: tuple(starts) for name, starts in content.items()}


def _filled(code: bytes, positions: Positions, values: Mapping[str, bytes]) -> bytes:
    filled = bytearray(code)
    for name, starts in positions.items():
        for start in starts:
            filled[start : start + _WORD] = values[name].rjust(_WORD, b"\0")
    return bytes(filled)


def _declaration(entry: Mapping[str, Any]) -> str:
    inputs = ",".join(
        collapse_if_tuple(dict(item)) + (" indexed" if item.get("indexed") else "")
        for item in entry["inputs"]
    )
    text = f"{entry['type']} {entry['name']}({inputs})"
    outputs = ",".join(collapse_if_tuple(dict(item)) for item in entry.get("outputs", []))
    return f"{text} returns ({outputs})" if outputs else text

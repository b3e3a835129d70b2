"""The functions of the contracts by their selectors, from the shipped ABIs alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from eth_utils.abi import collapse_if_tuple

from chainkit.contracts.interface import SELECTOR_LENGTH
from chainkit.contracts.posting import posting_signature
from chainkit.documents.package_data import read_package_json
from chainkit.protocol.payload_contract import PayloadContract
from chainkit.signatures import keccak256

CREATION: Final = "(creation)"
"""A transaction that created the contract."""

INDIRECT: Final = "(through another contract)"
"""A transaction to a stranger's contract, in which one of ours emitted a log."""

NO_SELECTOR: Final = "(no selector)"
"""A call with fewer than 4 bytes of calldata."""

SEVERAL: Final = "(several)"
"""In place of a contract's name: a transaction to another contract, in which several emitted."""


@cache
def selectors(contract: str) -> dict[bytes, str]:
    """Return the functions of a contract, as ``name(type,…)`` by selector; overloads included.

    Empty for a contract whose ABI this package does not ship.
    """
    try:
        abi = read_package_json("chainkit.contracts.abi", f"{contract}.json")
    except FileNotFoundError:
        return {}
    return {
        keccak256(signature.encode())[:SELECTOR_LENGTH]: signature for signature in _signatures(abi)
    }


def named_functions(
    names: Iterable[str], listed: Iterable[PayloadContract] = ()
) -> Mapping[str, Mapping[bytes, str]]:
    """Return the known functions by contract, as ``selectors`` does.

    ``listed`` are contracts that are not our own: only the function that posts a payload is known.
    """
    others = {contract.name: posting_signature(contract) for contract in listed}
    return {
        name: {keccak256(others[name].encode())[:SELECTOR_LENGTH]: others[name]}
        if name in others
        else selectors(name)
        for name in names
    }


def _signatures(abi: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for entry in abi:
        if entry["type"] == "function":
            types = ",".join(collapse_if_tuple(item) for item in entry["inputs"])
            yield f"{entry['name']}({types})"

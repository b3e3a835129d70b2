"""An upgrade, called on a block without being sent, even while its new code is not deployed."""

from __future__ import annotations

from typing import Any, Final

from eth_utils.address import to_checksum_address

from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.state import ContractState
from chainkit.errors import AccessRefused, ConfigurationError, RefusedRequest
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x
from chainkit.text.printable import printable
from chainkit.types import ADDRESS_LENGTH

STAND_IN: Final = keccak256(b"chainkit implementation that is not deployed yet")[:ADDRESS_LENGTH]
"""Address of the new code in a simulation while it is not deployed: no key has this address."""


def upgrade_calldata(name: str, implementation: bytes | None) -> bytes:
    """Return the calldata of an upgrade: to the stand-in while there is no implementation."""
    address = to_checksum_address(implementation or STAND_IN)
    return shipped_interface(name).encode("upgradeToAndCall", address, b"")


def simulate_upgrade(
    state: ContractState, name: str, proxy: bytes, implementation: bytes, sender: str
) -> None:
    """Call the upgrade to a deployed implementation as an administrator.

    Raises RefusedRequest with the contract's error where the upgrade reverts.
    """
    _simulate(state, name, proxy, upgrade_calldata(name, implementation), sender, {})


def simulate_undeployed_upgrade(
    state: ContractState, name: str, proxy: bytes, code: bytes, sequence: bytes, sender: str
) -> None:
    """Call the upgrade as an administrator with ``code`` put at the stand-in for this one call.

    ``sequence`` is the originator sequence in that code. Raises ConfigurationError where the
    endpoint cannot override code, and RefusedRequest with the contract's error if the upgrade
    reverts.
    """
    overrides = {hex0x(STAND_IN): {"code": hex0x(code)}}
    # Without the code the contract would blame the sequence: nothing answers like a wrong one.
    _require_overrides(state, name, sequence, overrides)
    _simulate(state, name, proxy, upgrade_calldata(name, None), sender, overrides)


def _require_overrides(
    state: ContractState, name: str, sequence: bytes, overrides: dict[str, Any]
) -> None:
    data = shipped_interface(name).encode("originatorSequence")
    call = {"to": hex0x(STAND_IN), "data": hex0x(data)}
    try:
        found = state.endpoint.call_message(call, state.block, overrides)
    except AccessRefused:
        raise
    except RefusedRequest as error:
        raise _no_overrides(state, printable(str(error.got))) from error
    if found != sequence.rjust(32, b"\0"):
        got = f"{len(found)} bytes that are no answer of the code given with the call"
        raise _no_overrides(state, got)


def _no_overrides(state: ContractState, got: str) -> ConfigurationError:
    advice = "deploy with --implementation-only first, then give --implementation"
    subject = f"eth_call at {state.endpoint.name}"
    return ConfigurationError(subject, "support of state overrides", got, advice)


def _simulate(
    state: ContractState,
    name: str,
    proxy: bytes,
    calldata: bytes,
    sender: str,
    overrides: dict[str, Any],
) -> None:
    call = {"from": sender, "to": hex0x(proxy), "data": hex0x(calldata)}
    try:
        state.endpoint.call_message(call, state.block, overrides)
    except AccessRefused:
        raise
    except RefusedRequest as error:
        words = shipped_interface(name).revert_words(error)
        raise RefusedRequest("simulation", "no revert", words, f"block {state.block}") from error

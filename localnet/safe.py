"""A Safe on a private chain: its contracts at their usual addresses, and a Safe with owners.

The code comes from Safe's own npm packages (`make setup`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from eth_abi.abi import encode
from eth_utils.address import to_checksum_address

from chainkit.chain.transactions import fetch_receipt
from chainkit.contracts.interface import shipped_interface
from chainkit.council.safe import KnownContract, known_contracts
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x
from chainkit.types import Receipt
from localnet.accounts import development_account
from localnet.anvil import Anvil
from localnet.deployment import PROJECT

PACKAGES: Final = {"1.4.1": "safe-contracts", "1.5.0": "safe-smart-account"}
"""The npm package of each release, below @safe-global."""

_FOLDERS: Final = {
    "Safe": "",
    "SafeL2": "",
    "SafeProxyFactory": "proxies",
    "MultiSendCallOnly": "libraries",
    "CompatibilityFallbackHandler": "handler",
}
"""The contracts that a Safe needs, and where a package keeps each."""

_SENDER: Final = 9
"""The development account that deploys: none that has a role."""

_GAS: Final = 10_000_000
_POLL_SECONDS: Final = 0.005

SINGLETON_FACTORY: Final = bytes.fromhex("914d7fec6aac8cd542e72bca78b30650d45643d7")
_SINGLETON_FACTORY_CODE: Final = (
    "0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0"
    "3601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3"
)
"""Deploys the calldata after its first 32 bytes by CREATE2, with these 32 bytes as salt."""


def deploy_safe_contracts(anvil: Anvil, version: str) -> None:
    """Deploy the contracts of a release, such as 1.4.1, to their canonical addresses.

    Raises RuntimeError where a contract would get another address.
    """
    anvil.request("anvil_setCode", hex0x(SINGLETON_FACTORY), _SINGLETON_FACTORY_CODE)
    for name in _FOLDERS:
        known = known_contracts()[name, version]
        assert known.address is not None
        _send(anvil, SINGLETON_FACTORY, bytes(32) + _creation_code(known))
        head = anvil.endpoint.head().reference
        if keccak256(anvil.endpoint.code(known.address, head)) != known.code_hash:
            raise RuntimeError(f"{known}: expected at {to_checksum_address(known.address)}")


def create_safe(
    anvil: Anvil,
    version: str,
    owners: Sequence[str],
    threshold: int,
    *,
    singleton: str = "SafeL2",
    salt: int = 0,
) -> bytes:
    """Create a Safe of a deployed release as its own factory does; return its 20-byte address."""
    known = known_contracts()
    addresses = {name: known[name, version].address for name in _FOLDERS}
    nobody, handler = bytes(20), addresses["CompatibilityFallbackHandler"]
    setup = shipped_interface("Safe").encode(
        "setup", owners, threshold, nobody, b"", handler, nobody, 0, nobody
    )
    types = ["address", "bytes", "uint256"]
    calldata = keccak256(b"createProxyWithNonce(address,bytes,uint256)")[:4] + encode(
        types, [addresses[singleton], setup, salt]
    )
    factory = addresses["SafeProxyFactory"]
    assert factory is not None
    created = keccak256(b"ProxyCreation(address,address)")
    logs = _send(anvil, factory, calldata).logs
    (log,) = (log for log in logs if log.topics[0] == created and log.address == factory)
    return log.topics[1][-20:]


def send_unsigned(anvil: Anvil, sender: str, to: bytes, calldata: bytes) -> Receipt:
    """Send from an account that anvil signs for or impersonates; return the mined receipt."""
    call = {"from": sender, "to": hex0x(to), "data": hex0x(calldata), "gas": hex(_GAS)}
    sent = bytes.fromhex(anvil.request("eth_sendTransaction", call)[2:])
    # anvil answers before it mines the transaction.
    while (receipt := fetch_receipt(anvil.endpoint, sent)) is None:
        time.sleep(_POLL_SECONDS)
    return receipt


@cache
def npm_artifact(version: str, folder: str, name: str) -> Any:
    """Return the artifact of a release's contract, None where the release has none such."""
    package = PROJECT / "node_modules" / "@safe-global" / PACKAGES[version]
    path = package / "build" / "artifacts" / "contracts" / folder / f"{name}.sol" / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _creation_code(known: KnownContract) -> bytes:
    content = npm_artifact(known.version, _FOLDERS[known.name], known.name)
    return bytes.fromhex(content["bytecode"][2:])


def _send(anvil: Anvil, to: bytes, calldata: bytes) -> Receipt:
    receipt = send_unsigned(anvil, development_account(_SENDER).address, to, calldata)
    if not receipt.succeeded:
        subject = f"transaction to {hex0x(to)}"
        raise RuntimeError(f"{subject}: expected success, got a revert")
    return receipt

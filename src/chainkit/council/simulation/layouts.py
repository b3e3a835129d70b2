"""Which variable lies in which slot of the contracts that a council's transaction may change."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from chainkit.contracts.artifacts import artifact
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.contracts.state import IMPLEMENTATION_SLOT, erc7201_slot
from chainkit.contracts.storage_layout import Layout, StoredType, StoredVariable
from chainkit.council.safe.account import FALLBACK_HANDLER_SLOT, GUARD_SLOT, MODULE_GUARD_SLOT

SAFE: Final = "Safe"
"""The name of the council's Safe in a difference."""

SAFE_NONCE_SLOT: Final = 5

ADDRESS: Final = StoredType("address", "inplace", 20)
UINT256: Final = StoredType("uint256", "inplace", 32)

_NAMESPACE: Final = "erc7201:"
_PROXY: Final[Layout] = (StoredVariable("implementation", IMPLEMENTATION_SLOT, 0, ADDRESS),)


@dataclass(frozen=True, slots=True)
class KnownAccount:
    """A contract whose storage can be decoded."""

    name: str
    """The name in a difference: of one of our contracts, or SAFE."""
    layout: Layout
    """With slots of the whole storage, not of a namespace."""


Accounts = Mapping[bytes, KnownAccount]
"""By address, 20 bytes; in the order in which a difference lists their changes."""


def known_accounts(record: DeploymentRecord, strange: Collection[bytes] = ()) -> Accounts:
    """Return the contracts of a deployment record.

    ``strange`` are the addresses of proxies that run code of no known release: their variables have
    no known names, except the one that is the proxy's own.
    """
    return {
        contract.address: (
            KnownAccount(f"{contract.name} (code of no known release)", _PROXY)
            if contract.address in strange
            else KnownAccount(contract.name, contract_layout(contract.name))
        )
        for contract in record.contracts
    }


def known_safe(version: str) -> KnownAccount:
    """Return a Safe of a release, one of SAFE_LAYOUTS."""
    return KnownAccount(SAFE, SAFE_LAYOUTS[version])


@cache
def contract_layout(name: str) -> Layout:
    """Return the layout of a contract of ours: for a contract behind a proxy, the proxy's storage.

    Releases only add to the layout, so the newest layout names the variables of earlier ones, too.
    """
    variables = tuple(
        replace(variable, slot=_first_slot(namespace) + variable.slot)
        for namespace, layout in artifact(name).layouts.items()
        for variable in layout
    )
    return (*variables, *_PROXY) if name in SEQUENCED_LOGS else variables


def _first_slot(namespace: str) -> int:
    return erc7201_slot(namespace.removeprefix(_NAMESPACE)) if namespace else 0


def _mapping(key: str, element: StoredType) -> StoredType:
    label = f"mapping({key} => {element.label})"
    return StoredType(label, "mapping", 32, key=key, element=element)


# The variables of Safe's contracts/libraries/SafeStorage.sol, one slot each.
_SAFE_VARIABLES: Final[Mapping[str, StoredType]] = {
    "singleton": ADDRESS,
    "modules": _mapping("address", ADDRESS),
    "owners": _mapping("address", ADDRESS),
    "ownerCount": UINT256,
    "threshold": UINT256,
    "nonce": UINT256,
    "_deprecatedDomainSeparator": StoredType("bytes32", "inplace", 32),
    "signedMessages": _mapping("bytes32", UINT256),
    "approvedHashes": _mapping("address", _mapping("bytes32", UINT256)),
}
_SAFE_1_4_1: Final[Layout] = (
    *(
        StoredVariable(label, slot, 0, type_)
        for slot, (label, type_) in enumerate(_SAFE_VARIABLES.items())
    ),
    StoredVariable("guard", GUARD_SLOT, 0, ADDRESS),
    StoredVariable("fallbackHandler", FALLBACK_HANDLER_SLOT, 0, ADDRESS),
)

SAFE_LAYOUTS: Final[Mapping[str, Layout]] = {
    "1.4.1": _SAFE_1_4_1,
    "1.5.0": (*_SAFE_1_4_1, StoredVariable("moduleGuard", MODULE_GUARD_SLOT, 0, ADDRESS)),
}
"""By release."""

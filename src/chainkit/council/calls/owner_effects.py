"""Effects of a council's calls of its own Safe: its owners, and how many of them must sign."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from eth_utils.address import to_checksum_address

from chainkit.contracts.checks import check_account, check_no_contract_of_ours
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.council.calls import forms
from chainkit.council.calls.call import SAFE, Call
from chainkit.council.calls.effect import Effect, Facts
from chainkit.errors import ConfigurationError

if TYPE_CHECKING:
    from chainkit.contracts.state import ContractState

OWNERS: Final = "Safe owners"
THRESHOLD: Final = "Safe signatures needed"
LIST_END: Final = "0x0000000000000000000000000000000000000001"
"""The address with which the Safe's list of owners begins and ends."""


def preceding(owners: tuple[str, ...], owner: str) -> str:
    """Return the predecessor of an owner in the Safe's list, which the Safe's functions ask for.

    ``owners`` are as the Safe lists them. Raises ConfigurationError for an address that is no
    owner.
    """
    if owner not in owners:
        raise ConfigurationError("owner", f"one of {forms.SEPARATOR.join(owners)}", owner)
    return (LIST_END, *owners)[owners.index(owner)]


class _Owners:
    """The change of owners and threshold by a function, as the Safe alone may ask for."""

    def role(self, call: Call) -> str:
        return "the Safe itself"

    def senders(self, state: ContractState, call: Call) -> tuple[str, ...]:
        return (call.target_address,)

    def facts(self, state: ContractState, call: Call) -> Facts:
        owners = map(to_checksum_address, state.ask(SAFE, call.target, "getOwners"))
        threshold = state.ask(SAFE, call.target, "getThreshold")
        # Sorted: the Safe's own order shows only how the list was built; people look for names.
        return {OWNERS: forms.SEPARATOR.join(sorted(owners)), THRESHOLD: str(threshold)}

    def expected(self, record: DeploymentRecord, call: Call, before: Facts) -> Facts:
        owners = forms.addresses(before, OWNERS)
        arguments = call.arguments
        for removed in (arguments.get(name) for name in self.removed):
            if removed not in owners:
                raise ConfigurationError("owner", f"one of {before[OWNERS]}", removed)
            owners.remove(removed)
        for added in (arguments.get(name) for name in self.added):
            owners.append(_new_owner(record, call, owners, added))
        threshold = arguments.get("_threshold", forms.number(before, THRESHOLD))
        if not 1 <= threshold <= len(owners):
            expected = f"1 to {len(owners)}, as many as there are owners"
            raise ConfigurationError("signatures needed", expected, threshold)
        return {OWNERS: forms.SEPARATOR.join(sorted(owners)), THRESHOLD: str(threshold)}

    removed: tuple[str, ...] = ()
    """Arguments that name an owner who leaves."""
    added: tuple[str, ...] = ()
    """Arguments that name a new owner."""


class _Add(_Owners):
    added = ("owner",)


class _Remove(_Owners):
    removed = ("owner",)


class _Swap(_Owners):
    removed = ("oldOwner",)
    added = ("newOwner",)


def _new_owner(record: DeploymentRecord, call: Call, owners: list[str], address: Any) -> str:
    owner = check_account(address, "new owner")
    check_no_contract_of_ours(record, owner, "new owner")
    if owner in owners:
        raise ConfigurationError("new owner", "one who is none yet", owner)
    if owner in (LIST_END, call.target_address):
        raise ConfigurationError("new owner", "an account with a key", owner)
    return owner


OWNER_EFFECTS: Final[Mapping[str, Effect]] = {
    "addOwnerWithThreshold": _Add(),
    "removeOwner": _Remove(),
    "swapOwner": _Swap(),
    "changeThreshold": _Owners(),
}
"""By the function's name, for each of OWNER_FUNCTIONS."""

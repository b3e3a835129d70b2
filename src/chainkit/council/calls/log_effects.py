"""Effects of a council's calls in GroupMessages and IdentityUpdates.

The contracts refuse the same calls and more; here a call is refused before anybody signs, with the
reason. The contracts cannot know the code of a new implementation: only this package's code is ever
proposed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from eth_utils.address import to_checksum_address

from chainkit.contracts.artifacts import Release, identify_release, releases
from chainkit.contracts.checks import check_account, check_no_contract_of_ours
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.parameters import PAYLOAD_SIZE_CAP, PayloadBounds
from chainkit.contracts.storage_layout import compare_storage
from chainkit.council.calls import forms
from chainkit.council.calls.call import Call
from chainkit.council.calls.effect import Effect, Facts
from chainkit.documents.canonical import short
from chainkit.errors import ConfigurationError

if TYPE_CHECKING:
    from chainkit.contracts.state import ContractState

ADMINISTRATOR_ROLE: Final = bytes(32)
"""The only role that the contracts use."""
ADMINISTRATOR_ROLE_NAME: Final = "DEFAULT_ADMIN_ROLE"
"""The role's name where people read and write calls."""


_RUNNING: Final = (
    r"0x[0-9a-fA-F]{40} \((no known release|release ([0-9]{1,4}\.){2}[0-9]{1,4}(, this package)?)\)"
)


class _ByAdministrator:
    """An act that only administrators may do."""

    def role(self, call: Call) -> str:
        return f"an administrator of {call.contract}"

    def senders(self, state: ContractState, call: Call) -> tuple[str, ...]:
        found = state.administrators(call.contract, call.target)
        if not found:
            # Our code keeps the last one.
            subject = f"administrators of {call.contract}"
            raise ConfigurationError(subject, "at least one", "none", f"block {state.block}")
        return found


class _SetPause(_ByAdministrator):
    """New payloads are stopped, or accepted again."""

    def facts(self, state: ContractState, call: Call) -> Facts:
        paused = state.ask(call.contract, call.target, "paused")
        return {_name(call, "paused"): "yes" if paused else "no"}

    def expected(self, record: DeploymentRecord, call: Call, before: Facts) -> Facts:
        name = _name(call, "paused")
        forms.choice(before, name, "yes", "no")
        return {name: "yes" if call.function == "pause" else "no"}


class _SetRole(_ByAdministrator):
    """An account becomes administrator, or no longer is one."""

    def facts(self, state: ContractState, call: Call) -> Facts:
        found = state.administrators(call.contract, call.target)
        return {_name(call, "administrators"): forms.SEPARATOR.join(sorted(found))}

    def expected(self, record: DeploymentRecord, call: Call, before: Facts) -> Facts:
        name, account = _name(call, "administrators"), call.arguments["account"]
        if call.arguments["role"] != ADMINISTRATOR_ROLE:
            got = f"0x{call.arguments['role'].hex()}"
            raise ConfigurationError("role", "that of the administrators, all zeros", got)
        found = set(forms.addresses(before, name))
        if call.function == "grantRole":
            check_account(account, "new administrator")
            check_no_contract_of_ours(record, account, "new administrator")
            return {name: forms.SEPARATOR.join(sorted(found | {account}))}
        if found == {account}:
            raise ConfigurationError(name, "one that remains", f"only {account}")
        return {name: forms.SEPARATOR.join(sorted(found - {account}))}


class _SetBounds(_ByAdministrator):
    """The sizes that a payload may have."""

    def facts(self, state: ContractState, call: Call) -> Facts:
        bounds = state.payload_bounds(call.contract, call.target)
        return {_name(call, "payload bounds"): str(bounds)}

    def expected(self, record: DeploymentRecord, call: Call, before: Facts) -> Facts:
        bounds = PayloadBounds(call.arguments["minPayloadSize"], call.arguments["maxPayloadSize"])
        if not 0 < bounds.maximum <= PAYLOAD_SIZE_CAP:
            expected = f"1 to {PAYLOAD_SIZE_CAP} bytes"
            raise ConfigurationError("greatest payload", expected, bounds.maximum)
        if bounds.minimum > bounds.maximum:
            expected = f"at most the greatest, {bounds.maximum} bytes"
            raise ConfigurationError("least payload", expected, bounds.minimum)
        name = _name(call, "payload bounds")
        forms.matching(before, name, "[0-9]{1,10} to [0-9]{1,10} bytes", "N to M bytes")
        return {name: str(bounds)}


class _Upgrade(_ByAdministrator):
    """The log runs this package's code, from an address that holds exactly this code.

    The fact names the code that runs now, because that code was read. For the new code it has only
    the address: code that was not read is not called this package's. The facts of a proposal whose
    log was upgraded since do not match any more.
    """

    def facts(self, state: ContractState, call: Call) -> Facts:
        # Imported here: the module brings an HTTP client, and a reader of files opens no chain.
        from chainkit.contracts.implementation import check_implementation

        name, sequence = call.contract, state.ask(call.contract, call.target, "originatorSequence")
        proposed = bytes.fromhex(call.arguments["newImplementation"][2:])
        check_implementation(state, name, proposed, bytes.fromhex(sequence[2:]))
        current = state.implementation(call.target)
        release = identify_release(name, state.code(current))
        _check_storage(name, release)
        words = "" if current == proposed else f" {_release_words(release)}"
        return {
            _name(call, "implementation"): to_checksum_address(current) + words,
            _name(call, "sequence"): to_checksum_address(sequence),
        }

    def expected(self, record: DeploymentRecord, call: Call, before: Facts) -> Facts:
        if call.arguments["data"]:
            got = f"{len(call.arguments['data'])} bytes"
            raise ConfigurationError("call of the new implementation", "none", got)
        sequence = to_checksum_address(record.originator_sequence.address)
        name = _name(call, "sequence")
        if before[name] != sequence:
            raise ConfigurationError(name, f"{sequence}, the record's", short(before[name]))
        implementation = _name(call, "implementation")
        running = forms.matching(before, implementation, _RUNNING, "an address and its release")
        if running.endswith(_release_words(releases(call.contract)[0])):
            expected = "another than this package's code"
            raise ConfigurationError(implementation, expected, running)
        return {implementation: call.arguments["newImplementation"], name: sequence}


LOG_EFFECTS: Final[Mapping[str, Effect]] = {
    "pause": _SetPause(),
    "unpause": _SetPause(),
    "grantRole": _SetRole(),
    "revokeRole": _SetRole(),
    "setPayloadBounds": _SetBounds(),
    "upgradeToAndCall": _Upgrade(),
}
"""By the function's name: all of what a council calls in the two logs."""


def _name(call: Call, what: str) -> str:
    return f"{call.contract} {what}"


def _release_words(release: Release | None) -> str:
    return f"(release {release.version})" if release else "(no known release)"


def _check_storage(name: str, release: Release | None) -> None:
    """Raise ConfigurationError where stored values would change their meaning."""
    if release is None:
        return
    for change in compare_storage(release.storage, releases(name)[0].storage):
        if not change.keeps_meaning:
            subject = f"storage of {name}"
            raise ConfigurationError(subject, "values that keep their meaning", change.words)

"""Effects of a council's calls in the registry of nodes (XIP-49 §3.1.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from eth_utils.address import to_checksum_address

from chainkit.contracts.checks import (
    NO_ACCOUNT,
    check_account,
    check_http_address,
    check_no_contract_of_ours,
    check_public_key,
)
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.interface import shipped_interface
from chainkit.council.calls import forms
from chainkit.council.calls.call import Call
from chainkit.council.calls.effect import NONE, Effect, Facts
from chainkit.errors import ConfigurationError, RefusedRequest
from chainkit.signatures import address_of
from chainkit.text.printable import printable
from chainkit.types import status_name

if TYPE_CHECKING:
    from chainkit.contracts.state import ContractState

ADDRESS_UPDATES: Final = "NodeRegistry operators' address updates"
OWNER: Final = "NodeRegistry owner"
PENDING_OWNER: Final = "NodeRegistry pending owner"
HTTP_ADDRESS: Final = "http address"
"""Ends the name of the fact about a node's address."""

_REGISTRY: Final = "NodeRegistry"


def status_fact(node_id: int) -> str:
    """Return the name of the fact whether a node is enabled."""
    return f"node {node_id} status"


def holder_fact(node_id: int) -> str:
    """Return the name of the fact about the holder of a node's NFT."""
    return f"node {node_id} holder"


_STATUSES: Final = (status_name(True), status_name(False))


class _ByOwner:
    """An act of the registry's owner alone."""

    def role(self, call: Call) -> str:
        return f"the owner of {call.contract}"

    def senders(self, state: ContractState, call: Call) -> tuple[str, ...]:
        return (_owner(state, call),)


class _AddNode(_ByOwner):
    """A new node, known by its key: its id is not known before the registry adds the node."""

    def facts(self, state: ContractState, call: Call) -> Facts:
        key = call.arguments["signingKeyPub"]
        check_public_key(key)
        names = _new_node_names(address_of(key))
        found = _asked(state, call, "UnknownSigningKey", "nodeByKeyAddress", address_of(key))
        if found is None:
            return dict.fromkeys(names, NONE)
        node_id, (_, http_address, is_enabled) = found
        holder = to_checksum_address(_ask(state, call, "ownerOf", node_id))
        return dict(
            zip(names, (status_name(is_enabled), holder, printable(http_address)), strict=True)
        )

    def expected(self, record: DeploymentRecord, call: Call, before: Facts) -> Facts:
        holder = check_account(call.arguments["to"], "holder of the new node")
        check_no_contract_of_ours(record, holder, "holder of the new node")
        check_http_address(call.arguments["httpAddress"])
        names = _new_node_names(address_of(call.arguments["signingKeyPub"]))
        status = forms.choice(before, names[0], NONE, *_STATUSES)
        if status != NONE:
            got = f"the key of a node that is {status}"
            raise ConfigurationError("public key", "one never registered", got)
        for name in names:
            forms.choice(before, name, NONE)
        values = (status_name(True), holder, printable(call.arguments["httpAddress"]))
        return dict(zip(names, values, strict=True))


class _SetStatus(_ByOwner):
    """A node is enabled or disabled."""

    def facts(self, state: ContractState, call: Call) -> Facts:
        node_id = call.arguments["tokenId"]
        _, _, is_enabled = _node(state, call, "getNode", node_id)
        return {status_fact(node_id): status_name(is_enabled)}

    def expected(self, record: DeploymentRecord, call: Call, before: Facts) -> Facts:
        name = status_fact(call.arguments["tokenId"])
        forms.choice(before, name, *_STATUSES)
        return {name: status_name(call.arguments["isHealthy"])}


class _Transfer(_ByOwner):
    """A node gets another holder; the registry's owner makes the call, whoever holds the node."""

    def facts(self, state: ContractState, call: Call) -> Facts:
        node_id = call.arguments["tokenId"]
        return {
            holder_fact(node_id): to_checksum_address(_node(state, call, "ownerOf", node_id)),
        }

    def expected(self, record: DeploymentRecord, call: Call, before: Facts) -> Facts:
        name = holder_fact(call.arguments["tokenId"])
        holder = check_account(call.arguments["to"], f"new {name}")
        check_no_contract_of_ours(record, holder, f"new {name}")
        if call.arguments["from"] != forms.address(before, name):
            expected = f"{before[name]}, as `from`"
            raise ConfigurationError(name, expected, call.arguments["from"])
        return {name: holder}


class _SetUrl:
    """A node gets another HTTP address: by its holder alone, and while the owner allows changes."""

    def role(self, call: Call) -> str:
        return f"the holder of node {call.arguments['tokenId']}"

    def senders(self, state: ContractState, call: Call) -> tuple[str, ...]:
        holder = to_checksum_address(_node(state, call, "ownerOf", call.arguments["tokenId"]))
        if not _ask(state, call, "httpAddressUpdatesOpen"):
            expected = "open, by the registry's owner (`chainkit registry open-updates`)"
            raise ConfigurationError(ADDRESS_UPDATES, expected, _open_or_closed(False))
        return (holder,)

    def facts(self, state: ContractState, call: Call) -> Facts:
        node_id = call.arguments["tokenId"]
        _, http_address, _ = _node(state, call, "getNode", node_id)
        # The contract takes any text: blanks of a stranger's must move nothing on a screen.
        return {_url_fact(node_id): printable(http_address).replace(" ", "\\x20")}

    def expected(self, record: DeploymentRecord, call: Call, before: Facts) -> Facts:
        http_address = call.arguments["httpAddress"]
        check_http_address(http_address)
        name = _url_fact(call.arguments["tokenId"])
        forms.matching(before, name, "[!-~]+", "a URL without blanks")
        return {name: printable(http_address)}


class _OpenUpdates(_ByOwner):
    """Holders may change their nodes' HTTP addresses, or may not any more."""

    def facts(self, state: ContractState, call: Call) -> Facts:
        return {ADDRESS_UPDATES: _open_or_closed(_ask(state, call, "httpAddressUpdatesOpen"))}

    def expected(self, record: DeploymentRecord, call: Call, before: Facts) -> Facts:
        forms.choice(before, ADDRESS_UPDATES, *map(_open_or_closed, (True, False)))
        return {ADDRESS_UPDATES: _open_or_closed(call.arguments["open"])}


class _OfferOwnership(_ByOwner):
    """Ownership is offered; the owner stays until it is accepted. The zero address withdraws it."""

    def facts(self, state: ContractState, call: Call) -> Facts:
        return _ownership(state, call)

    def expected(self, record: DeploymentRecord, call: Call, before: Facts) -> Facts:
        new_owner = call.arguments["newOwner"]
        check_no_contract_of_ours(record, new_owner, "new owner")
        owner = forms.address(before, OWNER)
        forms.address_or_none(before, PENDING_OWNER)
        if new_owner == owner:
            raise ConfigurationError("new owner", "another account", f"the owner {new_owner}")
        return {OWNER: owner, PENDING_OWNER: _account_or_none(new_owner)}


class _AcceptOwnership:
    """The account to which ownership was offered accepts it."""

    def role(self, call: Call) -> str:
        return f"the account that {call.contract} is offered to"

    def senders(self, state: ContractState, call: Call) -> tuple[str, ...]:
        pending = to_checksum_address(_ask(state, call, "pendingOwner"))
        if pending == NO_ACCOUNT:
            raise ConfigurationError(PENDING_OWNER, "an account that ownership is offered to", NONE)
        return (pending,)

    def facts(self, state: ContractState, call: Call) -> Facts:
        return _ownership(state, call)

    def expected(self, record: DeploymentRecord, call: Call, before: Facts) -> Facts:
        forms.address(before, OWNER)
        return {OWNER: forms.address(before, PENDING_OWNER), PENDING_OWNER: NONE}


REGISTRY_EFFECTS: Final[Mapping[str, Effect]] = {
    "addNode": _AddNode(),
    "updateHealth": _SetStatus(),
    "transferFrom": _Transfer(),
    "setHttpAddressUpdatesOpen": _OpenUpdates(),
    "updateHttpAddress": _SetUrl(),
    "transferOwnership": _OfferOwnership(),
    "acceptOwnership": _AcceptOwnership(),
}
"""By the function's name: all of what a council calls in the registry."""


def _new_node_names(key_address: str) -> tuple[str, str, str]:
    subject = f"node of key {key_address}"
    return f"{subject} status", f"{subject} holder", f"{subject} {HTTP_ADDRESS}"


def _url_fact(node_id: int) -> str:
    return f"node {node_id} {HTTP_ADDRESS}"


def _open_or_closed(is_open: bool) -> str:
    return "open" if is_open else "closed"


def _account_or_none(address: str) -> str:
    checksummed = to_checksum_address(address)
    return NONE if checksummed == NO_ACCOUNT else checksummed


def _ownership(state: ContractState, call: Call) -> Facts:
    pending = _account_or_none(_ask(state, call, "pendingOwner"))
    return {OWNER: _owner(state, call), PENDING_OWNER: pending}


def _owner(state: ContractState, call: Call) -> str:
    return to_checksum_address(_ask(state, call, "owner"))


def _node(state: ContractState, call: Call, function: str, node_id: int) -> Any:
    """Ask about a node. Raises ConfigurationError if there is none of the id."""
    found = _asked(state, call, "ERC721NonexistentToken", function, node_id)
    if found is None:
        got = f"none at block {state.block}"
        raise ConfigurationError(f"node {node_id}", "a registered node", got)
    return found


def _asked(state: ContractState, call: Call, unknown: str, function: str, argument: Any) -> Any:
    """Ask the registry; None where the call reverts with the error named ``unknown``."""
    try:
        return _ask(state, call, function, argument)
    except RefusedRequest as error:
        if shipped_interface(_REGISTRY).revert_name(error) == unknown:
            return None
        raise


def _ask(state: ContractState, call: Call, function: str, *arguments: Any) -> Any:
    return state.ask(_REGISTRY, call.target, function, *arguments)

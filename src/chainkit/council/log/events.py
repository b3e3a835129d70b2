"""Events of an audit trail: of the registry, of the two logs and of the council's Safe, in words.

A proxy whose code was replaced, and a Safe that let other code act in its place, can emit any
event. Their events are listed but not believed: a log that does not decode is an event of its own,
and the result of the events is compared with the contracts' answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from eth_utils.address import to_checksum_address

from chainkit.contracts.checks import NO_ACCOUNT
from chainkit.contracts.deployment import DeployedContract, DeploymentRecord
from chainkit.contracts.interface import render_call, shipped_interface
from chainkit.contracts.parameters import PayloadBounds
from chainkit.contracts.registry import RegistryEvent
from chainkit.contracts.state import DEFAULT_ADMIN_ROLE, ContractState
from chainkit.errors import InconsistentAnswer, MalformedLog, RefusedRequest
from chainkit.signatures import keccak256
from chainkit.text.printable import printable
from chainkit.types import BlockReference, Log

SAFE: Final = "Safe"
"""The name of the council's Safe among the contracts."""

UNREADABLE: Final = "(unreadable)"
"""The name of an event whose log does not decode."""

EXECUTIONS: Final = ("ExecutionSuccess", "ExecutionFailure")
MODULE_EXECUTIONS: Final = ("ExecutionFromModuleSuccess", "ExecutionFromModuleFailure")
DETAILS: Final = "SafeMultiSigTransaction"
"""The event by which a SafeL2 announces its execution."""

_LOG_SIGNATURES: Final = (
    "Paused(address)",
    "Unpaused(address)",
    "PayloadBoundsSet(address,uint32,uint32)",
    "RoleGranted(bytes32,address,address)",
    "RoleRevoked(bytes32,address,address)",
    "RoleAdminChanged(bytes32,bytes32,bytes32)",
    "UpgradeAuthorized(address,address)",
    "Upgraded(address)",
    "Initialized(uint64)",
)
_SAFE_SIGNATURES: Final = (
    "ExecutionSuccess(bytes32,uint256)",
    "ExecutionFailure(bytes32,uint256)",
    "ExecutionFromModuleSuccess(address)",
    "ExecutionFromModuleFailure(address)",
    "SafeSetup(address,address[],uint256,address,address)",
    "AddedOwner(address)",
    "RemovedOwner(address)",
    "ChangedThreshold(uint256)",
    "EnabledModule(address)",
    "DisabledModule(address)",
    "ChangedGuard(address)",
    "ChangedModuleGuard(address)",
    "ChangedFallbackHandler(address)",
    "ApproveHash(bytes32,address)",
    "SafeMultiSigTransaction"
    "(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes,bytes)",
)
"""The same in 1.4.1 and 1.5.0, but ChangedModuleGuard, which is of 1.5.0."""

LOG_TOPICS: Final = tuple(keccak256(text.encode()) for text in _LOG_SIGNATURES)
SAFE_TOPICS: Final = tuple(keccak256(text.encode()) for text in _SAFE_SIGNATURES)

_ACTORS: Final = {
    "Paused": "account",
    "Unpaused": "account",
    "PayloadBoundsSet": "account",
    "RoleGranted": "sender",
    "RoleRevoked": "sender",
    "UpgradeAuthorized": "upgrader",
}
_ROLE_EVENTS: Final = ("RoleGranted", "RoleRevoked")
_NO_CHANGE: Final = (*EXECUTIONS, *MODULE_EXECUTIONS, DETAILS, "ApproveHash")
"""Events of the Safe that do not change it."""


@dataclass(frozen=True, slots=True)
class TrailEvent:
    """One event, with its place in the chain."""

    contract: str
    """Name in the deployment record, or SAFE."""
    address: bytes
    """20 bytes."""
    name: str
    arguments: Mapping[str, Any]
    account: str | None
    """Checksummed address of the account that acted; None where the event does not name it."""
    words: str
    """The event, in one line that is safe to print."""
    block: BlockReference
    transaction_hash: bytes
    """32 bytes."""
    log_index: int
    """Position within the block."""
    is_repetition: bool = False
    """Whether another event of the transaction has the same content and more."""

    @property
    def is_safe_change(self) -> bool:
        """Whether the event changes the Safe itself: its owners, modules, guards, handler."""
        return self.contract == SAFE and self.name not in _NO_CHANGE

    @property
    def is_holders_own(self) -> bool:
        """Whether the contract lets only the holder of a node do this."""
        return self.name == "NodeHttpAddressUpdated"


def of_registry(event: RegistryEvent, address: bytes, is_repetition: bool) -> TrailEvent:
    """Return an event of the registry as an event of the trail."""
    subject = "" if event.node_id is None else f"node {event.node_id} "
    return TrailEvent(
        "NodeRegistry",
        address,
        event.name,
        event.arguments,
        event.account,
        f"{subject}{event.words}",
        event.block,
        event.transaction_hash,
        event.log_index,
        is_repetition,
    )


def of_log(contract: str, log: Log) -> TrailEvent:
    """Return a log of a proxy or of the Safe in words, also where the log does not decode."""
    interface = shipped_interface(contract)
    try:
        decoded = interface.decode_event(log)
    except MalformedLog:
        decoded = None
    name, arguments = decoded or (UNREADABLE, {})
    actor = _ACTORS.get(name)
    in_words = _WORDS.get(name)
    topic = f"0x{log.topics[0].hex()}" if log.topics else "none"
    unreadable = f"a log that is none of its code's: topic {topic}, {len(log.data)} bytes"
    return TrailEvent(
        contract=contract,
        address=log.address,
        name=name,
        arguments=arguments,
        account=None if actor is None else str(arguments[actor]),
        words=unreadable if decoded is None else in_words(arguments) if in_words else name,
        block=BlockReference(log.block_number, log.block_hash),
        transaction_hash=log.transaction_hash,
        log_index=log.log_index,
    )


def contradictions(
    state: ContractState, record: DeploymentRecord, events: Sequence[TrailEvent], first: int
) -> Iterator[str]:
    """Yield the differences between the two logs' answers and their events, a line each."""
    for contract in record.sequenced_logs:
        of_contract = [event for event in events if event.address == contract.address]
        stated = _state_after(of_contract)
        if first <= contract.block:
            stated = {"paused": "no"} | stated
        try:
            said = _said(state, contract)
        except (RefusedRequest, InconsistentAnswer) as error:
            yield f"{contract.name} does not say what it is: {printable(str(error))}"
            continue
        administrators = said if first <= contract.block else {}
        for name in dict.fromkeys([*stated, *administrators]):
            expected, got = stated.get(name, "nothing"), said.get(name, "no")
            if expected != got:
                yield (
                    f"{contract.name} {name}: its events lead to {expected}, it says {got}:"
                    " an event is hidden, or its code was replaced"
                )


def _state_after(events: Sequence[TrailEvent]) -> dict[str, str]:
    stated: dict[str, str] = {}
    for event in events:
        arguments = event.arguments
        if event.name in ("Paused", "Unpaused"):
            stated["paused"] = "yes" if event.name == "Paused" else "no"
        elif event.name == "PayloadBoundsSet":
            stated["payload bounds"] = str(
                PayloadBounds(arguments["minimum"], arguments["maximum"])
            )
        elif event.name == "Upgraded":
            stated["implementation"] = str(arguments["implementation"])
        elif event.name in _ROLE_EVENTS and arguments["role"] == DEFAULT_ADMIN_ROLE:
            name = f"administrator {arguments['account']}"
            stated[name] = "yes" if event.name == "RoleGranted" else "no"
    return stated


def _said(state: ContractState, contract: DeployedContract) -> dict[str, str]:
    name, address = contract.name, contract.address
    return {
        "paused": "yes" if state.ask(name, address, "paused") else "no",
        "payload bounds": str(state.payload_bounds(name, address)),
        "implementation": to_checksum_address(state.implementation(address)),
        **{f"administrator {each}": "yes" for each in state.administrators(name, address)},
    }


def _role(arguments: Mapping[str, Any]) -> str:
    role = arguments["role"]
    return "administrator" if role == DEFAULT_ADMIN_ROLE else f"of role 0x{role.hex()}"


def _set_up(arguments: Mapping[str, Any]) -> str:
    owners = ", ".join(to_checksum_address(owner) for owner in arguments["owners"])
    ran = arguments["initializer"]
    code = "" if ran == NO_ACCOUNT else f", and ran code of {ran}, which may have hidden owners"
    return f"created with threshold {arguments['threshold']} and owners {owners}{code}"


_WORDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "Paused": lambda _: "paused",
    "Unpaused": lambda _: "unpaused",
    "PayloadBoundsSet": lambda each: (
        f"payload bounds set to {each['minimum']} to {each['maximum']} bytes"
    ),
    "RoleGranted": lambda each: f"{each['account']} made {_role(each)}",
    "RoleRevoked": lambda each: f"{each['account']} no longer {_role(each)}",
    "RoleAdminChanged": lambda each: render_call("RoleAdminChanged", each),
    "UpgradeAuthorized": lambda each: f"upgrade to {each['newImplementation']} authorized",
    "Upgraded": lambda each: f"runs {each['implementation']} from now on",
    "Initialized": lambda each: f"initialized, version {each['version']}",
    "ExecutionFromModuleSuccess": lambda each: f"module {each['module']} acted for it",
    "ExecutionFromModuleFailure": lambda each: f"module {each['module']} tried to act for it",
    "ApproveHash": lambda each: f"{each['owner']} approved 0x{each['approvedHash'].hex()}",
    "SafeSetup": _set_up,
    "AddedOwner": lambda each: f"{each['owner']} made owner",
    "RemovedOwner": lambda each: f"{each['owner']} no longer owner",
    "ChangedThreshold": lambda each: f"threshold set to {each['threshold']}",
    "EnabledModule": lambda each: f"module {each['module']} enabled: it acts without any owner",
    "DisabledModule": lambda each: f"module {each['module']} disabled",
    "ChangedGuard": lambda each: f"guard set to {each['guard']}",
    "ChangedModuleGuard": lambda each: f"module guard set to {each['moduleGuard']}",
    "ChangedFallbackHandler": lambda each: f"fallback handler set to {each['handler']}",
}

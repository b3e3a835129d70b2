"""Upgrades a log to this package's code: compared and simulated before a transaction is sent.

The new code is always this package's. Deployed code is identified by its bytes, never by its own
statements. Its storage is compared with the new one namespace by namespace: values that the old
code wrote must mean the same to the new code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from eth_abi.abi import encode
from eth_utils.address import to_checksum_address

from chainkit.chain import Endpoint
from chainkit.chain.sending import Sending, TransactionRequest, require_success
from chainkit.chain.transactions import estimate_gas
from chainkit.contracts.artifacts import (
    Release,
    creation_code,
    identify_release,
    releases,
)
from chainkit.contracts.deployment import DeployedContract, DeploymentRecord
from chainkit.contracts.implementation import (
    check_implementation,
    implementation_code,
    initialization_words,
)
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.parameters import PayloadBounds
from chainkit.contracts.state import INITIALIZABLE_SLOT, ContractState
from chainkit.contracts.storage_layout import StorageChange, compare_storage
from chainkit.council.changes import sign_request
from chainkit.council.signing import Signer
from chainkit.council.upgrade.simulation import (
    STAND_IN,
    simulate_undeployed_upgrade,
    simulate_upgrade,
    upgrade_calldata,
)
from chainkit.errors import ConfigurationError, RefusedRequest, TransactionFailed
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import parse_bytes
from chainkit.types import ADDRESS_LENGTH, BlockReference, Receipt


@dataclass(frozen=True, slots=True)
class LogState:
    """State that an upgrade must leave unchanged."""

    originator_sequence: str
    """Checksummed address."""
    topic_kind: int
    payload_bounds: PayloadBounds
    is_paused: bool
    administrators: tuple[str, ...]
    """Checksummed addresses, sorted."""
    initialization: str


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """One upgrade, simulated but not sent."""

    name: str
    proxy: bytes
    """20 bytes."""
    block: BlockReference
    """The block that the plan was read at and simulated on."""
    current: bytes
    """20 bytes: the implementation that the proxy runs at the block."""
    current_code: bytes
    release: Release | None
    """The deployed release; None if the code is no known release's."""
    implementation: bytes | None
    """20 bytes: the proxy's next code; None if it is not deployed yet."""
    code: bytes
    """The new implementation's immutables; at a stand-in address if it is not deployed yet."""
    sender: str
    """Checksummed address: the administrator that the upgrade was simulated from."""
    is_simulated: bool
    """False where the endpoint cannot simulate code that is not deployed yet."""
    administrators: tuple[str, ...]
    """Checksummed addresses: any one of these accounts may send the upgrade."""
    calldata: bytes | None
    """Calldata of the proxy's `upgradeToAndCall`; None while the implementation has no address."""
    gas: int | None
    """Estimated gas units; None while the implementation has no address."""

    @property
    def proposed(self) -> Release:
        """The contract as this package has it."""
        return releases(self.name)[0]

    @property
    def added(self) -> tuple[str, ...]:
        """Functions, events and errors that only the new code has."""
        known = self.release.interface if self.release else self.proposed.interface
        return tuple(sorted(set(self.proposed.interface) - set(known)))

    @property
    def removed(self) -> tuple[str, ...]:
        """Functions, events and errors that only the deployed code has."""
        known = self.release.interface if self.release else ()
        return tuple(sorted(set(known) - set(self.proposed.interface)))

    @property
    def storage_changes(self) -> tuple[StorageChange, ...]:
        """The differences of the storage; none are known for unknown code."""
        return compare_storage(self.release.storage, self.proposed.storage) if self.release else ()

    @property
    def keeps_storage(self) -> bool:
        """Whether nothing is known that would give stored values another meaning."""
        return all(change.keeps_meaning for change in self.storage_changes)

    @property
    def calldata_hash(self) -> bytes | None:
        """keccak256 of the calldata, 32 bytes, for people to compare."""
        return None if self.calldata is None else keccak256(self.calldata)


def plan_upgrade(
    endpoint: Endpoint,
    record: DeploymentRecord,
    name: str,
    block: BlockReference,
    implementation: bytes | None = None,
    must_simulate: bool = True,
) -> UpgradePlan:
    """Plan the upgrade of a log to this package's code and simulate it as an administrator.

    Without ``implementation`` the code is simulated at an unused address, or not at all if the
    endpoint cannot and not ``must_simulate``. Raises ConfigurationError where the upgrade would
    change nothing, the code at ``implementation`` is not this package's, or the upgrade cannot be
    simulated, and RefusedRequest with the contract's error if the simulation reverts.
    """
    state, proxy = ContractState(endpoint, block), _proxy(record, name).address
    current = state.implementation(proxy)
    current_code = state.code(current)
    release = identify_release(name, current_code)
    if release and release.masked_code_hash == releases(name)[0].masked_code_hash:
        got = f"{release.version}: nothing to upgrade at block {block}"
        raise ConfigurationError(f"code of {name}", "another than this package's", got)
    sequence = record.originator_sequence.address
    code = implementation_code(name, implementation or STAND_IN, sequence)
    administrators = _administrators(state, name, proxy)
    sender, calldata, gas, is_simulated = administrators[0], None, None, True
    if implementation is None:
        try:
            simulate_undeployed_upgrade(state, name, proxy, code, sequence, sender)
        except ConfigurationError:
            if must_simulate:
                raise
            is_simulated = False
    else:
        check_implementation(state, name, implementation, sequence)
        simulate_upgrade(state, name, proxy, implementation, sender)
        calldata = upgrade_calldata(name, implementation)
        gas = estimate_gas(endpoint, proxy, calldata, sender, block)
    return UpgradePlan(
        name=name,
        proxy=proxy,
        block=block,
        current=current,
        current_code=current_code,
        release=release,
        implementation=implementation,
        code=code,
        sender=sender,
        is_simulated=is_simulated,
        administrators=administrators,
        calldata=calldata,
        gas=gas,
    )


def check_administrator(plan: UpgradePlan, signer: Signer) -> None:
    """Raise ConfigurationError if a signer is no administrator."""
    if signer.address not in plan.administrators:
        expected = f"an administrator of {plan.name} ({', '.join(plan.administrators)})"
        raise ConfigurationError(signer.label, expected, signer.address)


def deploy_implementation(
    sending: Sending, record: DeploymentRecord, name: str, signer: Signer
) -> DeployedContract:
    """Deploy this package's implementation for a log; any account may, and gets no right by it.

    Raises ConfigurationError where the deployment could cost too much, and TransactionFailed where
    it reverted or is not mined in time, or there is other code at the address.
    """
    endpoint = sending.endpoint
    sequence = to_checksum_address(record.originator_sequence.address)
    data = creation_code(name) + encode(["address"], [sequence])
    gas = estimate_gas(endpoint, None, data, signer.address, endpoint.head().reference)
    request = TransactionRequest(record.chain_id, None, data, gas)
    signed = sign_request(sending, signer, request)
    receipt = sending.send(signed)
    require_success(receipt, f"deployment of {name}", lambda: "a revert")
    subject = f"receipt of 0x{signed.hash.hex()}"
    answer = endpoint.receipt(signed.hash)
    address = endpoint.parsed(subject, _created_address, answer)
    block = receipt.block.reference
    check_implementation(
        ContractState(endpoint, block), name, address, record.originator_sequence.address
    )
    return DeployedContract(name, address, block.number, signed.hash)


def execute_upgrade(
    sending: Sending, record: DeploymentRecord, plan: UpgradePlan, signer: Signer
) -> Receipt:
    """Send a plan's upgrade and prove from the chain that only the code has changed.

    Raises ConfigurationError where the upgrade could cost too much, and TransactionFailed where the
    transaction reverted or is not mined in time, where the proxy runs another implementation
    afterwards, or where state has changed that an upgrade must not change.
    """
    check_administrator(plan, signer)
    assert plan.implementation and plan.calldata and plan.gas, "an implementation is deployed"
    request = TransactionRequest(record.chain_id, plan.proxy, plan.calldata, plan.gas)
    receipt = sending.send(sign_request(sending, signer, request))
    endpoint, place = sending.endpoint, receipt.place
    parent = BlockReference(receipt.block.number - 1, receipt.block.parent_hash)
    explain = partial(_failure, endpoint, plan, parent)
    require_success(receipt, f"upgrade of {plan.name}", explain)
    before = read_log_state(ContractState(endpoint, parent), plan.name, plan.proxy)
    state = ContractState(endpoint, receipt.block.reference)
    after = read_log_state(state, plan.name, plan.proxy)
    found = state.implementation(plan.proxy)
    if found != plan.implementation:
        expected, got = to_checksum_address(plan.implementation), to_checksum_address(found)
        raise TransactionFailed(f"implementation of {plan.name}", expected, got, place)
    if before != after:
        raise TransactionFailed(f"state of {plan.name}", before, after, place)
    return receipt


def read_log_state(state: ContractState, name: str, proxy: bytes) -> LogState:
    """Return the state that an upgrade must leave unchanged."""
    return LogState(
        originator_sequence=to_checksum_address(state.ask(name, proxy, "originatorSequence")),
        topic_kind=state.ask(name, proxy, "topicKind"),
        payload_bounds=state.payload_bounds(name, proxy),
        is_paused=state.ask(name, proxy, "paused"),
        administrators=state.administrators(name, proxy),
        initialization=initialization_words(state.word(proxy, INITIALIZABLE_SLOT)),
    )


def _proxy(record: DeploymentRecord, name: str) -> DeployedContract:
    return next(proxy for proxy in record.sequenced_logs if proxy.name == name)


def _administrators(state: ContractState, name: str, proxy: bytes) -> tuple[str, ...]:
    """Return the administrators, at least one: our code keeps the last, other code need not."""
    found = state.administrators(name, proxy)
    if not found:
        raise state.endpoint.inconsistent(f"administrators of {name}", "at least one", "none")
    return found


def _failure(endpoint: Endpoint, plan: UpgradePlan, parent: BlockReference) -> str:
    """Return why an upgrade reverted, by calling the upgrade again on the block before."""
    try:
        endpoint.call(plan.proxy, plan.calldata or b"", parent, plan.sender)
    except RefusedRequest as error:
        return f"a revert: {shipped_interface(plan.name).revert_words(error)}"
    return "a revert, which the block before does not explain"


def _created_address(answer: Any) -> bytes:
    return parse_bytes(answer["contractAddress"], ADDRESS_LENGTH)

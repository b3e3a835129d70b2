"""The council as an account with a key, and as a Safe of each release, on a chain of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import eth_abi
from eth_utils.address import to_checksum_address

from chainkit.chain.sending import wait_for_receipt
from chainkit.contracts.artifacts import creation_code
from chainkit.contracts.state import DEFAULT_ADMIN_ROLE, ContractState
from chainkit.council.calls import Call
from chainkit.council.safe import InnerCall, SafeTransaction, pack
from chainkit.council.simulation import (
    Message,
    StateDifference,
    simulate_message,
    simulate_safe_transaction,
    try_message,
    try_safe_transaction,
)
from chainkit.council.simulation.safe_overrides import approved_execution, suppose_approval
from chainkit.council.simulation.trace import RawDifference, parse_difference, trace_difference
from chainkit.signatures import SigningKey, address_of
from chainkit.text.hexadecimal import hex0x
from chainkit.types import Receipt
from localnet.safe import deploy_safe_contracts
from support.chains.chain import REGISTRY_OWNER, Deployment, LocalChain, dev_address, redeployed
from support.council.safes import SafeChain, SafeOnChain

ACCOUNTS = ("plain", "1.4.1", "1.5.0")
"""A development account, and a Safe of either release."""

TRAILER = b"\x2a" * 32
"""Bytes behind the last calldata, as a proposal's grounds are bound."""

KEYS = [SigningKey(number.to_bytes(32, "big")).public_key for number in range(1, 400)]
"""Enough that one ends in a zero byte."""

KEY_ADDRESSES = [address_of(key) for key in KEYS]
FIRST_HOLDER = dev_address(5)


@dataclass(frozen=True)
class SimulatedCouncil:
    """A chain on which an account owns and administers everything, with one node added."""

    chain: LocalChain
    safe: SafeOnChain | None

    @property
    def address(self) -> bytes:
        return self.safe.address if self.safe else account(REGISTRY_OWNER)

    @property
    def checksummed(self) -> str:
        return to_checksum_address(self.address)

    @property
    def state(self) -> ContractState:
        return ContractState(self.chain.endpoint, self.chain.head().reference)

    def call(self, contract: str, function: str, *arguments: Any) -> Call:
        return Call.make(self.chain.record, contract, function, *arguments)

    def simulate(self, *calls: Call) -> StateDifference:
        state, record = self.state, self.chain.record
        if self.safe is None:
            return simulate_message(state, record, calls, self.message(*calls))
        transaction, multi_send = self.transaction(*calls), self.safe.multi_send
        account = self.safe.read()
        return simulate_safe_transaction(state, record, calls, transaction, account, multi_send)

    def try_it(self, *calls: Call) -> None:
        state, record = self.state, self.chain.record
        if self.safe is None:
            try_message(state, record, self.message(*calls))
        else:
            transaction, multi_send = self.transaction(*calls), self.safe.multi_send
            try_safe_transaction(state, record, transaction, self.safe.read(), multi_send)

    def traced(self, *calls: Call) -> RawDifference:
        """Return the endpoint's trace of the very transaction, undecoded."""
        state = self.state
        if self.safe is None:
            return trace_difference(state.endpoint, state.block, self.message(*calls), {})
        transaction = self.transaction(*calls)
        approval = suppose_approval(transaction, self.safe.read())
        message = approved_execution(transaction, approval)
        return trace_difference(state.endpoint, state.block, message, approval.overrides)

    def message(self, call: Call) -> Message:
        return Message(self.address, call.target, call.calldata + TRAILER)

    def transaction(self, *calls: Call) -> SafeTransaction:
        assert self.safe is not None
        *others, last = (InnerCall(call.target, call.calldata) for call in calls)
        return self.safe.transaction(*others, InnerCall(last.target, last.calldata + TRAILER))

    def send(self, *calls: Call) -> Receipt:
        """Execute the transaction, with the owners' own signatures."""
        if self.safe is None:
            message = self.message(*calls)
            return self.send_as(message.sender, message.to, message.data)
        transaction = self.transaction(*calls)
        signers = self.safe.owners[: self.safe.read().threshold]
        signatures = pack(transaction.hash, [one.sign(transaction.hash) for one in signers])
        return self.safe.send(transaction.exec_calldata(signatures))

    def send_as(self, sender: bytes, to: bytes | None, data: bytes) -> Receipt:
        """Send from any account, as nobody could on a real chain."""
        request = self.chain.anvil.request
        request("anvil_impersonateAccount", hex0x(sender))
        request("anvil_setBalance", hex0x(sender), hex(10**19))
        target = {} if to is None else {"to": hex0x(to)}
        call = {"from": hex0x(sender), "data": hex0x(data), "gas": hex(6_000_000)}
        sent = request("eth_sendTransaction", call | target)
        receipt = wait_for_receipt(self.chain.endpoint, bytes.fromhex(sent[2:]))
        assert receipt.succeeded, receipt
        return receipt

    def send_call(self, call: Call) -> None:
        """Make a call as the council, without its owners."""
        self.send_as(self.address, call.target, call.calldata)

    def send_and_compare(self, *calls: Call) -> None:
        """See that the transaction changes what was traced, by its own trace and by storage."""
        traced = self.traced(*calls)
        receipt = self.send(*calls)
        assert receipt.succeeded
        assert self.change_of(receipt).storage == traced.storage
        assert traced.words == {slot: self.state.word(*slot) for slot in traced.storage}

    def implementation(self, name: str) -> str:
        (log,) = (one for one in self.chain.record.sequenced_logs if one.name == name)
        return to_checksum_address(self.state.implementation(log.address))

    def change_of(self, receipt: Receipt) -> RawDifference:
        """Return what a mined transaction changed, by its own trace."""
        options = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}
        answer = self.chain.anvil.request(
            "debug_traceTransaction", hex0x(receipt.transaction_hash), options
        )
        return parse_difference(answer)

    def deploy_implementation(self, name: str) -> str:
        """Deploy another implementation of a log, and return its address."""
        sequence = self.chain.record.originator_sequence.address
        code = creation_code(name) + eth_abi.encode(["address"], [sequence])
        receipt = self.send_as(account(9), None, code)
        found = self.chain.endpoint.receipt(receipt.transaction_hash)
        assert found is not None
        return str(found["contractAddress"])


def account(number: int) -> bytes:
    """Return the address of a development account, 20 bytes."""
    return bytes.fromhex(dev_address(number)[2:])


@contextmanager
def simulated_council(
    deployment: Deployment, folder: Path, kind: str
) -> Iterator[SimulatedCouncil]:
    """Start the chain, and give all rights to a council of a kind, one of ACCOUNTS."""
    with redeployed(deployment, folder) as chain:
        chain.add_node(FIRST_HOLDER, KEYS[0], "https://node.example")
        if kind == "plain":
            yield SimulatedCouncil(chain, None)
            return
        deploy_safe_contracts(chain.anvil, kind)
        safe = SafeChain(chain.anvil).safe(kind, 3, 2)
        council = SimulatedCouncil(chain, safe)
        _hand_over(council)
        yield council


def _hand_over(council: SimulatedCouncil) -> None:
    owner, safe = account(REGISTRY_OWNER), council.address
    offer = council.call("NodeRegistry", "transferOwnership", hex0x(safe))
    accept = council.call("NodeRegistry", "acceptOwnership")
    council.send_as(owner, offer.target, offer.calldata)
    council.send_as(safe, accept.target, accept.calldata)
    for log in ("GroupMessages", "IdentityUpdates"):
        grant = council.call(log, "grantRole", DEFAULT_ADMIN_ROLE, hex0x(safe))
        council.send_as(owner, grant.target, grant.calldata)


@contextmanager
def undone(council: SimulatedCouncil) -> Iterator[None]:
    """Take back all that a test does to a chain that others use after it."""
    snapshot = council.chain.anvil.request("evm_snapshot")
    try:
        yield
    finally:
        council.chain.anvil.request("evm_revert", snapshot)

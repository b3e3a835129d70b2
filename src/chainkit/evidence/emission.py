"""Payloads that a transaction posted, and payloads that follow from its calldata alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment, payload_contract_content
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.errors import MalformedData
from chainkit.protocol.events import (
    NODE_UPDATED_TOPIC,
    decode_node_updated,
    decode_payload_event,
)
from chainkit.protocol.payload_contract import PayloadContract
from chainkit.text.hexadecimal import hex0x
from chainkit.types import (
    BLOCKCHAIN_ORIGINATOR_ID,
    Node,
    PayloadEvent,
    Receipt,
    TopicKind,
    identity_update_created,
    message_sent,
)

_KINDS: Final = (TopicKind.GROUP_MESSAGE, TopicKind.IDENTITY_UPDATE)


@dataclass(frozen=True, slots=True)
class EmittingContracts:
    """The contracts whose events become envelopes of the chain.

    Never from the evidence: the named contracts decide the shown meaning of a call.
    """

    contracts: tuple[PayloadContract, ...]
    are_own: bool
    """Whether the contracts are our own, which emit their arguments under originator 0.

    Nobody knows what contracts that are not ours emit on another branch, or after an upgrade.
    """

    @classmethod
    def own(cls, group_messages: bytes, identity_updates: bytes) -> Self:
        """Return our own two, at these addresses of 20 bytes."""
        places = zip(SEQUENCED_LOGS, (group_messages, identity_updates), _KINDS, strict=True)
        return cls(tuple(PayloadContract(name, at, 0, kind) for name, at, kind in places), True)

    @classmethod
    def of(cls, record: DeploymentRecord | FollowedDeployment) -> Self:
        """Return those of a deployment record."""
        if isinstance(record, DeploymentRecord):
            return cls.own(*record.payload_addresses)
        return cls(record.contracts, False)

    @property
    def described(self) -> dict[str, str]:
        """The fields of evidence about each contract, by name: for our own the address."""
        if self.are_own:
            return {contract.name: hex0x(contract.address) for contract in self.contracts}
        return {contract.name: _description(contract) for contract in self.contracts}

    def why_no_place(self, originator_id: int, sequence_id: int) -> str | None:
        """Return why no log of the chain has an originator and a sequence id; None if a log may.

        Contracts that are not ours may use any: a record may be older than the contracts.
        """
        if not self.are_own:
            return None
        if originator_id != BLOCKCHAIN_ORIGINATOR_ID:
            return f"the envelope names originator {originator_id}, and the blockchain is 0"
        if sequence_id == 0:
            return "the envelope has sequence id 0, and the contracts count from 1"
        return None


def _description(contract: PayloadContract) -> str:
    content = payload_contract_content(contract)
    return ", ".join(f"{field} {value}" for field, value in content.items())


@dataclass(frozen=True, slots=True)
class MinedTransaction:
    """A transaction that is part of the chain: its call and its effects."""

    receipt: Receipt
    input: bytes
    """The transaction's calldata."""


def posted_payloads(receipt: Receipt, emitting: EmittingContracts) -> list[PayloadEvent]:
    """Return the payloads that a transaction posted to the contracts, in their order.

    Raises MalformedLog where a contract emitted data that its code cannot emit.
    """
    by_address = {contract.address: contract for contract in emitting.contracts}
    return [
        decode_payload_event(log, contract)
        for log in receipt.logs
        if (contract := by_address.get(log.address)) and log.topics[:1] == (contract.topic,)
    ]


def registry_entries(
    transaction: MinedTransaction, node_registry: bytes, node_id: int
) -> list[Node]:
    """Return the entries of a node that a transaction wrote into a registry, in their order.

    ``node_registry`` is the contract's address, 20 bytes.
    """
    nodes = [
        decode_node_updated(log)
        for log in transaction.receipt.logs
        if log.address == node_registry and log.topics == (NODE_UPDATED_TOPIC,)
    ]
    return [node for node in nodes if node.node_id == node_id]


def promised_payload(
    transaction: MinedTransaction, emitted: Sequence[PayloadEvent], emitting: EmittingContracts
) -> PayloadEvent | None:
    """Return the payload that a direct call emits if it succeeds, None if the call does not fix it.

    The payload's sequence id is the one emitted here, or 0 where the call reverted. Calls of
    contracts that are not ours fix nothing.
    """
    if not emitting.are_own:
        return None
    sequence_id = emitted[0].sequence_id if emitted else 0
    receipt = transaction.receipt
    try:
        promised = _arguments(receipt.to, transaction.input, sequence_id, emitting.contracts)
    except MalformedData:
        return None  # an administrator's call, or one that always reverts
    # A contract that does not emit its arguments unchanged gives no proof.
    kept_here = not receipt.succeeded or list(emitted) == [promised]
    return promised if kept_here else None


def _arguments(
    called: bytes | None, calldata: bytes, sequence_id: int, own: Sequence[PayloadContract]
) -> PayloadEvent | None:
    group_messages, identity_updates = (contract.address for contract in own)
    if called == group_messages:
        arguments = shipped_interface("GroupMessages").arguments("addMessage", calldata)
        return message_sent(arguments["groupId"], arguments["message"], sequence_id)
    if called == identity_updates:
        interface = shipped_interface("IdentityUpdates")
        arguments = interface.arguments("addIdentityUpdate", calldata)
        return identity_update_created(arguments["inboxId"], arguments["update"], sequence_id)
    return None

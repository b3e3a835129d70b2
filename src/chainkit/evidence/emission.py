"""Payloads that a transaction posted, and those that its calldata alone promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chainkit.contracts.interface import shipped_interface
from chainkit.errors import MalformedData
from chainkit.protocol.events import (
    IDENTITY_UPDATE_CREATED_TOPIC,
    MESSAGE_SENT_TOPIC,
    NODE_UPDATED_TOPIC,
    decode_node_updated,
    decode_payload_event,
)
from chainkit.types import Node, PayloadEvent, Receipt, identity_update_created, message_sent

_PAYLOAD_TOPICS: Final = ((MESSAGE_SENT_TOPIC,), (IDENTITY_UPDATE_CREATED_TOPIC,))


@dataclass(frozen=True, slots=True)
class PayloadAddresses:
    """The two contracts whose events become node-0 envelopes; 20 bytes each.

    Never from the evidence: the named contracts decide the shown meaning of a call.
    """

    group_messages: bytes
    identity_updates: bytes


@dataclass(frozen=True, slots=True)
class MinedTransaction:
    """A transaction that is part of the chain: its call and its effects."""

    receipt: Receipt
    input: bytes
    """Its calldata."""


def posted_payloads(receipt: Receipt, contracts: PayloadAddresses) -> list[PayloadEvent]:
    """Return the payloads that a transaction posted to the two contracts, in their order.

    Raises MalformedLog where a contract emitted data that it cannot.
    """
    addresses = (contracts.group_messages, contracts.identity_updates)
    return [
        decode_payload_event(log)
        for log in receipt.logs
        if log.address in addresses and log.topics in _PAYLOAD_TOPICS
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
    transaction: MinedTransaction, emitted: Sequence[PayloadEvent], contracts: PayloadAddresses
) -> PayloadEvent | None:
    """Return the payload that a direct call emits if it succeeds, None if the call does not fix it.

    Its sequence id is the one emitted here, or 0 where the call reverted.
    """
    sequence_id = emitted[0].sequence_id if emitted else 0
    receipt = transaction.receipt
    try:
        promised = _arguments(receipt.to, transaction.input, sequence_id, contracts)
    except MalformedData:
        return None  # an administrator's call, or one that always reverts
    # A contract that does not emit its arguments unchanged is none that the proof rests on.
    kept_here = not receipt.succeeded or list(emitted) == [promised]
    return promised if kept_here else None


def _arguments(
    called: bytes | None, calldata: bytes, sequence_id: int, contracts: PayloadAddresses
) -> PayloadEvent | None:
    if called == contracts.group_messages:
        arguments = shipped_interface("GroupMessages").arguments("addMessage", calldata)
        return message_sent(arguments["groupId"], arguments["message"], sequence_id)
    if called == contracts.identity_updates:
        interface = shipped_interface("IdentityUpdates")
        arguments = interface.arguments("addIdentityUpdate", calldata)
        return identity_update_created(arguments["inboxId"], arguments["update"], sequence_id)
    return None

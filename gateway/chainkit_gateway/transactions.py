"""A payer's transactions as bytes: what a signed one calls, and what a mined one cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import rlp

from chainkit.chain import parse_integer
from chainkit.protocol.events import decode_payload_event
from chainkit.protocol.payload_contract import PayloadContract
from chainkit.types import Receipt
from chainkit_gateway.types import Settlement


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a contract that carries a publication."""

    chain_id: int
    to: bytes
    """20 bytes."""
    data: bytes


def raised(fee: int) -> int:
    """Return a replacement's lowest fee, in wei per gas: 12.5 % more."""
    return fee + max(1, -(-fee // 8))


def settlement_of(receipt: Receipt, contract: PayloadContract | None, answer: Any) -> Settlement:
    """Return what a transaction cost, and the id that its payload got, by its endpoint's answer.

    ``contract`` is the one that it called; None for another account, which takes no payload.
    """
    used, price = (parse_integer(answer[name]) for name in ("gasUsed", "effectiveGasPrice"))
    sequence_id = None
    for log in receipt.logs:
        if contract is not None and log.address == contract.address and sequence_id is None:
            sequence_id = decode_payload_event(log, contract).sequence_id
    return Settlement(receipt.block.reference, receipt.succeeded, used, price, sequence_id)


def call_of(raw: bytes) -> Call:
    """Return the call of a signed transaction of this account."""
    fields = fields_of(raw)
    return Call(fields["chainId"], fields["to"], fields["data"])


def fields_of(raw: bytes) -> dict[str, Any]:
    """Return the fields of a signed EIP-1559 transaction of this account."""
    chain_id, nonce, tip, maximum, gas, to, value, data, *_ = rlp.decode(raw[1:])
    numbers = {
        "chainId": chain_id,
        "nonce": nonce,
        "maxPriorityFeePerGas": tip,
        "maxFeePerGas": maximum,
        "gas": gas,
        "value": value,
    }
    shown = {name: int.from_bytes(number, "big") for name, number in numbers.items()}
    return {"type": 2, "to": to, "data": data} | shown

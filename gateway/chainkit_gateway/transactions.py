"""A payer's transactions as bytes: what a signed one calls, and what a mined one cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import rlp

from chainkit.chain import parse_integer
from chainkit.protocol.events import decode_payload_event
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


def settlement_of(receipt: Receipt, contract: bytes, answer: Any) -> Settlement:
    """Return what a transaction cost, and the id that its payload got, by its endpoint's answer.

    ``contract`` is the 20 bytes of the contract that it called.
    """
    used, price = (parse_integer(answer[name]) for name in ("gasUsed", "effectiveGasPrice"))
    events = (decode_payload_event(log) for log in receipt.logs if log.address == contract)
    ids = [each.sequence_id for each in events]
    sequence_id = ids[0] if ids else None
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

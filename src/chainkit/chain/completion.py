"""Completes transactions and receipts of endpoints: fields that follow from others are filled in.

Endpoints leave out fields that follow from other fields, and add fields that a type of transaction
does not have. The proof of a block and the chain export both call these functions, so both apply
the same rules. A field may also be *assumed*: the answer lacks the field, and most likely its value
is nothing. A hash that fits proves the assumption. A hash that does not fit proves no lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from chainkit.chain.parsing import parse_integer
from chainkit.ethereum.transaction import (
    ARBITRUM_INTERNAL,
    COLUMNS_BY_TYPE,
    COMMITTED_COLUMNS,
    LEGACY,
    OPTIMISM_DEPOSIT,
    TRANSACTION_TYPES,
)

Answer = Mapping[str, Any]
"""An object of JSON-RPC."""

_OTHER_NAMES: Final = {
    "from_address": "from",
    "to_address": "to",
    "gas_limit": "gas",
    "is_system_transaction": "isSystemTx",
}
"""Where the JSON of a transaction does not name a column in camelCase."""

_NOTHING: Final = {
    "from": "0x" + "00" * 20,
    "nonce": "0x0",
    "gas": "0x0",
    "value": "0x0",
    "input": "0x",
}
"""Fields that each transaction has in JSON, and the value of the field for a type that has no such
field."""

_FIRST_OF_A_CHAIN: Final = 35
"""The lowest ``v`` of a legacy transaction that was signed for one chain (EIP-155)."""

_ARBOS: Final = "0x00000000000000000000000000000000000a4b05"
"""The sender of all internal transactions of an Arbitrum chain."""


@dataclass(frozen=True, slots=True)
class Completed:
    """An answer, completed."""

    answer: Answer
    assumed: tuple[str, ...] = ()
    """The names of fields that the answer lacks, and whose values might differ from the assumed
    ones."""


@dataclass(frozen=True, slots=True)
class _Rules:
    """A type's fields that an answer may lack."""

    is_signed: bool
    commits_to_chain_id: bool
    has_fee_cap_of_gas_price: bool
    """Nodes answer the fee cap as the price, under that name alone."""
    uncommitted: Mapping[str, str]
    """Fields to which no hash commits, and that are no part of the transaction."""
    assumed: Mapping[str, Any]
    """Field name to the most likely meaning of its absence."""


def camel_case(column: str) -> str:
    """Return the name of a column of blocks in JSON-RPC."""
    first, *others = column.split("_")
    return first + "".join(map(str.capitalize, others))


def transaction_field(column: str) -> str:
    """Return the name of a column of transactions in JSON-RPC."""
    return _OTHER_NAMES.get(column) or camel_case(column)


def _rules(type_: int) -> _Rules:
    names = COMMITTED_COLUMNS[type_]
    is_signed = TRANSACTION_TYPES[type_].is_signed
    committed = {transaction_field(name) for name in names}
    uncommitted = {name: text for name, text in _NOTHING.items() if name not in committed}
    if type_ == ARBITRUM_INTERNAL:
        uncommitted["from"] = _ARBOS
    if is_signed:
        # The signature names the sender: zeros would contradict it.
        uncommitted.pop("from")
    nulls = {
        transaction_field(each.name): None
        for each in COLUMNS_BY_TYPE[type_]
        if each.null is not None
    }
    zeros: dict[str, Any] = {"accessList": [], "isSystemTx": False}
    others = {name: zero for name, zero in zeros.items() if name in committed}
    return _Rules(
        is_signed,
        "chain_id" in names,
        not is_signed and "max_fee_per_gas" in names,
        uncommitted,
        {**nulls, **others},
    )


_RULES: Final = {type_: _rules(type_) for type_ in TRANSACTION_TYPES}


def transaction_type(answer: Answer) -> int:
    """Return the type of a transaction or receipt; LEGACY where there is none (before Berlin)."""
    type_ = answer.get("type")
    return LEGACY if type_ is None else parse_integer(type_)


def transaction_input(answer: Answer) -> Any:
    """Return the calldata of a transaction, under either of its names. Raises KeyError for none."""
    return answer["data"] if answer.get("input") is None else answer["input"]


def completed_transaction(answer: Any, chain_id: int) -> Completed:
    """Return a transaction with its left-out fields, as far as they follow from the other fields.

    ``chain_id`` is the chain's: a transaction that names a chain id was signed for this chain.
    Raises TypeError or ValueError where the answer is no object, or its type no integer.
    """
    if not isinstance(answer, dict):
        raise TypeError("expected an object")
    type_ = transaction_type(answer)
    assumed: list[str] = []
    more: dict[str, Any] = {}
    if answer.get("type") is None:
        more["type"] = hex(LEGACY)
        assumed.append("type")
    if (rules := _RULES.get(type_)) is None:
        return Completed(answer | more, tuple(assumed))
    if answer.get("input") is None and answer.get("data") is not None:
        more["input"] = transaction_input(answer)
    if rules.is_signed:
        more |= _signature(answer, type_, assumed)
    if answer.get("chainId") is None and rules.commits_to_chain_id:
        more["chainId"] = hex(chain_id)
    price = answer.get("gasPrice")
    if rules.has_fee_cap_of_gas_price and answer.get("maxFeePerGas") is None and price is not None:
        more["maxFeePerGas"] = price
        assumed.append("maxFeePerGas")
    for name, text in rules.uncommitted.items():
        if answer.get(name) is None and name not in more:
            more[name] = text
    for name, value in rules.assumed.items():
        # A null in the answer is a value: for one, that a contract is created.
        if name not in answer or (answer[name] is None and value is not None):
            more[name] = value
            assumed.append(name)
    return Completed(answer | more if more else answer, tuple(assumed))


def _signature(answer: Answer, type_: int, assumed: list[str]) -> dict[str, Any]:
    """Return ``v`` as the hash needs it: the parity, except for a legacy transaction (EIP-155)."""
    v, parity = answer.get("v"), answer.get("yParity")
    if type_ != LEGACY:
        if parity is not None:
            return {"v": parity}
        return {} if v in (None, "0x0", "0x1") else _parity_of(v)
    chain_id = answer.get("chainId")
    if v is None and (number := _integer(parity)) is not None:
        if chain_id is None:
            assumed.append("v")
            return {"v": hex(27 + number)}
        return {"v": hex(_FIRST_OF_A_CHAIN + 2 * (_integer(chain_id) or 0) + number)}
    if chain_id is None and (number := _integer(v)) is not None and number >= _FIRST_OF_A_CHAIN:
        return {"chainId": hex((number - _FIRST_OF_A_CHAIN) // 2)}
    return {}


def _parity_of(v: Any) -> dict[str, Any]:
    """Return the parity of a ``v`` in the form of a legacy transaction: 27 and 28, or from 35."""
    number = _integer(v)
    is_legacy = number is not None and (number in (27, 28) or number >= _FIRST_OF_A_CHAIN)
    return {"v": hex((number + 1) % 2)} if number is not None and is_legacy else {}


def _integer(value: Any) -> int | None:
    """Return the integer of a field, None for anything else: the encoder will report the field."""
    try:
        return parse_integer(value)
    except (TypeError, ValueError, AttributeError):
        return None


def completed_receipt(answer: Any, transaction: Answer) -> Completed:
    """Return a receipt with the fields that follow from its completed transaction.

    Raises TypeError where the answer is no object.
    """
    if not isinstance(answer, dict):
        raise TypeError("expected an object")
    completed = answer if answer.get("type") is not None else answer | {"type": transaction["type"]}
    assumed = [] if answer.get("blockHash") is not None else ["blockHash"]
    is_deposit = transaction_type(completed) == OPTIMISM_DEPOSIT
    if is_deposit and answer.get("depositReceiptVersion") is None:
        # Until Canyon a deposit's receipt had none.
        assumed.append("depositReceiptVersion")
    return Completed(completed, tuple(assumed))

"""Receipts that are doubted, and transactions that are signed, sent and waited for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from chainkit.chain import Endpoint, parse_integer, parse_log
from chainkit.errors import (
    ChainError,
    ConfigurationError,
    RefusedRequest,
    RetryableChainError,
    TransactionFailed,
)
from chainkit.text.ether import MAX_COST, ether_words
from chainkit.text.hexadecimal import parse_bytes
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH, BlockHeader, BlockReference, Receipt

RECEIPT_TIMEOUT_SECONDS: Final = 120.0
"""How long a sent transaction is waited for."""

_BASE_FEES_PER_TIP: Final = 3
_USUAL_TIP: Final = 100 * 10**9
"""Wei per gas: up to here a tip is believed, however low the base fee is."""

_POLL_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class SignedTransaction:
    """A transaction ready to be sent; whoever holds it can send it."""

    raw: bytes
    """EIP-2718 envelope."""
    hash: bytes
    """32 bytes."""


def fetch_receipt(endpoint: Endpoint, transaction_hash: bytes) -> Receipt | None:
    """Return a transaction's receipt, None where the endpoint knows none.

    Raises InconsistentAnswer for a receipt of another transaction, of a block that is not the
    chain's at its height, or with logs that are not its own.
    """
    answer = endpoint.receipt(transaction_hash)
    if answer is None:
        return None
    subject = f"receipt of 0x{transaction_hash.hex()}"
    claimed = endpoint.parsed(subject, _parse_block_reference, answer)
    block = endpoint.header(claimed.number)
    receipt = endpoint.parsed(subject, lambda value: _parse_receipt(value, block), answer)
    if receipt.transaction_hash != transaction_hash:
        got = f"0x{receipt.transaction_hash.hex()}"
        raise endpoint.inconsistent(subject, "the same hash", got)
    if claimed != block.reference:
        raise endpoint.inconsistent(subject, f"block {block.reference}", claimed)
    for log in receipt.logs:
        if (log.transaction_hash, log.block_hash) != (transaction_hash, block.hash) or log.removed:
            raise endpoint.inconsistent(subject, "logs of its own", f"another's ({log.place})")
    return receipt


def fetch_input(endpoint: Endpoint, transaction_hash: bytes) -> bytes:
    """Return the calldata of a transaction that has a receipt."""
    answer = endpoint.transaction(transaction_hash)
    subject = f"transaction 0x{transaction_hash.hex()}"
    if answer is None:
        raise endpoint.inconsistent(subject, "a transaction, as there is a receipt", "none")
    return endpoint.parsed(subject, lambda value: parse_bytes(value["input"]), answer)


def estimate_gas(
    endpoint: Endpoint, to: bytes | None, calldata: bytes, sender: str, block: BlockReference
) -> int:
    """Return the gas that a call would use at a block; ``to`` is None to deploy a contract.

    Raises as Endpoint.call does.
    """
    target = {} if to is None else {"to": "0x" + to.hex()}
    call = {"from": sender, "data": "0x" + calldata.hex(), **target}
    return endpoint.estimate_gas(call, block)


def next_nonce(endpoint: Endpoint, sender: str) -> int:
    """Return the nonce of an account's next transaction.

    Raises RefusedRequest where transactions of the account still wait: a new one would replace one
    of them, or hang behind it.
    """
    nonce = endpoint.transaction_count(sender, endpoint.head().reference)
    waiting = endpoint.pending_transaction_count(sender) - nonce
    if waiting > 0:
        raise RefusedRequest(f"transactions of {sender}", "none waiting to be mined", waiting)
    return nonce


def draft_transaction(
    endpoint: Endpoint,
    sender: str,
    chain_id: int,
    to: bytes | None,
    calldata: bytes,
    gas: int,
    max_cost: int = MAX_COST,
) -> dict[str, Any]:
    """Return an EIP-1559 call for a signer, by Ethereum's names; ``to`` and ``data`` are bytes.

    It has the sender's next nonce and today's fees, and ``to`` only unless that is None. ``gas`` is
    the estimate; a quarter is added. Raises RefusedRequest where transactions of the sender still
    wait: a new one would replace one of them, or hang behind it; and where the endpoint asks for a
    tip that no chain takes. Raises ConfigurationError where it could cost more than ``max_cost``
    wei.
    """
    nonce = next_nonce(endpoint, sender)
    tip, maximum = _fees(endpoint)
    gas += gas // 4
    check_cost(gas * maximum, max_cost)
    return {
        "type": 2,
        "chainId": chain_id,
        "nonce": nonce,
        **({} if to is None else {"to": to}),
        "value": 0,
        "data": calldata,
        "gas": gas,
        "maxPriorityFeePerGas": tip,
        "maxFeePerGas": maximum,
    }


def check_cost(cost: int, max_cost: int) -> None:
    """Raise ConfigurationError where what a transaction could cost is above a limit, in wei.

    The endpoint names gas and fees, and an endpoint that builds blocks earns them.
    """
    if cost > max_cost:
        expected = f"at most {ether_words(max_cost)}"
        place = "--max-cost ETHER allows more"
        raise ConfigurationError("cost of the transaction", expected, ether_words(cost), place)


def send_transaction(endpoint: Endpoint, signed: SignedTransaction) -> None:
    """Hand a signed transaction to the endpoint.

    Raises RefusedRequest where it was refused, and TransactionFailed with the hash to look
    for where it is not known whether it was accepted.
    """
    try:
        endpoint.send_raw(signed.raw)
    except ChainError as error:
        # After a lost answer the transaction is sent again. Then "already known" or "nonce too low"
        # means that the first attempt arrived.
        if not _is_known(endpoint, signed.hash):
            if isinstance(error, RefusedRequest):
                raise
            subject = f"transaction 0x{signed.hash.hex()}"
            raise TransactionFailed(
                subject, "to be accepted", f"no clear answer: {error}"
            ) from error


def wait_for_receipt(
    endpoint: Endpoint, transaction_hash: bytes, timeout_seconds: float = RECEIPT_TIMEOUT_SECONDS
) -> Receipt:
    """Return the receipt once the transaction is mined. Raises TransactionFailed after a while."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            receipt = fetch_receipt(endpoint, transaction_hash)
        except RetryableChainError:
            receipt = None  # a block that is just being replaced, or an endpoint that pauses
        if receipt is not None:
            return receipt
        if time.monotonic() >= deadline:
            raise TransactionFailed(
                f"transaction 0x{transaction_hash.hex()}",
                f"a receipt within {timeout_seconds:g} s",
                "none; it may still be mined",
            )
        time.sleep(_POLL_SECONDS)


def _is_known(endpoint: Endpoint, transaction_hash: bytes) -> bool:
    try:
        known = endpoint.transaction(transaction_hash)
    except ChainError:
        return False
    return known is not None


def _fees(endpoint: Endpoint) -> tuple[int, int]:
    """Priority fee and highest fee per gas in wei: the base fee may double before it is mined."""
    tip = endpoint.priority_fee()
    base = endpoint.next_base_fee(endpoint.head().reference)
    most = max(_BASE_FEES_PER_TIP * base, _USUAL_TIP)
    if tip > most:
        # The base fee is burnt; the tip is what whoever builds the block, and names it, is paid.
        expected = f"at most {most:,} wei per gas, at a base fee of {base:,}"
        raise RefusedRequest("tip that the endpoint asks for", expected, f"{tip:,}")
    return tip, 2 * base + tip


def _parse_block_reference(answer: Any) -> BlockReference:
    return BlockReference(
        parse_integer(answer["blockNumber"]), parse_bytes(answer["blockHash"], HASH_LENGTH)
    )


def _parse_receipt(answer: Any, block: BlockHeader) -> Receipt:
    return Receipt(
        transaction_hash=parse_bytes(answer["transactionHash"], HASH_LENGTH),
        succeeded=parse_integer(answer["status"]) == 1,
        to=parse_bytes(answer["to"], ADDRESS_LENGTH) if answer["to"] else None,
        block=block,
        logs=tuple(parse_log(log) for log in answer["logs"]),
    )

"""Transactions on their way to the chain: nonce, fees, sending, and the wait for a receipt."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from chainkit.chain import Endpoint
from chainkit.chain.transactions import fetch_receipt
from chainkit.errors import (
    ChainError,
    ConfigurationError,
    RefusedRequest,
    RetryableChainError,
    TransactionFailed,
)
from chainkit.text.ether import MAX_COST, ether_words
from chainkit.types import Receipt

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

    Gas and fees are the endpoint's word, and one that builds blocks earns what it asks for.
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
        # A lost answer is asked for again by sending again, and then "already known" or "nonce
        # too low" says that the first attempt arrived.
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

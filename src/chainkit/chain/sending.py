"""Sends transactions: nonce, fees, sending, and the wait for a receipt.

This package sends all its transactions here: direct changes, proposals, upgrades, deployments.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from chainkit.chain import Endpoint
from chainkit.chain.refusals import (
    tells_of_impossible_transaction,
    tells_of_pooled_transaction,
)
from chainkit.chain.transactions import fetch_receipt
from chainkit.errors import (
    ChainError,
    ConfigurationError,
    OutcomeUnknown,
    RefusedRequest,
    RetryableChainError,
    TransactionFailed,
)
from chainkit.text.ether import MAX_COST, ether_words
from chainkit.types import Receipt

RECEIPT_TIMEOUT_SECONDS: Final = 120.0
"""How long a sent transaction is waited for."""

TRANSACTION_GAS_CAP: Final = 2**24
"""The most gas that one transaction may ask for on Ethereum, from Osaka on (EIP-7825)."""

_BASE_FEES_PER_TIP: Final = 3
_USUAL_TIP: Final = 100 * 10**9
"""Wei per gas: up to here a tip is believed, however low the base fee is."""

_POLL_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class SignedTransaction:
    """A transaction ready to be sent; anybody who holds its bytes can send it."""

    raw: bytes
    """EIP-2718 envelope."""
    hash: bytes
    """32 bytes."""


Announce = Callable[[SignedTransaction], None]
"""Takes a transaction right before it is sent, to show the transaction or to keep its hash."""


@dataclass(frozen=True, slots=True)
class TransactionRequest:
    """A transaction without value, before it has a sender, a nonce and fees."""

    chain_id: int
    to: bytes | None
    """20 bytes; None to deploy a contract."""
    data: bytes
    gas: int
    """Estimated gas units."""


@dataclass(frozen=True, slots=True)
class Sending:
    """How transactions are sent: by which endpoint, at which cost, and how long is waited."""

    endpoint: Endpoint
    max_cost: int = MAX_COST
    """Wei."""
    timeout_seconds: float = RECEIPT_TIMEOUT_SECONDS
    announce: Announce = lambda _: None

    def send(self, signed: SignedTransaction) -> Receipt:
        """Announce a transaction, send it, and return its receipt, whatever its status.

        A transaction that may be in a pool is waited for, too. Raises as ``send_transaction``, and
        TransactionFailed where there is no receipt in time.
        """
        self.announce(signed)
        try:
            send_transaction(self.endpoint, signed)
        except OutcomeUnknown as unknown:
            try:
                return wait_for_receipt(self.endpoint, signed.hash, self.timeout_seconds)
            except TransactionFailed as failed:
                raise OutcomeUnknown(unknown.subject, failed.expected, unknown.got) from unknown
        return wait_for_receipt(self.endpoint, signed.hash, self.timeout_seconds)


def require_success(receipt: Receipt, subject: str, explain: Callable[[], str]) -> None:
    """Raise TransactionFailed unless a transaction's status is 1; ``explain`` gives the reason."""
    if not receipt.succeeded:
        raise TransactionFailed(subject, "status 1", explain(), receipt.place)


def next_nonce(endpoint: Endpoint, sender: str) -> int:
    """Return the nonce of an account's next transaction.

    Raises RefusedRequest where transactions of the account still wait: a new transaction would
    replace one of them, or wait behind it.
    """
    nonce = endpoint.transaction_count(sender, endpoint.head().reference)
    waiting = endpoint.pending_transaction_count(sender) - nonce
    if waiting > 0:
        raise RefusedRequest(f"transactions of {sender}", "none waiting to be mined", waiting)
    return nonce


def draft_transaction(
    endpoint: Endpoint, sender: str, request: TransactionRequest, max_cost: int = MAX_COST
) -> dict[str, Any]:
    """Return an EIP-1559 call for a signer, by Ethereum's names; ``to`` and ``data`` are bytes.

    It has the sender's next nonce, today's fees, and a quarter more gas than was estimated. Raises
    RefusedRequest as ``next_nonce``, and where the endpoint asks for a tip that no chain takes;
    ConfigurationError where it could cost more than ``max_cost`` wei.
    """
    nonce = next_nonce(endpoint, sender)
    tip, maximum = transaction_fees(endpoint)
    gas = with_margin(request.gas)
    check_cost(gas * maximum, max_cost)
    return {
        "type": 2,
        "chainId": request.chain_id,
        "nonce": nonce,
        **({} if request.to is None else {"to": request.to}),
        "value": 0,
        "data": request.data,
        "gas": gas,
        "maxPriorityFeePerGas": tip,
        "maxFeePerGas": maximum,
    }


def with_margin(gas: int) -> int:
    """Return a quarter more gas than was estimated, at most the cap of one transaction.

    An estimate above EIP-7825's cap comes from a chain that has no such cap.
    """
    more = gas + gas // 4
    return more if gas > TRANSACTION_GAS_CAP else min(more, TRANSACTION_GAS_CAP)


def check_cost(cost: int, max_cost: int) -> None:
    """Raise ConfigurationError where a transaction could cost more than a limit, in wei.

    The endpoint names gas and fees, and an endpoint that builds blocks earns them.
    """
    if cost > max_cost:
        expected = f"at most {ether_words(max_cost)}"
        place = "--max-cost ETHER allows more"
        raise ConfigurationError("cost of the transaction", expected, ether_words(cost), place)


def send_transaction(endpoint: Endpoint, signed: SignedTransaction) -> None:
    """Hand a signed transaction to the endpoint.

    Raises RefusedRequest where the endpoint refused the transaction, OutcomeUnknown where a pool
    may have it, by the text of the refusal or by an earlier attempt, and TransactionFailed with the
    hash to look for where no clear answer came.
    """
    try:
        endpoint.send_raw(signed.raw)
    except ChainError as error:
        # After a lost answer the transaction is sent again. Then "already known" or "nonce too low"
        # means that the first attempt arrived, also where the look-up by hash lags behind.
        if _is_known(endpoint, signed.hash):
            return
        subject, words = f"transaction 0x{signed.hash.hex()}", str(error.got)
        if tells_of_impossible_transaction(words):
            raise RefusedRequest(subject, "to be accepted", words) from error
        if tells_of_pooled_transaction(words) or getattr(error, "is_repeated", False):
            got = f"{words!r}: it may still be mined"
            raise OutcomeUnknown(subject, "to be accepted", got) from error
        if isinstance(error, RefusedRequest):
            raise
        raise TransactionFailed(subject, "to be accepted", f"no clear answer: {error}") from error


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


def transaction_fees(endpoint: Endpoint) -> tuple[int, int]:
    """Priority fee and highest fee per gas in wei: the base fee may double before it is mined."""
    tip = endpoint.priority_fee()
    base = endpoint.next_base_fee(endpoint.head().reference)
    most = max(_BASE_FEES_PER_TIP * base, _USUAL_TIP)
    if tip > most:
        # The base fee is burnt; the tip is paid to the builder of the block, who also names it.
        expected = f"at most {most:,} wei per gas, at a base fee of {base:,}"
        raise RefusedRequest("tip that the endpoint asks for", expected, f"{tip:,}")
    return tip, 2 * base + tip

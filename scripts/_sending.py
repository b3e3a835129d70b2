"""Sends many transactions without waiting for each, then asks for every receipt."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount

from chainkit.chain import Endpoint
from chainkit.chain.sending import SignedTransaction, send_transaction
from chainkit.errors import OutcomeUnknown, TransactionFailed
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x
from scripts._mining import mining_stopped

GAS_BASE = 150_000
"""Gas that a transaction may use besides its calldata: far more than a publication needs."""

GAS_PER_CALLDATA_BYTE = 70
"""Above the floors, 40 (EIP-7623) and 64 (EIP-7976), and above execution with the event's data."""

PRIORITY_FEE_WEI = 10**9
BASE_FEE_ROOM = 20
"""How many times the base fee may grow while the traffic runs."""

_PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.2

Publication = tuple[str, bytes]
"""Contract address and calldata."""
Receipt = dict[str, Any]
Progress = Callable[[int], None]


class Senders:
    """Accounts that publish in turn, each with a nonce counted here and not asked for again."""

    def __init__(self, endpoint: Endpoint, secrets: Sequence[str]) -> None:
        """Ask once for each account's nonce and for the chain's fees."""
        self._accounts: list[LocalAccount] = [Account.from_key(secret) for secret in secrets]
        self._nonces = [
            endpoint.pending_transaction_count(account.address) for account in self._accounts
        ]
        self._chain_id = endpoint.chain_id()
        base_fee = endpoint.next_base_fee(endpoint.head().reference)
        self._max_fee = base_fee * BASE_FEE_ROOM + PRIORITY_FEE_WEI

    def sign(self, index: int, publication: Publication) -> SignedTransaction:
        """Sign a call by the next account in turn."""
        turn = index % len(self._accounts)
        to, data = publication
        transaction: dict[str, Any] = {
            "type": 2,
            "chainId": self._chain_id,
            "nonce": self._nonces[turn],
            "to": to,
            "value": 0,
            "data": data,
            "gas": GAS_BASE + GAS_PER_CALLDATA_BYTE * len(data),
            "maxFeePerGas": self._max_fee,
            "maxPriorityFeePerGas": PRIORITY_FEE_WEI,
        }
        self._nonces[turn] += 1
        raw = bytes(self._accounts[turn].sign_transaction(transaction).raw_transaction)
        return SignedTransaction(raw, keccak256(raw))


def send_all(
    endpoint: Endpoint,
    signed: Sequence[SignedTransaction],
    per_block: int | None,
    progress: Progress,
) -> None:
    """Send transactions in order; with ``per_block`` that many into each block, by anvil only."""
    if per_block is None:
        _send(endpoint, signed, progress)
        return
    with mining_stopped(endpoint):
        for start in range(0, len(signed), per_block):
            _send(endpoint, signed[start : start + per_block], progress)
            endpoint.request("evm_mine")


def _send(endpoint: Endpoint, signed: Sequence[SignedTransaction], progress: Progress) -> None:
    # One by one: anvil handles a batch concurrently, and a transaction that overtakes its
    # sender's earlier one can stay in the pool for good.
    for transaction in signed:
        with suppress(OutcomeUnknown):
            send_transaction(endpoint, transaction)
        progress(1)


def receipts(endpoint: Endpoint, hashes: Sequence[bytes], progress: Progress) -> list[Receipt]:
    """Return every receipt. Raises TransactionFailed for one that reverted or never came."""
    found: dict[bytes, Receipt] = {}
    last_advance = time.monotonic()
    while len(found) < len(hashes):
        new = _new_receipts(endpoint, [value for value in hashes if value not in found])
        found |= new
        progress(len(new))
        if new:
            last_advance = time.monotonic()
        elif time.monotonic() - last_advance > _PATIENCE_SECONDS:
            missing = f"{len(hashes) - len(found)} of {len(hashes)} not mined"
            expected = f"a block within {_PATIENCE_SECONDS:.0f} s"
            raise TransactionFailed("traffic", expected, missing)
        else:
            time.sleep(_POLL_SECONDS)
    return [found[value] for value in hashes]


def _new_receipts(endpoint: Endpoint, hashes: Sequence[bytes]) -> dict[bytes, Receipt]:
    answers = endpoint.receipts(hashes)
    new = {value: answer for value, answer in zip(hashes, answers, strict=True) if answer}
    for value, receipt in new.items():
        if int(receipt["status"], 16) != 1:
            raise TransactionFailed(f"transaction {hex0x(value)}", "success", "a revert")
    return new

"""Sends many transactions without waiting for each, then asks for every receipt."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount

from chainkit.chain import Endpoint
from chainkit.errors import TransactionFailed
from scripts._mining import mining_stopped

GAS_BASE = 150_000
"""Gas that a transaction may use beside its calldata: far more than a publication does."""

GAS_PER_CALLDATA_BYTE = 60
"""Above EIP-7623's floor of 40 per non-zero byte, and above execution with the event's data."""

PRIORITY_FEE_WEI = 10**9
BASE_FEE_ROOM = 20
"""How many times the base fee may grow while the traffic runs."""

_PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.2

Call = tuple[str, bytes]
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
        head = endpoint.request("eth_getBlockByNumber", "latest", False)
        base_fee = int(head["baseFeePerGas"], 16)
        self._max_fee = base_fee * BASE_FEE_ROOM + PRIORITY_FEE_WEI

    def sign(self, index: int, call: Call) -> str:
        """Return the raw transaction, 0x-prefixed, of the next account in turn."""
        turn = index % len(self._accounts)
        to, data = call
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
        return self._accounts[turn].sign_transaction(transaction).raw_transaction.to_0x_hex()


def send_all(
    endpoint: Endpoint, raw: Sequence[str], per_block: int | None, progress: Progress
) -> list[str]:
    """Send raw transactions in order and return their hashes.

    With ``per_block``, that many are mined into each block; this needs anvil.
    """
    if per_block is None:
        return [_send(endpoint, value, progress) for value in raw]
    hashes: list[str] = []
    with mining_stopped(endpoint):
        for start in range(0, len(raw), per_block):
            group = raw[start : start + per_block]
            hashes += [_send(endpoint, value, progress) for value in group]
            endpoint.request("evm_mine")
    return hashes


def _send(endpoint: Endpoint, raw: str, progress: Progress) -> str:
    # One by one: anvil handles a batch concurrently, and a transaction that overtakes its
    # sender's earlier one can stay in the pool for good.
    hash_ = endpoint.request("eth_sendRawTransaction", raw)
    progress(1)
    return str(hash_)


def receipts(endpoint: Endpoint, hashes: Sequence[str], progress: Progress) -> list[Receipt]:
    """Return every receipt. Raises TransactionFailed for one that reverted or never came."""
    found: dict[str, Receipt] = {}
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


def _new_receipts(endpoint: Endpoint, hashes: Sequence[str]) -> dict[str, Receipt]:
    answers = endpoint.receipts([bytes.fromhex(value[2:]) for value in hashes])
    new = {value: answer for value, answer in zip(hashes, answers, strict=True) if answer}
    for value, receipt in new.items():
        if int(receipt["status"], 16) != 1:
            raise TransactionFailed(f"transaction {value}", "success", "a revert")
    return new

"""Transactions on the chain: receipts that are doubted, calldata, and what gas a call takes."""

from __future__ import annotations

from typing import Any

from chainkit.chain import Endpoint, parse_integer, parse_log
from chainkit.chain.completion import transaction_input
from chainkit.text.hexadecimal import parse_bytes
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH, BlockHeader, BlockReference, Receipt


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
    return endpoint.parsed(subject, lambda value: parse_bytes(transaction_input(value)), answer)


def estimate_gas(
    endpoint: Endpoint, to: bytes | None, calldata: bytes, sender: str, block: BlockReference
) -> int:
    """Return the gas that a call would use at a block; ``to`` is None to deploy a contract.

    Raises as Endpoint.call does.
    """
    target = {} if to is None else {"to": "0x" + to.hex()}
    call = {"from": sender, "data": "0x" + calldata.hex(), **target}
    return endpoint.estimate_gas(call, block)


def _parse_block_reference(answer: Any) -> BlockReference:
    return BlockReference(
        parse_integer(answer["blockNumber"]), parse_bytes(answer["blockHash"], HASH_LENGTH)
    )


def _parse_receipt(answer: Any, block: BlockHeader) -> Receipt:
    return Receipt(
        transaction_hash=parse_bytes(answer["transactionHash"], HASH_LENGTH),
        succeeded=parse_integer(answer["status"]) == 1,
        to=parse_bytes(answer["to"], ADDRESS_LENGTH) if answer.get("to") else None,
        block=block,
        logs=tuple(parse_log(log) for log in answer["logs"]),
    )

"""Proves what an endpoint says of a block: its header by the hash, all else by the header's roots.

A header's hash is the keccak256 of its fields. Two of them are the roots of tries over the block's
transactions and receipts (yellow paper, section 4.3): a transaction proves its own hash and place,
a receipt proves its logs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from chainkit.chain.block_encoding import (
    encode_header,
    encode_receipt,
    encode_transaction,
    has_header,
    has_unknown_fields,
)
from chainkit.chain.client import BATCH_SIZE, RpcClient
from chainkit.chain.logs import LogFilter
from chainkit.chain.transport import RpcCall
from chainkit.errors import Disproved, OversizedAnswer, Unprovable
from chainkit.ethereum.root import trie_root
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x, parse_bytes
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH, BlockHeader, BlockRoots, Log

_BLOCKS_PER_BATCH: Final = BATCH_SIZE // 2
"""Two requests for each: its transactions and its receipts."""


@dataclass(frozen=True, slots=True)
class ProvedBlock:
    """A block whose hash its header has, and whose header's roots its contents have."""

    header: bytes
    """RLP: its keccak256 is the block's hash."""
    transactions: tuple[bytes, ...]
    """EIP-2718 encodings, in the block's order."""
    receipts: tuple[bytes, ...]
    """EIP-2718 encodings, one for each transaction."""


def prove_header(client: RpcClient, header: BlockHeader, answer: Mapping[str, Any]) -> BlockHeader:
    """Return a header with its roots if the fields of its JSON hash to what the endpoint says.

    A chain may have fields in its headers that are not known here: then the header is returned
    without roots. Raises Disproved where all fields are known, and hash to something else.
    """
    if not has_header(answer):
        return header
    subject = f"block {header.number}"
    data = client.parsed(subject, encode_header, answer)
    if (found := keccak256(data)) != header.hash:
        if has_unknown_fields(answer):
            return header
        raise Disproved(
            f"{subject} at {client.name}", f"fields that hash to {hex0x(header.hash)}", hex0x(found)
        )
    roots = BlockRoots(
        parse_bytes(answer["transactionsRoot"], HASH_LENGTH),
        parse_bytes(answer["receiptsRoot"], HASH_LENGTH),
    )
    return replace(header, roots=roots)


def read_proved_logs(
    client: RpcClient, headers: Sequence[BlockHeader], wanted: LogFilter
) -> list[Log]:
    """Return the wanted logs of blocks with roots, each proved with its place, in chain order.

    Reads all transactions and receipts of the blocks. Raises Disproved where they do not have the
    header's roots, Unprovable for a type of transaction that is not known here, MethodUnavailable
    or RefusedRequest where the endpoint offers no receipts of blocks, and InconsistentAnswer where
    it now has another block at the height.
    """
    logs: list[Log] = []
    for start in range(0, len(headers), _BLOCKS_PER_BATCH):
        logs += _proved_logs(client, headers[start : start + _BLOCKS_PER_BATCH], wanted)
    return logs


def read_proved_block(client: RpcClient, header: BlockHeader) -> ProvedBlock:
    """Return all of a block. Raises as ``read_proved_logs`` does.

    Raises Unprovable where the header has no roots: it has fields that are not known here.
    """
    subject = f"block {header.number}"
    if header.roots is None:
        raise Unprovable(subject, "a header with fields that this version knows", "others")
    height = hex(header.number)
    block, receipts = client.batch(
        [("eth_getBlockByNumber", (height, True)), ("eth_getBlockReceipts", (height,))]
    )
    transactions, outcomes = _proved_contents(client, header, header.roots, block, receipts)
    encoded = client.parsed(subject, encode_header, block)
    if (found := keccak256(encoded)) != header.hash:
        raise Disproved(f"{subject} at {client.name}", hex0x(header.hash), hex0x(found))
    return ProvedBlock(encoded, tuple(transactions), tuple(outcomes))


def _proved_logs(client: RpcClient, headers: Sequence[BlockHeader], wanted: LogFilter) -> list[Log]:
    heights = [hex(header.number) for header in headers]
    # By height: not every endpoint takes a hash for receipts.
    calls: list[RpcCall] = [("eth_getBlockByNumber", (height, True)) for height in heights]
    calls += [("eth_getBlockReceipts", (height,)) for height in heights]
    try:
        answers = client.batch(calls)
    except OversizedAnswer:
        if len(headers) == 1:
            raise
        half = len(headers) // 2
        first, second = headers[:half], headers[half:]
        return _proved_logs(client, first, wanted) + _proved_logs(client, second, wanted)
    blocks, receipts = answers[: len(headers)], answers[len(headers) :]
    return [
        log
        for header, block, outcomes in zip(headers, blocks, receipts, strict=True)
        for log in _proved_logs_of_block(client, header, block, outcomes, wanted)
    ]


def _proved_logs_of_block(
    client: RpcClient, header: BlockHeader, block: Any, receipts: Any, wanted: LogFilter
) -> list[Log]:
    assert header.roots is not None
    encoded, _ = _proved_contents(client, header, header.roots, block, receipts)
    hashes = [keccak256(each) for each in encoded]
    subject = f"receipts of block {header.number}"
    return client.parsed(subject, lambda each: _logs(header, hashes, each, wanted), receipts)


def _proved_contents(
    client: RpcClient, header: BlockHeader, roots: BlockRoots, block: Any, receipts: Any
) -> tuple[list[bytes], list[bytes]]:
    """Return the encoded transactions and receipts of answers, proved by a header's roots."""
    subject = f"block {header.number}"
    if not isinstance(block, dict) or not isinstance(receipts, list):
        raise client.inconsistent(subject, "a block and its receipts", "none")
    named = client.parsed(subject, lambda each: {value["blockHash"] for value in each}, receipts)
    if {block.get("hash"), *named} != {hex0x(header.hash)}:
        raise client.inconsistent(subject, "the same block twice", "another one")
    subject = f"transactions of block {header.number}"
    transactions = block.get("transactions")
    encoded = client.parsed(subject, lambda each: list(map(encode_transaction, each)), transactions)
    _compare_roots(client, subject, encoded, roots.transactions)
    subject = f"receipts of block {header.number}"
    outcomes = client.parsed(subject, lambda each: list(map(encode_receipt, each)), receipts)
    _compare_roots(client, subject, outcomes, roots.receipts)
    return encoded, outcomes


def _compare_roots(
    client: RpcClient, subject: str, values: Sequence[bytes], expected: bytes
) -> None:
    if (found := trie_root(values)) != expected:
        raise Disproved(f"{subject} at {client.name}", f"the root {hex0x(expected)}", hex0x(found))


def _logs(
    header: BlockHeader, hashes: Sequence[bytes], receipts: Sequence[Any], wanted: LogFilter
) -> list[Log]:
    logs: list[Log] = []
    log_index = 0
    for index, (transaction_hash, receipt) in enumerate(zip(hashes, receipts, strict=True)):
        for value in receipt["logs"]:
            address = parse_bytes(value["address"], ADDRESS_LENGTH)
            topics = tuple(parse_bytes(each, HASH_LENGTH) for each in value["topics"])
            if wanted.takes(address, topics):
                data = parse_bytes(value["data"])
                place = (header.number, header.hash, transaction_hash, index, log_index)
                logs.append(Log(address, topics, data, *place))
            log_index += 1
    return logs

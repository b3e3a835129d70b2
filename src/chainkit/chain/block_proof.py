"""Proves what an endpoint says of a block: its header by the hash, all else by the header's roots.

A header's hash is the keccak256 of its fields. Two of them are the roots of tries over the block's
transactions and receipts (yellow paper, section 4.3): a transaction proves its own hash and place,
a receipt proves its logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from chainkit.chain.block_encoding import (
    encode_header,
    encode_receipt,
    encode_transaction,
    hardfork_fields,
    header_doubt,
)
from chainkit.chain.client import BATCH_SIZE, RpcClient
from chainkit.chain.completion import Completed, completed_receipt, completed_transaction
from chainkit.chain.logs import LogFilter
from chainkit.chain.transport import RpcCall
from chainkit.errors import Disproved, OversizedAnswer, Unprovable
from chainkit.ethereum.root import trie_root
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x, parse_bytes
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH, BlockHeader, BlockRoots, Log

_CALLS_PER_BLOCK: Final = 2
"""Its transactions and its receipts."""
_BLOCKS_PER_BATCH: Final = BATCH_SIZE // _CALLS_PER_BLOCK


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

    A chain may have fields in its headers that are not known here, and endpoints leave out what
    the newest hard fork added: then the header is returned without roots, and with the doubt.
    Raises Disproved where no field can be missing: the header has all that are known, or those of
    a later header that the endpoint proved.
    """
    encoded, doubt = _encoded_header(client, header, answer)
    if encoded is None:
        return replace(header, doubt=doubt)
    roots = BlockRoots(
        parse_bytes(answer["transactionsRoot"], HASH_LENGTH),
        parse_bytes(answer["receiptsRoot"], HASH_LENGTH),
    )
    return replace(header, roots=roots)


def _encoded_header(
    client: RpcClient, header: BlockHeader, answer: Mapping[str, Any]
) -> tuple[bytes | None, str]:
    """Return the RLP of a header, which hashes to what it says, or None and why not."""
    try:
        encoded = encode_header(answer)
    except Unprovable as error:
        return None, f"with {error.expected} expected as its {error.place}, and {error.got} told"
    fields, proved = hardfork_fields(answer), client.proved_header_fields
    if (found := keccak256(encoded)) == header.hash:
        proved[fields] = max(header.number, proved.get(fields, 0))
        return encoded, ""
    # Hard forks only add fields: below a proved header with the same ones, none can be missing.
    if proved.get(fields, -1) < header.number and (doubt := header_doubt(answer)):
        return None, doubt
    subject = f"block {header.number} at {client.name}"
    raise Disproved(subject, f"fields that hash to {hex0x(header.hash)}", hex0x(found))


def proved_logs(
    client: RpcClient, headers: Sequence[BlockHeader], wanted: LogFilter, chain_id: int
) -> Iterator[list[Log]]:
    """Yield for each of some blocks with roots its wanted logs, proved with their places.

    Reads all transactions and receipts of the blocks, some blocks at once. Raises Disproved where
    they do not have the header's roots, and Unprovable, which names the field, where one is left
    out, or for a type of transaction that is not known here: the blocks before are proved. Raises
    MethodUnavailable or RefusedRequest where the endpoint offers no receipts of blocks, and
    InconsistentAnswer where it now has another block at the height.
    """
    for start in range(0, len(headers), _BLOCKS_PER_BATCH):
        yield from _proved_logs(
            client, headers[start : start + _BLOCKS_PER_BATCH], wanted, chain_id
        )


def read_proved_block(client: RpcClient, header: BlockHeader, chain_id: int) -> ProvedBlock:
    """Return all of a block. Raises as ``proved_logs`` does.

    Raises Unprovable where the header has no roots, with the doubt.
    """
    subject = f"block {header.number}"
    if header.roots is None:
        raise Unprovable(subject, "a header that has its hash", f"one {header.doubt}")
    height = hex(header.number)
    block, receipts = _answers(
        client, [("eth_getBlockByNumber", (height, True)), ("eth_getBlockReceipts", (height,))]
    )
    contents = _proved_contents(client, header, header.roots, block, receipts, chain_id)
    encoded, doubt = _encoded_header(client, header, block)
    if encoded is None:
        raise Unprovable(subject, "a header that has its hash", f"one {doubt}")
    return ProvedBlock(encoded, *map(tuple, contents))


def _proved_logs(
    client: RpcClient, headers: Sequence[BlockHeader], wanted: LogFilter, chain_id: int
) -> Iterator[list[Log]]:
    heights = [hex(header.number) for header in headers]
    # By height: not every endpoint takes a hash for receipts.
    calls: list[RpcCall] = [("eth_getBlockByNumber", (height, True)) for height in heights]
    calls += [("eth_getBlockReceipts", (height,)) for height in heights]
    try:
        answers = _answers(client, calls)
    except OversizedAnswer:
        if len(headers) == 1:
            raise
        half = len(headers) // 2
        for part in (headers[:half], headers[half:]):
            yield from _proved_logs(client, part, wanted, chain_id)
        return
    blocks, receipts = answers[: len(headers)], answers[len(headers) :]
    for header, block, outcomes in zip(headers, blocks, receipts, strict=True):
        assert header.roots is not None
        encoded, _ = _proved_contents(client, header, header.roots, block, outcomes, chain_id)
        hashes = [keccak256(each) for each in encoded]
        yield _logs(header, hashes, outcomes, wanted)


def _answers(client: RpcClient, calls: Sequence[RpcCall]) -> list[Any]:
    """Return what an endpoint answers to a batch; the two calls of one block also each alone.

    A limit of a batch's bytes is none for a single answer.
    """
    try:
        return client.batch(calls)
    except OversizedAnswer:
        if len(calls) > _CALLS_PER_BLOCK:
            raise
    return [client.request(method, *params) for method, params in calls]


def _proved_contents(
    client: RpcClient,
    header: BlockHeader,
    roots: BlockRoots,
    block: Any,
    receipts: Any,
    chain_id: int,
) -> tuple[list[bytes], list[bytes]]:
    """Return the encoded transactions and receipts of answers, proved by a header's roots."""
    number = header.number
    subject = f"block {number}"
    if not isinstance(block, dict) or not isinstance(receipts, list):
        raise client.inconsistent(subject, "a block and its receipts", "none")
    named = client.parsed(
        subject, lambda each: {value.get("blockHash") for value in each}, receipts
    )
    if {block.get("hash"), *named - {None}} != {hex0x(header.hash)}:
        raise client.inconsistent(subject, "the same block twice", "another one")
    sent = _proved_part(
        client,
        "transaction",
        number,
        block.get("transactions"),
        lambda index, value: completed_transaction(value, chain_id),
        encode_transaction,
        roots.transactions,
    )
    if len(receipts) != len(sent.encoded):
        expected, got = f"{len(sent.encoded)} receipts", len(receipts)
        if not receipts:
            # Nodes that lost the receipts of a block answer so: that proves no lie.
            raise Unprovable(f"receipts of block {number}", expected, "none")
        if None in named:
            # Nothing says that these are of this block.
            raise client.inconsistent(f"receipts of block {number}", expected, got)
        raise Disproved(f"receipts of block {number} at {client.name}", expected, got)
    outcomes = _proved_part(
        client,
        "receipt",
        number,
        receipts,
        lambda index, value: completed_receipt(value, sent.completed[index].answer),
        encode_receipt,
        roots.receipts,
    )
    return sent.encoded, outcomes.encoded


@dataclass(frozen=True, slots=True)
class _Part:
    """The transactions or the receipts of a block."""

    completed: Sequence[Completed]
    encoded: list[bytes]


def _proved_part(
    client: RpcClient,
    kind: str,
    number: int,
    answers: Any,
    complete: Callable[[int, Any], Completed],
    encode: Callable[[Mapping[str, Any], str], bytes],
    root: bytes,
) -> _Part:
    """Return the transactions or receipts of a block completed and encoded; they have the root.

    Raises Unprovable where they lack a field, or have another root with a field that was assumed.
    """

    def read(values: Any) -> _Part:
        completed = [complete(index, value) for index, value in enumerate(values)]
        encoded = [
            encode(each.answer, f"{kind} {index} of block {number}")
            for index, each in enumerate(completed)
        ]
        return _Part(completed, encoded)

    subject = f"{kind}s of block {number}"
    part = client.parsed(subject, read, answers)
    if (found := trie_root(part.encoded)) != root:
        expected, got = f"the root {hex0x(root)}", hex0x(found)
        if assumed := dict.fromkeys(name for each in part.completed for name in each.assumed):
            raise Unprovable(subject, expected, f"{got} without {', '.join(assumed)}")
        raise Disproved(f"{subject} at {client.name}", expected, got)
    return part


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

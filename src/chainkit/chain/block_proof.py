"""Proves an endpoint's block: its header by the block's hash, its contents by the header's roots.

A header's hash is the keccak256 of its fields. Two of the fields are the roots of tries over the
block's transactions and receipts (yellow paper, section 4.3): a transaction proves its own hash and
place, a receipt proves its logs.
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
from chainkit.chain.block_receipts import receipts_of_blocks, single_receipts
from chainkit.chain.client import BATCH_SIZE, RpcClient
from chainkit.chain.completion import Completed, completed_receipt, completed_transaction
from chainkit.chain.logs import LogFilter
from chainkit.chain.transport import RpcCall
from chainkit.errors import Disproved, InconsistentAnswer, OversizedAnswer, Unprovable
from chainkit.ethereum.root import trie_root
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x, parse_bytes
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH, BlockHeader, BlockRoots, Log

_CALLS_PER_BLOCK: Final = 2
"""The block's transactions and receipts."""
_BLOCKS_PER_BATCH: Final = BATCH_SIZE // _CALLS_PER_BLOCK


@dataclass(frozen=True, slots=True)
class ProvedBlock:
    """A block whose header has the block's hash, and whose contents have the header's roots."""

    header: bytes
    """RLP of the header: its keccak256 is the block's hash."""
    transactions: tuple[bytes, ...]
    """EIP-2718 encodings, in the block's order."""
    receipts: tuple[bytes, ...]
    """EIP-2718 encodings, one for each transaction."""


def prove_header(client: RpcClient, header: BlockHeader, answer: Mapping[str, Any]) -> BlockHeader:
    """Return a header with its roots if the fields of its JSON hash to the hash in the answer.

    A chain may have header fields that are not known here, and endpoints leave out the fields of
    the newest hard fork: then the header is returned without roots, and with the doubt. Raises
    Disproved where no field can be missing: the header has all known fields, or those of a later
    header that the endpoint proved.
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
    """Return the RLP of a header that hashes to its own ``hash``, or None and the reason."""
    try:
        encoded = encode_header(answer)
    except Unprovable as error:
        return None, f"with {error.expected} expected as its {error.place}, and {error.got} told"
    fields, proved = hardfork_fields(answer), client.proved_header_fields
    if (found := keccak256(encoded)) == header.hash:
        proved[fields] = max(header.number, proved.get(fields, 0))
        return encoded, ""
    # Hard forks only add fields: below a proved header with the same fields, no field can be
    # missing.
    if proved.get(fields, -1) < header.number and (doubt := header_doubt(answer)):
        return None, doubt
    subject = f"block {header.number} at {client.name}"
    raise Disproved(subject, f"fields that hash to {hex0x(header.hash)}", hex0x(found))


def proved_logs(
    client: RpcClient, headers: Sequence[BlockHeader], wanted: LogFilter, chain_id: int
) -> Iterator[list[Log]]:
    """Yield for each of some blocks with roots its wanted logs, proved with their places.

    Reads all transactions and receipts of the blocks, some blocks at once. Raises Disproved where
    the contents do not have the header's roots. Raises Unprovable, which names the field, where a
    field is left out, or for a type of transaction that is not known here: the blocks before are
    proved. Raises MethodUnavailable or RefusedRequest where the endpoint offers no receipts, and
    InconsistentAnswer where the endpoint now has another block at the height.
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
    [block], [receipts] = _whole_blocks(client, [header.number], chain_id)
    contents = _proved_contents(client, header, header.roots, block, receipts, chain_id)
    encoded, doubt = _encoded_header(client, header, block)
    if encoded is None:
        raise Unprovable(subject, "a header that has its hash", f"one {doubt}")
    return ProvedBlock(encoded, *map(tuple, contents))


def _proved_logs(
    client: RpcClient, headers: Sequence[BlockHeader], wanted: LogFilter, chain_id: int
) -> Iterator[list[Log]]:
    try:
        blocks, receipts = _whole_blocks(client, [header.number for header in headers], chain_id)
    except OversizedAnswer:
        if len(headers) == 1:
            raise
        half = len(headers) // 2
        for part in (headers[:half], headers[half:]):
            yield from _proved_logs(client, part, wanted, chain_id)
        return
    for header, block, outcomes in zip(headers, blocks, receipts, strict=True):
        assert header.roots is not None
        encoded, _ = _proved_contents(client, header, header.roots, block, outcomes, chain_id)
        hashes = [keccak256(each) for each in encoded]
        yield _logs(header, hashes, outcomes, wanted)


def _whole_blocks(
    client: RpcClient, numbers: Sequence[int], chain_id: int
) -> tuple[list[Any], list[Any]]:
    """Return what an endpoint answers for blocks with their transactions, and for their receipts.

    By height: not every endpoint takes a hash for receipts.
    """
    bodies: list[RpcCall] = [("eth_getBlockByNumber", (hex(each), True)) for each in numbers]
    outcomes: list[RpcCall] = [("eth_getBlockReceipts", (hex(each),)) for each in numbers]

    def by_block() -> tuple[list[Any], list[Any]]:
        answers = _answers(client, [*bodies, *outcomes])
        return answers[: len(numbers)], answers[len(numbers) :]

    def one_by_one() -> tuple[list[Any], list[Any]]:
        blocks = _answers(client, bodies)
        hashes = [_hashes(client, *each, chain_id) for each in zip(numbers, blocks, strict=True)]
        return blocks, single_receipts(lambda part: _receipts(client, part), hashes)

    return receipts_of_blocks(client, by_block, one_by_one)


def _hashes(client: RpcClient, number: int, block: Any, chain_id: int) -> list[bytes]:
    """Return the hashes of a block's transactions, computed from their fields.

    Returns none where a hash cannot be computed: the proof of the transactions gives the reason.
    """
    try:
        return [keccak256(each) for each in _sent(client, number, block, chain_id).encoded]
    except (InconsistentAnswer, Unprovable):
        return []


def _receipts(client: RpcClient, hashes: Sequence[bytes]) -> list[Any]:
    """Return the receipts of transactions, None for an unknown one, in halves where need be."""
    calls: list[RpcCall] = [("eth_getTransactionReceipt", (hex0x(each),)) for each in hashes]
    try:
        return _answers(client, calls)
    except OversizedAnswer:
        if len(hashes) <= _CALLS_PER_BLOCK:
            raise
    half = len(hashes) // 2
    return [*_receipts(client, hashes[:half]), *_receipts(client, hashes[half:])]


def _answers(client: RpcClient, calls: Sequence[RpcCall]) -> list[Any]:
    """Return what an endpoint answers to a batch; two calls, as one block's, also each alone.

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
    subject, about_receipts = f"block {number}", f"receipts of block {number}"
    if not isinstance(block, dict) or not isinstance(receipts, list):
        raise client.inconsistent(subject, "a block and its receipts", "none")
    present = [each for each in receipts if each is not None]
    named = client.parsed(subject, lambda each: {value.get("blockHash") for value in each}, present)
    if {block.get("hash"), *named - {None}} != {hex0x(header.hash)}:
        raise client.inconsistent(subject, "the same block twice", "another one")
    sent = _sent(client, number, block, chain_id)
    _check_root(client, f"transactions of block {number}", sent, roots.transactions)
    if len(present) < len(receipts):
        # Nodes that lag, or that forgot old transactions, answer so: that proves no lie.
        got = f"null for {len(receipts) - len(present)} of them"
        raise Unprovable(about_receipts, f"{len(sent.encoded)} receipts", got)
    if len(receipts) != len(sent.encoded):
        expected, found = f"{len(sent.encoded)} receipts", len(receipts)
        if not receipts:
            # Nodes that lost the receipts of a block answer so: that proves no lie.
            raise Unprovable(about_receipts, expected, "none")
        if None in named:
            # Nothing shows that these receipts belong to this block.
            raise client.inconsistent(about_receipts, expected, found)
        raise Disproved(f"{about_receipts} at {client.name}", expected, found)
    outcomes = _part(
        client,
        "receipt",
        number,
        receipts,
        lambda index, value: completed_receipt(value, sent.completed[index].answer),
        encode_receipt,
    )
    _check_root(client, about_receipts, outcomes, roots.receipts)
    return sent.encoded, outcomes.encoded


@dataclass(frozen=True, slots=True)
class _Part:
    """The transactions or the receipts of a block."""

    completed: Sequence[Completed]
    encoded: list[bytes]


def _sent(client: RpcClient, number: int, block: Any, chain_id: int) -> _Part:
    """Return the transactions of a block, which may be any answer, completed and encoded."""
    return _part(
        client,
        "transaction",
        number,
        block.get("transactions") if isinstance(block, dict) else None,
        lambda index, value: completed_transaction(value, chain_id),
        encode_transaction,
    )


def _part(
    client: RpcClient,
    kind: str,
    number: int,
    answers: Any,
    complete: Callable[[int, Any], Completed],
    encode: Callable[[Mapping[str, Any], str], bytes],
) -> _Part:
    """Return the transactions or receipts of a block completed and encoded.

    Raises Unprovable where a field is missing.
    """

    def read(values: Any) -> _Part:
        completed = [complete(index, value) for index, value in enumerate(values)]
        encoded = [
            encode(each.answer, f"{kind} {index} of block {number}")
            for index, each in enumerate(completed)
        ]
        return _Part(completed, encoded)

    return client.parsed(f"{kind}s of block {number}", read, answers)


def _check_root(client: RpcClient, subject: str, part: _Part, root: bytes) -> None:
    """Raise Disproved for another root, or Unprovable if a field was assumed."""
    if (found := trie_root(part.encoded)) == root:
        return
    expected, got = f"the root {hex0x(root)}", hex0x(found)
    if assumed := dict.fromkeys(name for each in part.completed for name in each.assumed):
        raise Unprovable(subject, expected, f"{got} without {', '.join(assumed)}")
    raise Disproved(f"{subject} at {client.name}", expected, got)


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

"""Proves what an endpoint says of a block: its header by the hash, all else by the header's roots.

A header's hash is the keccak256 of its fields. Two of them are the roots of tries over the block's
transactions and receipts (yellow paper, section 4.3): a transaction proves its own hash and place,
a receipt proves its logs. The JSON is encoded straight to RLP, field by field, by the tables of
``chainkit.ethereum``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from chainkit.chain.client import BATCH_SIZE, RpcClient
from chainkit.chain.logs import LogFilter
from chainkit.chain.parsing import parse_integer, parse_list
from chainkit.chain.transport import RpcCall
from chainkit.errors import Disproved, OversizedAnswer, Unprovable
from chainkit.ethereum.header import FIRST_HEADER_COLUMNS, LATER_HEADER_COLUMNS
from chainkit.ethereum.receipt import RECEIPT_TYPES
from chainkit.ethereum.rlp_bytes import EMPTY, encoded_bytes, encoded_integer, encoded_list
from chainkit.ethereum.root import trie_root
from chainkit.ethereum.row import (
    ACCESS_LIST,
    ADDRESS,
    AUTHORIZATION_LIST,
    BLOOM,
    BYTES,
    FLAG,
    HASH,
    HASHES,
    INTEGER,
    POW_NONCE,
    UINT256,
    Column,
    Kind,
)
from chainkit.ethereum.transaction import COLUMNS_BY_TYPE, LEGACY, OPTIMISM_DEPOSIT
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x, parse_bytes
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH, BlockHeader, BlockRoots, Log

_BLOCKS_PER_BATCH: Final = BATCH_SIZE // 2
"""Two requests for each: its transactions and its receipts."""

Encode = Callable[[Any], bytes]
"""Makes RLP of a value of JSON. Raises KeyError, TypeError or ValueError where it is none such."""

_Field = tuple[str, Encode, bytes | None]
"""A name in the JSON, its encoding, and the RLP of a null if null has a meaning."""


def _fixed(length: int) -> Encode:
    return lambda text: encoded_bytes(parse_bytes(text, length))


def _integer(text: str) -> bytes:
    return encoded_integer(parse_integer(text))


def _flag(value: bool) -> bytes:
    if not isinstance(value, bool):
        raise TypeError("expected true or false")
    return b"\x01" if value else EMPTY


def _hashes(values: Iterable[str]) -> bytes:
    return encoded_list(
        [encoded_bytes(parse_bytes(each, HASH_LENGTH)) for each in parse_list(values)]
    )


def _access_list(values: Iterable[Mapping[str, Any]]) -> bytes:
    return encoded_list(
        [
            encoded_list([_ADDRESS(each["address"]), _hashes(each["storageKeys"])])
            for each in parse_list(values)
        ]
    )


def _authorizations(values: Iterable[Mapping[str, Any]]) -> bytes:
    return encoded_list([_authorization(each) for each in parse_list(values)])


def _authorization(value: Mapping[str, Any]) -> bytes:
    # Some endpoints still write the parity as ``v``, its name in EIP-7702's drafts.
    parity = value["v"] if value.get("yParity") is None else value["yParity"]
    numbers = (value["nonce"], parity, value["r"], value["s"])
    return encoded_list(
        [_integer(value["chainId"]), _ADDRESS(value["address"]), *map(_integer, numbers)]
    )


_ADDRESS: Final = _fixed(ADDRESS_LENGTH)

_ENCODINGS: Final[Mapping[Kind, Encode]] = {
    ADDRESS: _ADDRESS,
    HASH: _fixed(HASH_LENGTH),
    BLOOM: _fixed(256),
    POW_NONCE: _fixed(8),
    BYTES: lambda text: encoded_bytes(parse_bytes(text)),
    INTEGER: _integer,
    UINT256: _integer,
    FLAG: _flag,
    HASHES: _hashes,
    ACCESS_LIST: _access_list,
    AUTHORIZATION_LIST: _authorizations,
}

_TRANSACTION_NAMES: Final = {
    "from_address": "from",
    "to_address": "to",
    "gas_limit": "gas",
    "is_system_transaction": "isSystemTx",
}
"""Where the JSON of a transaction does not name a column in camelCase."""


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _fields(columns: Iterable[Column], names: Mapping[str, str]) -> tuple[_Field, ...]:
    return tuple(
        (
            names.get(column.name) or _camel_case(column.name),
            _ENCODINGS[column.kind],
            # Only bytes stand for nothing, not a list.
            encoded_bytes(column.null) if isinstance(column.null, bytes) else None,
        )
        for column in columns
    )


_FIRST_FIELDS: Final = _fields(FIRST_HEADER_COLUMNS, {})
_LATER_FIELDS: Final = _fields(LATER_HEADER_COLUMNS, {})
_TRANSACTION_FIELDS: Final = {
    type_: _fields(columns, _TRANSACTION_NAMES) for type_, columns in COLUMNS_BY_TYPE.items()
}

_NOT_HASHED: Final = frozenset(
    {
        *("hash", "size", "totalDifficulty", "transactions", "uncles", "withdrawals"),
        # Arbitrum shows parts of extraData and mixHash under names of their own.
        *("l1BlockNumber", "sendCount", "sendRoot"),
    }
)
_HEADER_NAMES: Final = _NOT_HASHED | {name for name, _, _ in (*_FIRST_FIELDS, *_LATER_FIELDS)}

_STATUSES: Final = {"0x0": EMPTY, "0x1": b"\x01"}
_BLOOM_OF_RECEIPT: Final = _ENCODINGS[BLOOM]


def prove_header(client: RpcClient, header: BlockHeader, answer: Mapping[str, Any]) -> BlockHeader:
    """Return a header with its roots if the fields of its JSON hash to what the endpoint says.

    A chain may have fields in its headers that are not known here: then the header is returned
    without roots. Raises Disproved where all fields are known, and hash to something else.
    """
    later = [field for field in _LATER_FIELDS if answer.get(field[0]) is not None]
    if any(answer.get(name) is None for name, _, _ in _FIRST_FIELDS):
        return header
    subject = f"block {header.number}"
    data = client.parsed(subject, lambda value: _encoded(value, (*_FIRST_FIELDS, *later)), answer)
    if (found := keccak256(data)) != header.hash:
        if any(name not in _HEADER_NAMES for name in answer):
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
    subject = f"block {header.number}"
    if not isinstance(block, dict) or not isinstance(receipts, list):
        raise client.inconsistent(subject, "a block and its receipts", "none")
    named = client.parsed(subject, lambda each: {value["blockHash"] for value in each}, receipts)
    if {block.get("hash"), *named} != {hex0x(header.hash)}:
        raise client.inconsistent(subject, "the same block twice", "another one")
    subject = f"transactions of block {header.number}"
    transactions = block.get("transactions")
    encoded = client.parsed(subject, lambda each: list(map(_transaction, each)), transactions)
    _compare_roots(client, subject, encoded, header.roots.transactions)
    subject = f"receipts of block {header.number}"
    outcomes = client.parsed(subject, lambda each: list(map(_receipt, each)), receipts)
    _compare_roots(client, subject, outcomes, header.roots.receipts)
    hashes = [keccak256(each) for each in encoded]
    return client.parsed(subject, lambda each: _logs(header, hashes, each, wanted), receipts)


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


def _transaction(answer: Mapping[str, Any]) -> bytes:
    """Return the EIP-2718 encoding of a transaction; its keccak256 is the transaction's hash."""
    type_ = _type(answer)
    if (fields := _TRANSACTION_FIELDS.get(type_)) is None:
        raise Unprovable("transaction", "a type that this version knows", f"{type_:#x}", "type")
    return _typed(type_, _encoded(answer, fields))


def _receipt(answer: Mapping[str, Any]) -> bytes:
    """Return the EIP-2718 encoding of a receipt, as the receipts root commits to it."""
    type_ = _type(answer)
    if type_ not in RECEIPT_TYPES:
        raise Unprovable("receipt", "a type that this version knows", f"{type_:#x}", "type")
    if answer.get("status") is None:
        raise Unprovable("receipt", "a status (EIP-658)", "none", "status")
    items = [
        _STATUSES[answer["status"]],
        _integer(answer["cumulativeGasUsed"]),
        _BLOOM_OF_RECEIPT(answer["logsBloom"]),
        encoded_list([_log(each) for each in parse_list(answer["logs"])]),
    ]
    # Until Canyon a receipts root left out the nonce, though endpoints tell it since Regolith.
    if type_ == OPTIMISM_DEPOSIT and answer.get("depositReceiptVersion") is not None:
        items += [_integer(answer["depositNonce"]), _integer(answer["depositReceiptVersion"])]
    return _typed(type_, encoded_list(items))


def _log(answer: Mapping[str, Any]) -> bytes:
    return encoded_list(
        [
            _ADDRESS(answer["address"]),
            _hashes(answer["topics"]),
            encoded_bytes(parse_bytes(answer["data"])),
        ]
    )


def _type(answer: Mapping[str, Any]) -> int:
    # Before Berlin there was one type, and no field for it.
    type_ = answer.get("type")
    return LEGACY if type_ is None else parse_integer(type_)


def _typed(type_: int, data: bytes) -> bytes:
    return data if type_ == LEGACY else bytes([type_]) + data


def _encoded(answer: Mapping[str, Any], fields: Iterable[_Field]) -> bytes:
    items: list[bytes] = []
    for name, encode, null in fields:
        value = answer.get(name)
        if value is not None:
            items.append(encode(value))
        elif null is not None:
            items.append(null)
        else:
            raise KeyError(name)
    return encoded_list(items)

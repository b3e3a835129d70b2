"""A chain export: headers, full receipts and all logs of a range, doubted block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from chainkit import tables
from chainkit.chain import Endpoint, parse_bytes, parse_header, parse_log
from chainkit.cli.options import hex0x
from chainkit.counter import read_own_counter
from chainkit.deployment import DeploymentRecord
from chainkit.errors import ConfigurationError, InconsistentAnswer
from chainkit.exports import ExportWriter, Manifest
from chainkit.types import BlockHeader, BlockReference
from chainkit_jobs.sequence_check import SequenceCheck

CHUNK_BLOCKS: Final = 100
"""Blocks that are asked for, checked and written together."""

SCHEMAS: Final = {"blocks": tables.BLOCKS, "receipts": tables.RECEIPTS, "logs": tables.LOGS}

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BlockRows:
    """One block as rows of the three tables."""

    header: BlockHeader
    row: Row
    receipts: list[Row]
    logs: list[Row]


def resolve_range(
    endpoint: Endpoint,
    record: DeploymentRecord,
    head: BlockHeader,
    from_block: int | None,
    to_block: int | None,
) -> tuple[int, BlockReference]:
    """Return the first block and the last one, pinned by its hash.

    Without bounds: from the first block that can hold a log of the contracts, to the head.
    Raises ConfigurationError for a range that is empty or ends above the head.
    """
    first = record.first_block if from_block is None else from_block
    last = head.number if to_block is None else to_block
    if last > head.number:
        raise ConfigurationError("--to-block", f"at most the head, {head.number}", last)
    if first > last:
        raise ConfigurationError("--from-block", f"at most the last block, {last}", first)
    end = head if last == head.number else endpoint.header(last)
    return first, end.reference


def export_chain(
    endpoint: Endpoint,
    record: DeploymentRecord,
    first_block: int,
    end: BlockReference,
    directory: Path,
    progress: Callable[[int], None] = lambda blocks: None,
) -> Manifest:
    """Write a range of blocks, both ends included, as the chain that ends in ``end``.

    Raises InconsistentAnswer, and leaves nothing behind, where the answers contradict each
    other or the contract's counter, or the chain is no longer the one that was pinned: asking
    again may help.
    """
    with ExportWriter(directory, SCHEMAS) as writer:
        parent: BlockHeader | None = None
        # Read now: state of the last block may be pruned by the time a long export ends.
        after = read_own_counter(endpoint, record, end)
        before = read_own_counter(endpoint, record, _parent(endpoint.header(first_block)))
        sequence = SequenceCheck(endpoint, record, before)
        for start in range(first_block, end.number + 1, CHUNK_BLOCKS):
            numbers = range(start, min(start + CHUNK_BLOCKS, end.number + 1))
            blocks = list(fetch_blocks(endpoint, numbers))
            for block in blocks:
                _check_link(endpoint, parent, block.header)
                parent = block.header
            sequence.add(row for block in blocks for row in block.logs)
            # One write per chunk: each becomes a row group of the Parquet file.
            writer.write("blocks", [block.row for block in blocks])
            writer.write("receipts", [row for block in blocks for row in block.receipts])
            writer.write("logs", [row for block in blocks for row in block.logs])
            progress(len(numbers))
        _check_pinned(endpoint, end, parent)
        sequence.finish(after, end)
        return writer.finish(
            kind="chain",
            chain_id=record.chain_id,
            genesis_hash=hex0x(record.genesis_hash),
            contracts={contract.name: hex0x(contract.address) for contract in record.contracts},
            from_block=first_block,
            to_block=end.number,
            to_block_hash=hex0x(end.hash),
            first_block=record.first_block,
            first_payload_block=min(contract.block for contract in record.sequenced_logs),
            sequence_before=before,
            sequence_after=after,
        )


def fetch_blocks(endpoint: Endpoint, numbers: Sequence[int]) -> Iterator[BlockRows]:
    """Return the blocks of a range, each proved to be consistent in itself."""
    headers = endpoint.batch([("eth_getBlockByNumber", (hex(n), False)) for n in numbers])
    receipts = endpoint.batch([("eth_getBlockReceipts", (hex(n),)) for n in numbers])
    for number, header, block_receipts in zip(numbers, headers, receipts, strict=True):
        subject = f"block {number} at {endpoint.name}"
        if header is None or block_receipts is None:
            raise InconsistentAnswer(subject, "a block and its receipts", "nothing")
        try:
            yield parse_block(subject, number, header, block_receipts)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InconsistentAnswer(subject, "well-formed fields", repr(error)) from error


def parse_block(subject: str, number: int, block: Any, receipts: Any) -> BlockRows:
    """Build the rows of a block from what an endpoint answered.

    Raises InconsistentAnswer where height, block hash, the transactions and their receipts, or
    the numbering of the logs do not fit together; KeyError, TypeError or ValueError where a
    field is missing or malformed.
    """
    header = parse_header(block)
    if header.number != number:
        raise InconsistentAnswer(subject, f"height {number}", header.number)
    transactions = [parse_bytes(value, 32) for value in block["transactions"]]
    if len(receipts) != len(transactions):
        raise InconsistentAnswer(subject, f"{len(transactions)} receipts", len(receipts))
    receipt_rows: list[Row] = []
    log_rows: list[Row] = []
    for index, (transaction, receipt) in enumerate(zip(transactions, receipts, strict=True)):
        row = _receipt_row(receipt)
        place = f"receipt {index}"
        _require(subject, place, "block hash", header.hash, row["block_hash"])
        _require(subject, place, "transaction", transaction, row["transaction_hash"])
        _require(subject, place, "transaction index", index, row["transaction_index"])
        receipt_rows.append(row)
        for log in receipt["logs"]:
            log_row = _log_row(log)
            place = f"log {len(log_rows)}"
            _require(subject, place, "block hash", header.hash, log_row["block_hash"])
            _require(subject, place, "transaction", transaction, log_row["transaction_hash"])
            _require(subject, place, "log index", len(log_rows), log_row["log_index"])
            log_rows.append(log_row)
    return BlockRows(header, _block_row(header, block), receipt_rows, log_rows)


def _require(subject: str, place: str, what: str, expected: Any, got: Any) -> None:
    if expected != got:
        shown = [hex0x(value) if isinstance(value, bytes) else value for value in (expected, got)]
        raise InconsistentAnswer(subject, f"{what} {shown[0]}", shown[1], place)


def _block_row(header: BlockHeader, block: Any) -> Row:
    base_fee = block.get("baseFeePerGas")
    return {
        "number": header.number,
        "hash": header.hash,
        "parent_hash": header.parent_hash,
        "timestamp": header.timestamp,
        "receipts_root": parse_bytes(block["receiptsRoot"], 32),
        "logs_bloom": parse_bytes(block["logsBloom"], 256),
        "gas_limit": int(block["gasLimit"], 16),
        "gas_used": int(block["gasUsed"], 16),
        "base_fee_per_gas": None if base_fee is None else int(base_fee, 16),
        "transaction_count": len(block["transactions"]),
    }


def _receipt_row(receipt: Any) -> Row:
    return {
        "block_number": int(receipt["blockNumber"], 16),
        "block_hash": parse_bytes(receipt["blockHash"], 32),
        "transaction_hash": parse_bytes(receipt["transactionHash"], 32),
        "transaction_index": int(receipt["transactionIndex"], 16),
        "type": int(receipt.get("type") or "0x0", 16),
        "status": int(receipt["status"], 16),
        "from_address": parse_bytes(receipt["from"], 20),
        "to_address": _optional_address(receipt.get("to")),
        "contract_address": _optional_address(receipt.get("contractAddress")),
        "gas_used": int(receipt["gasUsed"], 16),
        "cumulative_gas_used": int(receipt["cumulativeGasUsed"], 16),
        "effective_gas_price": int(receipt["effectiveGasPrice"], 16),
    }


def _log_row(value: Any) -> Row:
    log = parse_log(value)
    row = {name: getattr(log, name) for name in tables.LOGS.names}
    return row | {"topics": list(log.topics)}


def _optional_address(value: str | None) -> bytes | None:
    return None if value is None else parse_bytes(value, 20)


def _parent(header: BlockHeader) -> BlockReference:
    return BlockReference(header.number - 1, header.parent_hash)


def _check_link(endpoint: Endpoint, parent: BlockHeader | None, header: BlockHeader) -> None:
    if parent is not None and header.parent_hash != parent.hash:
        raise _changed(endpoint, parent.number, parent.hash, header.parent_hash)


def _check_pinned(endpoint: Endpoint, end: BlockReference, last: BlockHeader | None) -> None:
    """The block that was pinned must be the one that was read, and still stand."""
    if last is None or last.hash != end.hash:
        raise _changed(endpoint, end.number, end.hash, last.hash if last else b"")
    now = endpoint.find_header(end.number)
    if now is None or now.hash != end.hash:
        raise _changed(endpoint, end.number, end.hash, now.hash if now else b"")


def _changed(endpoint: Endpoint, number: int, expected: bytes, got: bytes) -> InconsistentAnswer:
    subject = f"the chain at {endpoint.name}"
    shown = hex0x(got) if got else "no such block"
    return InconsistentAnswer(
        subject,
        f"block {hex0x(expected)} throughout the export",
        f"{shown}: the chain was reorganised meanwhile, export it again",
        f"block {number}",
    )

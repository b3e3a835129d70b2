"""The rows of a chain export that evidence needs: whole blocks for a few, headers for all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from chainkit.errors import StoreError, Unprovable
from chainkit.ethereum import header_bytes, inclusion_proofs, receipt_bytes, transaction_bytes
from chainkit.evidence.emission import MinedTransaction
from chainkit.evidence.inclusion import TransactionProof
from chainkit.exports import files_of
from chainkit.exports.tables import CHAIN_TABLES
from chainkit.protocol.events import NODE_UPDATED_TOPIC, decode_node_updated
from chainkit.types import BlockHeader, Receipt
from chainkit_jobs.sources import Export, log_from_row

ABSENCE: Final = "the chain export does not contain"
"""As in EnvelopeJudge, of a transaction that is not in an export."""

_BLOCKS_AT_ONCE: Final = 64
_HEADERS_AT_ONCE: Final = 4096
_ROWS_AT_ONCE: Final = 1024

Row = dict[str, Any]


class TransactionPosition(NamedTuple):
    """A transaction's position in the order of the chain."""

    block_number: int
    transaction_index: int
    transaction_hash: bytes
    """32 bytes."""


@dataclass(frozen=True, slots=True)
class ChainRows:
    """Reads the tables of a chain export without a cluster: evidence is narrow."""

    chain: Export

    def places_of(self, hashes: Collection[bytes]) -> list[TransactionPosition]:
        """Return the positions of the transactions that the export holds, in the chain's order."""
        wanted = pa.array(sorted(hashes), pa.binary())
        names = ("block_number", "transaction_index", "transaction_hash")
        condition = ds.field("transaction_hash").isin(wanted)
        return sorted(
            TransactionPosition(*row.values())
            for row in self._rows("transactions", condition, names)
        )

    def registrations(self, node_registry: bytes) -> dict[int, list[TransactionPosition]]:
        """Return by node id where the registry wrote the node's entry, in the chain's order."""
        condition = ds.field("address") == pa.scalar(node_registry, pa.binary())
        found: dict[int, set[TransactionPosition]] = defaultdict(set)
        for row in self._rows("logs", condition, CHAIN_TABLES["logs"].names):
            log = log_from_row(row)
            if log.topics == (NODE_UPDATED_TOPIC,):
                place = TransactionPosition(
                    log.block_number, log.transaction_index, log.transaction_hash
                )
                found[decode_node_updated(log).node_id].add(place)
        return {node_id: sorted(places) for node_id, places in found.items()}

    def find(self, transaction_hash: bytes) -> MinedTransaction | None:
        """Return a transaction from the export, with nothing proved; None where it is not there.

        Raises StoreError where the export has only a part of the transaction.
        """
        equals = ds.field("transaction_hash") == pa.scalar(transaction_hash, pa.binary())
        call = next(self._rows("transactions", equals, ("block_number", "input")), None)
        if call is None:
            return None
        at_block = ds.field("number") == call["block_number"]
        header = ("number", "hash", "parent_hash", "timestamp")
        block = next(self._rows("blocks", at_block, header), None)
        receipt = next(self._rows("receipts", equals, ("status", "to_address")), None)
        if block is None or receipt is None:
            subject = f"transaction 0x{transaction_hash.hex()}"
            raise StoreError(subject, "its block and its receipt", "one alone")
        logs = self._rows("logs", equals, CHAIN_TABLES["logs"].names)
        return MinedTransaction(
            Receipt(
                transaction_hash,
                receipt["status"] == 1,
                receipt["to_address"],
                BlockHeader(**block),
                tuple(map(log_from_row, sorted(logs, key=lambda row: row["log_index"]))),
            ),
            call["input"],
        )

    def headers(self, first_block: int) -> Iterator[bytes]:
        """Return the RLP of each header from a height on.

        Raises StoreError where a height is missing or comes out of order.
        """
        number = first_block
        names = CHAIN_TABLES["blocks"].names
        condition = ds.field("number") >= first_block
        last = self.chain.manifest.to_block
        for row in self._rows("blocks", condition, names, (first_block, last), _HEADERS_AT_ONCE):
            if row["number"] != number:
                expected = f"block {number}, as heights grow by one"
                raise StoreError(f"export {self.chain.directory}", expected, row["number"])
            yield header_bytes(row)
            number += 1

    def proofs(
        self, places: Sequence[TransactionPosition]
    ) -> Iterator[tuple[int, list[TransactionProof], str | None]]:
        """Return for each block of some places, in order, the proofs of its transactions.

        Where the export lacks data to which the block's roots commit, there are no proofs, but a
        sentence with the reason. Raises MalformedData for rows that do not fit their columns.
        """
        by_block: dict[int, list[TransactionPosition]] = defaultdict(list)
        for place in places:
            by_block[place.block_number].append(place)
        numbers = iter(sorted(by_block))
        while chunk := list(islice(numbers, _BLOCKS_AT_ONCE)):
            tables = {
                table: self._by_block(table, chunk)
                for table in ("transactions", "receipts", "logs")
            }
            for number in chunk:
                rows = [tables[table].get(number, []) for table in tables]
                try:
                    yield number, _proofs(by_block[number], *rows), None
                except Unprovable as error:
                    yield number, [], f"block {number} cannot be proved: {error}"

    def _by_block(self, table: str, numbers: Sequence[int]) -> dict[int, list[Row]]:
        """Return the rows of some blocks by height, in the block's order."""
        column = ds.field("block_number")
        # The ends let Parquet's statistics pass over what lies outside; a list of values does not.
        condition = (column >= numbers[0]) & (column <= numbers[-1]) & column.isin(numbers)
        found: dict[int, list[Row]] = defaultdict(list)
        names, span = CHAIN_TABLES[table].names, (numbers[0], numbers[-1])
        for row in self._rows(table, condition, names, span):
            found[row["block_number"]].append(row)
        index = "log_index" if table == "logs" else "transaction_index"
        for rows in found.values():
            rows.sort(key=lambda row: row[index])
        return found

    def _rows(
        self,
        table: str,
        condition: ds.Expression,
        names: Sequence[str],
        span: tuple[int, int] | None = None,
        at_once: int = _ROWS_AT_ONCE,
    ) -> Iterator[Row]:
        try:
            # One file after another: a scan of several files at once would mix their order.
            for path in self._paths(table, span or (0, self.chain.manifest.to_block)):
                dataset = ds.dataset(path, schema=CHAIN_TABLES[table], format="parquet")
                batches = dataset.to_batches(
                    columns=list(names), filter=condition, batch_size=at_once
                )
                for batch in batches:
                    yield from batch.to_pylist()
        except (OSError, pa.ArrowException) as error:
            subject = f"export {self.chain.directory}"
            raise StoreError(subject, f"the table {table}", error) from error

    def _paths(self, table: str, span: tuple[int, int]) -> list[Path]:
        """Return the files of a table that may hold blocks of a span, in their order."""
        files = self.chain.manifest.files
        first, last = span
        return [
            self.chain.directory.resolve() / name
            for name in files_of(self.chain.manifest, table)
            if files[name].get("from_block", first) <= last
            and files[name].get("to_block", last) >= first
        ]


def _proofs(
    places: Sequence[TransactionPosition],
    transactions: Sequence[Row],
    receipts: Sequence[Row],
    logs: Sequence[Row],
) -> list[TransactionProof]:
    logs_of: dict[int, list[Row]] = defaultdict(list)
    for log in logs:
        logs_of[log["transaction_index"]].append(log)
    indexes = [place.transaction_index for place in places]
    encoded = [transaction_bytes(row) for row in transactions]
    outcomes = [receipt_bytes(row, logs_of[row["transaction_index"]]) for row in receipts]
    _, transaction_proofs = inclusion_proofs(encoded, indexes)
    _, receipt_proofs = inclusion_proofs(outcomes, indexes)
    return [
        TransactionProof(*place, transaction_proofs[index], receipt_proofs[index])
        for place, index in zip(places, indexes, strict=True)
    ]

"""An opened bundle: its files are whole, and its headers lead to the trusted block."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chainkit.documents.files import unreadable
from chainkit.documents.untrusted import check_file, lines_of, open_file, read_small
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.evidence.bundle import (
    BUNDLE_NAME,
    FINDINGS_NAME,
    HEADERS_NAME,
    REPORTS_NAME,
    TRANSACTIONS_NAME,
    Bundle,
    parse_bundle,
)
from chainkit.evidence.emission import MinedTransaction, registry_entries
from chainkit.evidence.findings import BundledFinding, parse_finding
from chainkit.evidence.headers import Advance, ProvedHeaders, prove_headers
from chainkit.evidence.inclusion import TransactionProof, parse_proof, proved_transaction
from chainkit.text.hexadecimal import hex0x
from chainkit.types import BlockReference, Node

LARGEST_PAGE: Final = 2**26
"""Bytes of ``bundle.json``, which grows only with what persons did to the registry."""


def read_bundle(directory: Path) -> Bundle:
    """Return a bundle's own page, with nothing proved.

    Raises ConfigurationError where the folder has no page, MalformedData where the page is
    malformed.
    """
    return parse_bundle(read_small(directory / BUNDLE_NAME, LARGEST_PAGE))


def check_files(directory: Path, bundle: Bundle, advance: Advance = lambda read: None) -> None:
    """Raise MalformedData unless the files are those that the bundle lists."""
    for name, file in bundle.files.items():
        check_file(directory / name, file.bytes, file.sha256, advance)


class ProvedTransactions:
    """The transactions of a bundle, each read and proved when it is asked for."""

    def __init__(self, path: Path, offsets: dict[bytes, int], headers: ProvedHeaders) -> None:
        """Take a file, the offset of each transaction's line, and the headers."""
        self._path = path
        self._offsets = offsets
        self._headers = headers
        self._latest: tuple[bytes, MinedTransaction] | None = None

    def __len__(self) -> int:
        """How many there are."""
        return len(self._offsets)

    def find(self, transaction_hash: bytes) -> MinedTransaction | None:
        """Return a transaction that is part of the chain, None where the bundle does not hold it.

        Raises MalformedData where the transaction is not part of the chain.
        """
        # A finding asks for the same transaction twice: for the chain's payload, and for the served
        # one.
        if self._latest is None or self._latest[0] != transaction_hash:
            transaction = self._proved(transaction_hash)
            if transaction is None:
                return None
            self._latest = (transaction_hash, transaction)
        return self._latest[1]

    def _proved(self, transaction_hash: bytes) -> MinedTransaction | None:
        offset = self._offsets.get(transaction_hash)
        if offset is None:
            return None
        with open_file(self._path) as file:
            file.seek(offset)
            _, line = next(lines_of(file, TRANSACTIONS_NAME), (0, b""))
        proof = parse_proof(line, f"{TRANSACTIONS_NAME}, byte {offset}")
        if proof.transaction_hash != transaction_hash:
            raise MalformedData(str(self._path), "a file that nobody writes to", "a changed one")
        return proved_transaction(proof, self._headers[proof.block_number])


def open_transactions(
    directory: Path, first_block: int, trusted: BlockReference, advance: Advance
) -> ProvedTransactions:
    """Open the transactions of a bundle, whose headers must lead to a trusted block.

    Raises MalformedData where the headers do not, or where the lines are not in the chain's order.
    """
    path = directory / TRANSACTIONS_NAME
    offsets: dict[bytes, int] = {}
    blocks: set[int] = set()
    for offset, proof in _proofs(path, advance):
        if proof.transaction_hash in offsets:
            subject = hex0x(proof.transaction_hash)
            raise MalformedData(subject, "one place", "another", TRANSACTIONS_NAME)
        offsets[proof.transaction_hash] = offset
        blocks.add(proof.block_number)
    headers = prove_headers(directory / HEADERS_NAME, first_block, trusted, blocks, advance)
    return ProvedTransactions(path, offsets, headers)


def _proofs(path: Path, advance: Advance) -> Iterator[tuple[int, TransactionProof]]:
    before = (-1, -1)
    with open_file(path) as file:
        for offset, line in lines_of(file, TRANSACTIONS_NAME):
            place = f"{TRANSACTIONS_NAME}, byte {offset}"
            proof = parse_proof(line, place)
            if proof.place <= before:
                expected = f"a place after transaction {before[1]} of block {before[0]}"
                raise MalformedData("transaction", expected, "an earlier one", place)
            before = proof.place
            yield offset, proof
            advance(len(line))


@dataclass(frozen=True, slots=True)
class OpenBundle:
    """A bundle and what follows from the trusted block."""

    directory: Path
    bundle: Bundle
    transactions: ProvedTransactions

    def findings(self, advance: Advance = lambda read: None) -> Iterator[BundledFinding]:
        """Return the findings, in the order of the audit.

        Raises MalformedData for a line that is none, one about another node, or a wrong count.
        """
        counts = [0, 0]
        with open_file(self.directory / FINDINGS_NAME) as file:
            for offset, line in lines_of(file, FINDINGS_NAME):
                finding = parse_finding(line, f"{FINDINGS_NAME}, byte {offset}")
                if finding.node_id != self.bundle.node_id:
                    expected = f"node {self.bundle.node_id}"
                    raise MalformedData(finding.name, expected, f"node {finding.node_id}")
                counts[0] += 1
                counts[1] += finding.unsigned_report_sha256 is not None
                yield finding
                advance(len(line))
        expected_counts = [self.bundle.findings, self.bundle.proving_themselves]
        if counts != expected_counts:
            words = "{} findings, {} of which prove themselves"
            expected = words.format(*expected_counts)
            raise MalformedData("bundle", expected, words.format(*counts), FINDINGS_NAME)


def registered_node(
    transactions: ProvedTransactions,
    hashes: Sequence[bytes],
    node_registry: bytes,
    node_id: int,
) -> Node | None:
    """Return a node by the registry's last log about it among some transactions, or None.

    ``node_registry`` is the contract's address (20 bytes), never the bundle's word. If the bundle
    leaves out a later change of status, nothing shows it; the key never changes (§3.1.1). Raises
    MalformedData where a transaction is missing or out of the chain's order, or where two logs have
    different keys.
    """
    entries: list[Node] = []
    before = (-1, -1)
    for hash_ in hashes:
        transaction = transactions.find(hash_)
        subject = f"transaction 0x{hash_.hex()}"
        if transaction is None:
            raise MalformedData(subject, "its proof, as it is named", "none", BUNDLE_NAME)
        place = _place_of(transaction)
        if place <= before:
            raise MalformedData(subject, "the chain's order", "an earlier one", BUNDLE_NAME)
        before = place
        entries += registry_entries(transaction, node_registry, node_id)
    if len({entry.signing_key for entry in entries}) > 1:
        expected = "one key, which never changes"
        raise MalformedData(f"node {node_id}", expected, "several", BUNDLE_NAME)
    return entries[-1] if entries else None


def _place_of(transaction: MinedTransaction) -> tuple[int, int]:
    receipt = transaction.receipt
    return receipt.block.number, receipt.logs[0].transaction_index if receipt.logs else -1


def report_names(directory: Path) -> frozenset[str]:
    """Return the names of all files in the folder of the findings' reports.

    Raises ConfigurationError where there is no such folder.
    """
    path = directory / REPORTS_NAME
    try:
        return frozenset(os.listdir(path))
    except OSError as error:
        subject = f"bundle folder {path}"
        raise unreadable(ConfigurationError, subject, error, "a folder") from error

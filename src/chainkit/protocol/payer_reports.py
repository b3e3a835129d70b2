"""Payer reports: what an originator's envelopes of a range of ids cost each payer (ADR 56).

The originator signs a report, and any other node computes it again from its own envelopes: equal
envelopes give equal bytes. The signature covers the Merkle root of the totals, not the totals: so a
payer proves its own debt without the other payers' totals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from chainkit.errors import InvalidSignature, MalformedData
from chainkit.protocol.charges import ADDRESS_LENGTH
from chainkit.protocol.merkle import merkle_proof, merkle_root, verify_merkle_proof
from chainkit.protocol.proto import node_api_pb2
from chainkit.signatures import (
    PAYER_ATTESTATION_LABEL,
    PAYER_REPORT_LABEL,
    SigningKey,
    keccak256,
    recover_public_key,
)

MOST_IDS: Final = 1_000_000
"""Sequence ids of one report."""

MOST_PAYERS: Final = 10_000
"""Payers of one report: some 450 kB."""

MOST_MISSING: Final = 1_000
"""Runs of missing ids of one report."""

MOST_ATTESTATIONS: Final = 1_000
"""More than any registry has nodes."""

_SUBJECT: Final = "payer report"
_WORD: Final = 32
_LARGEST: Final = 2**63 - 1


class PayerTotal(NamedTuple):
    """One payer's debt for a range."""

    payer: bytes
    """The address of 20 bytes."""
    messages: int
    bytes: int
    byte_days: int
    """The sum, over messages, of bytes times days."""


@dataclass(frozen=True)
class PayerReport:
    """The contents of a report; nothing is proved."""

    originator_id: int
    first_id: int
    last_id: int
    """Both ends of the range are included."""
    missing: Sequence[range]
    """Ids under which the originator has no envelope, as runs in order."""
    billed_to_nobody: int
    """Envelopes that break a rule of publishing."""
    totals: Sequence[PayerTotal]
    """In the order of the payers' addresses."""

    # Cached: the root takes a hash for each payer.
    @cached_property
    def unsigned(self) -> bytes:
        """Return the serialized PayerReport."""
        message = node_api_pb2.PayerReport(
            originator_node_id=self.originator_id,
            first_sequence_id=self.first_id,
            last_sequence_id=self.last_id,
            billed_to_nobody=self.billed_to_nobody,
            payers=len(self.totals),
            payers_root=merkle_root([total_leaf(each) for each in self.totals]),
        )
        for run in self.missing:
            message.missing.add(first_sequence_id=run[0], last_sequence_id=run[-1])
        return message.SerializeToString(deterministic=True)

    def check(self) -> None:
        """Check that each id is billed once, to somebody or to nobody, or is missing.

        Raises MalformedData for a report that no envelopes can have.
        """
        ids = self.last_id - self.first_id + 1
        counted = sum(each.messages for each in self.totals) + self.billed_to_nobody
        if counted + sum(map(len, self.missing)) != ids:
            got = f"{counted} billed, and {sum(map(len, self.missing))} missing"
            raise MalformedData(_SUBJECT, f"{ids} ids from {self.first_id} to {self.last_id}", got)

    def proof(self, payer: bytes) -> tuple[int, list[bytes]]:
        """Return the place of a payer's total, and its proof; see ``verify_total``.

        Raises MalformedData where the payer owes nothing.
        """
        payers = [each.payer for each in self.totals]
        if payer not in payers:
            raise MalformedData(_SUBJECT, f"a total of payer 0x{payer.hex()}", "none")
        index = payers.index(payer)
        return index, merkle_proof([total_leaf(each) for each in self.totals], index)


@dataclass(frozen=True, slots=True)
class SignedReport:
    """A report that its originator signed."""

    report: PayerReport
    signature: bytes
    """65 bytes, of the originator."""
    attestations: Mapping[int, bytes] = field(default_factory=dict)
    """Signatures of other nodes, by node id."""


def sign_report(report: PayerReport, key: SigningKey) -> SignedReport:
    """Sign a report as its originator."""
    return SignedReport(report, key.sign(report_digest(report.unsigned)))


def attest(report: PayerReport, node_id: int, key: SigningKey) -> bytes:
    """Return the signature of a node that computed a report from its own envelopes."""
    return key.sign(_attestation_digest(report.unsigned, node_id))


def is_attested_by(report: PayerReport, node_id: int, signature: bytes, key: bytes) -> bool:
    """Return whether a key of 65 bytes attested a report as a node's."""
    digest = _attestation_digest(report.unsigned, node_id)
    try:
        return recover_public_key(signature, digest) == key
    except InvalidSignature:
        return False


def needed_signatures(enabled_nodes: int) -> int:
    """Return how many of the registry's enabled nodes have to sign, with the originator."""
    return enabled_nodes // 2 + 1


def report_digest(unsigned: bytes) -> bytes:
    """Return the 32 bytes that the originator signs."""
    return keccak256(PAYER_REPORT_LABEL + unsigned)


def total_leaf(total: PayerTotal) -> bytes:
    """Return a total as the tree's leaf: the four values in 32 bytes each, as Solidity's ABI."""
    numbers = total.messages, total.bytes, total.byte_days
    return total.payer.rjust(_WORD, b"\0") + b"".join(
        each.to_bytes(_WORD, "big") for each in numbers
    )


def verify_total(unsigned: bytes, index: int, total: PayerTotal, proof: Sequence[bytes]) -> None:
    """Check that a serialized PayerReport has a payer's total. Raises MalformedData."""
    root = node_api_pb2.PayerReport.FromString(unsigned).payers_root
    verify_merkle_proof(root, index, total_leaf(total), proof)


def written_totals(totals: Sequence[PayerTotal]) -> node_api_pb2.PayerTotals:
    """Return totals as a message."""
    message = node_api_pb2.PayerTotals()
    for each in totals:
        message.totals.add(**each._asdict())
    return message


def written_report(signed: SignedReport) -> node_api_pb2.SignedPayerReport:
    """Return a report with all its signatures as a message."""
    message = node_api_pb2.SignedPayerReport(
        unsigned_payer_report=signed.report.unsigned,
        originator_signature=signed.signature,
        payers=written_totals(signed.report.totals),
    )
    for node_id, signature in signed.attestations.items():
        message.attestations.add(node_id=node_id, signature=signature)
    return message


def parsed_report(data: bytes) -> node_api_pb2.SignedPayerReport:
    """Parse one report of an answer; nothing is checked. Raises MalformedData."""
    try:
        return node_api_pb2.SignedPayerReport.FromString(data)
    except DecodeError as error:
        raise MalformedData(_SUBJECT, "a SignedPayerReport", error) from error


def read_report(message: node_api_pb2.SignedPayerReport, keys: Mapping[int, bytes]) -> SignedReport:
    """Decode a report that its originator has signed; keys have 65 bytes, by node id.

    The report may contradict itself: see ``PayerReport.check``. Attestations are not verified.
    Raises MalformedData where the bytes are not those of a report and its totals, and where another
    key signed the report: neither is evidence against the originator.
    """
    try:
        stated = node_api_pb2.PayerReport.FromString(message.unsigned_payer_report)
    except DecodeError as error:
        raise MalformedData(_SUBJECT, "a PayerReport", error) from error
    _check_size(stated, message)
    if (signing_key := keys.get(stated.originator_node_id)) is None:
        raise MalformedData(_SUBJECT, "one of a known node", f"node {stated.originator_node_id}'s")
    report = _report(stated, message.payers)
    _check_order(report)
    # Other totals than those of the root, or another form of the same report.
    if report.unsigned != message.unsigned_payer_report:
        raise MalformedData(_SUBJECT, "its own totals, in the one form", "others")
    signer = recover_public_key(
        message.originator_signature, report_digest(message.unsigned_payer_report)
    )
    if signer != signing_key:
        raise MalformedData(_SUBJECT, f"node {report.originator_id}'s signature", "another's")
    attestations = {each.node_id: each.signature for each in message.attestations}
    return SignedReport(report, message.originator_signature, attestations)


def stored_report(unsigned: bytes, totals: bytes) -> PayerReport:
    """Return a report of this node's own database, by the two messages that are stored."""
    stated = node_api_pb2.PayerReport.FromString(unsigned)
    return _report(stated, node_api_pb2.PayerTotals.FromString(totals))


def _report(stated: node_api_pb2.PayerReport, totals: node_api_pb2.PayerTotals) -> PayerReport:
    return PayerReport(
        stated.originator_node_id,
        stated.first_sequence_id,
        stated.last_sequence_id,
        [range(each.first_sequence_id, each.last_sequence_id + 1) for each in stated.missing],
        stated.billed_to_nobody,
        [
            PayerTotal(each.payer, each.messages, each.bytes, each.byte_days)
            for each in totals.totals
        ],
    )


def _check_size(stated: node_api_pb2.PayerReport, message: node_api_pb2.SignedPayerReport) -> None:
    first, last = stated.first_sequence_id, stated.last_sequence_id
    if not 0 < first <= last <= _LARGEST or last - first >= MOST_IDS:
        raise MalformedData(_SUBJECT, f"1 to {MOST_IDS} ids", f"{first} to {last}")
    for name, count, most in (
        ("runs of missing ids", len(stated.missing), MOST_MISSING),
        ("payers", len(message.payers.totals), MOST_PAYERS),
        ("attestations", len(message.attestations), MOST_ATTESTATIONS),
    ):
        if count > most:
            raise MalformedData(_SUBJECT, f"at most {most} {name}", count)


def _check_order(report: PayerReport) -> None:
    after = report.first_id - 1
    for run in report.missing:
        if not run or not after < run[0] <= run[-1] <= report.last_id:
            raise MalformedData(_SUBJECT, "missing ids of the range, in order", run)
        after = run[-1]
    before = b""
    for total in report.totals:
        if len(total.payer) != ADDRESS_LENGTH or total.payer <= before or not total.messages:
            raise MalformedData(_SUBJECT, "payers in the order of their addresses", total)
        before = total.payer


def _attestation_digest(unsigned: bytes, node_id: int) -> bytes:
    return keccak256(PAYER_ATTESTATION_LABEL + node_id.to_bytes(4, "big") + unsigned)

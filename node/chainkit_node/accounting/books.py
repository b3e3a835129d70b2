"""The payer reports of this node's database: made, compared with others', and signed (ADR 56).

Theory of operation. A node computes a report of another node again from its own envelopes. Where
the bytes are equal, the node stores and signs the report. Where the node does not have exactly the
ids that the report bills, it waits: envelopes may be late, and nobody is accused. Where it has
them, and the totals are others, the originator has signed what its own envelopes contradict: the
report is refused, and kept as evidence. So is a report that overlaps a stored one, or contradicts
itself. A report that enough others have signed is stored in any case: a node that was away may
never get what has expired meanwhile.

Methods are for one thread at a time, which may wait for the database.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from sqlalchemy import Connection, select

from chainkit.errors import MalformedData
from chainkit.protocol.payer_reports import (
    PayerReport,
    PayerTotal,
    SignedReport,
    attest,
    is_attested_by,
    needed_signatures,
    read_report,
    report_digest,
    sign_report,
    written_report,
    written_totals,
)
from chainkit.protocol.proto import node_api_pb2
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.signatures import SigningKey
from chainkit_indexer.storage.store import Store
from chainkit_node.peers.directory import Listing
from chainkit_node.storage import schema
from chainkit_node.storage.charges import compute_report, next_report
from chainkit_node.storage.gaps import read_asked_gaps
from chainkit_node.storage.payer_reports import (
    RefusedReport,
    StoredPayerReport,
    attested_through,
    insert_attestation,
    insert_refused,
    insert_report,
    mark_attested,
    read_attestations,
    read_report_at,
    reported_through,
)
from chainkit_node.storage.range_digests import read_highest_id
from chainkit_node.storage.replicated import read_after
from chainkit_node.storage.troubled_reports import Unattested, read_refusals, read_unattested


class Outcome(Enum):
    """The fate of a report that another node sent."""

    STORED = "stored"
    KNOWN = "known"
    """It was stored before; its signatures are."""
    WAITS = "waits"
    """This node cannot judge it yet."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class _Judgement:
    outcome: Outcome
    """STORED where this node computed the same."""
    reason: str = ""
    """Why it is refused."""


@dataclass(frozen=True, slots=True)
class Standing:
    """All that an operator should know of the reports."""

    refused: int = 0
    """Reports of other nodes that this node refused lately."""
    unattested: Unattested | None = None
    """This node's oldest report that too few nodes have signed."""


_EQUAL = _Judgement(Outcome.STORED)
_WAITS = _Judgement(Outcome.WAITS)
_KNOWN = _Judgement(Outcome.KNOWN)


class Books:
    """The reports that this node holds."""

    def __init__(self, store: Store, key: SigningKey, clock_ns: Callable[[], int]) -> None:
        """Take the database, opened to write, the node's key, and a clock that counts from 1970."""
        self._store = store
        self._key = key
        self._clock_ns = clock_ns

    def attested(self, originator_ids: Collection[int]) -> dict[int, int]:
        """Return up to which id attested reports cover each originator."""
        with self._store.reading() as connection:
            return {each: attested_through(connection, each) for each in sorted(originator_ids)}

    def standing(self, own_id: int | None) -> Standing:
        """Return what an operator should know of the reports."""
        with self._store.reading() as connection:
            refused = read_refusals(connection, self._clock_ns())
            unattested = None if own_id is None else read_unattested(connection, own_id)
        return Standing(sum(each.reports for each in refused), unattested)

    def make(self, own_id: int, listing: Listing, most_wait_ns: int) -> int:
        """Sign reports of this node's own envelopes, if the first unreported one has waited enough.

        Return how many. Ids for which other nodes are being asked end a report: they may come.
        """
        made = 0
        while (report := self._due(own_id, most_wait_ns)) is not None:
            signed = sign_report(report, self._key)
            with self._store.writing() as connection:
                self._insert(connection, signed)
                self._add(connection, report, {}, listing)
            made += 1
        return made

    def take(self, message: node_api_pb2.SignedPayerReport, listing: Listing) -> Outcome:
        """Compare a report that any node sent with this node's envelopes, and keep what it shows.

        Raises MalformedData, which nobody signed, and StoreError.
        """
        keys = {each: node.signing_key for each, node in listing.nodes.items()}
        signed = read_report(message, keys)
        report = signed.report
        with self._store.reading() as connection:
            judgement = self._judged(connection, report)
            known = read_attestations(connection, report.originator_id, report.first_id)
        if judgement is _KNOWN:
            if attestations := _verified(signed, keys, known.keys()):
                with self._store.writing() as connection:
                    self._add(connection, report, attestations, listing)
            return Outcome.KNOWN
        attestations = _verified(signed, keys, ())
        if judgement is _EQUAL and (own_id := _other_enabled(listing, report.originator_id)):
            attestations[own_id] = attest(report, own_id, self._key)
        with self._store.writing() as connection:
            if judgement is not _EQUAL and judgement is not _WAITS:
                self._refuse(connection, signed, judgement.reason)
            if not _may_insert(connection, report, judgement, attestations, listing):
                return judgement.outcome
            self._insert(connection, signed)
            self._add(connection, report, attestations, listing)
        return Outcome.STORED

    def _due(self, own_id: int, most_wait_ns: int) -> PayerReport | None:
        with self._store.reading() as connection:
            after = reported_through(connection, own_id)
            oldest = read_after(connection, own_id, after)
            if oldest is None or self._clock_ns() - oldest.originator_ns < most_wait_ns:
                return None
            asked = [gap.first_id - 1 for gap in read_asked_gaps(connection, own_id)]
            last = min(
                [read_highest_id(connection, own_id), *(each for each in asked if each >= after)]
            )
            return next_report(connection, own_id, after + 1, last) if last > after else None

    def _judged(self, connection: Connection, report: PayerReport) -> _Judgement:
        stored = read_report_at(connection, report.originator_id, report.first_id)
        if stored is not None and stored.report == report.unsigned:
            return _KNOWN
        if stored is not None:
            ids = f"{stored.first_id} to {stored.last_id}"
            return _Judgement(Outcome.REFUSED, f"it signed another report of ids {ids}, too")
        if report.first_id != reported_through(connection, report.originator_id) + 1:
            return _WAITS
        return _compared(connection, report)

    def _insert(self, connection: Connection, signed: SignedReport) -> None:
        report = signed.report
        totals = written_totals(report.totals).SerializeToString(deterministic=True)
        row = StoredPayerReport(
            originator_id=report.originator_id,
            first_id=report.first_id,
            last_id=report.last_id,
            report=report.unsigned,
            signature=signed.signature,
            payers=totals,
            stored_ns=self._clock_ns(),
            attested_ns=None,
        )
        insert_report(connection, row)

    def _add(
        self,
        connection: Connection,
        report: PayerReport,
        attestations: Mapping[int, bytes],
        listing: Listing,
    ) -> None:
        """Store signatures of a stored report, and whether they are enough."""
        originator_id, first_id = report.originator_id, report.first_id
        for node_id, signature in attestations.items():
            insert_attestation(connection, originator_id, first_id, node_id, signature)
        signers = {originator_id, *read_attestations(connection, originator_id, first_id)}
        if _is_enough(signers, listing):
            mark_attested(connection, originator_id, first_id, self._clock_ns())

    def _refuse(self, connection: Connection, signed: SignedReport, reason: str) -> None:
        report = signed.report
        data = written_report(signed).SerializeToString()
        row = RefusedReport(
            originator_id=report.originator_id,
            digest=report_digest(report.unsigned),
            first_id=report.first_id,
            last_id=report.last_id,
            reason=reason,
            report=data,
            refused_ns=self._clock_ns(),
        )
        if insert_refused(connection, row):
            ids = f"{report.first_id} to {report.last_id}"
            text = f"payer report of node {report.originator_id} for ids {ids} is refused: {reason}"
            fields = {"node_id": report.originator_id, "reason": reason}
            log_event(LogEvent("payer_report_refused", text, fields, logging.ERROR))


def _compared(connection: Connection, report: PayerReport) -> _Judgement:
    try:
        report.check()
    except MalformedData as error:
        return _Judgement(Outcome.REFUSED, str(error))
    own = compute_report(connection, report.originator_id, report.first_id, report.last_id)
    if own.unsigned == report.unsigned:
        return _EQUAL
    if list(own.missing) != list(report.missing) or _is_disputed(connection, report):
        return _WAITS
    return _Judgement(Outcome.REFUSED, _difference(own, report))


def _may_insert(
    connection: Connection,
    report: PayerReport,
    judgement: _Judgement,
    attestations: Collection[int],
    listing: Listing,
) -> bool:
    """Tell whether a report is stored: computed alike, this node's own, or signed by enough."""
    if reported_through(connection, report.originator_id) + 1 != report.first_id:
        return False
    is_own = report.originator_id == listing.own_id
    signers = {report.originator_id, *attestations}
    return judgement is _EQUAL or is_own or _is_enough(signers, listing)


def _is_disputed(connection: Connection, report: PayerReport) -> bool:
    """Tell whether two envelopes are known under an id: honest nodes may hold either one."""
    ids = schema.disputed_envelopes.c
    query = select(ids.sequence_id).where(
        ids.originator_id == report.originator_id,
        ids.sequence_id.between(report.first_id, report.last_id),
    )
    return connection.execute(query.limit(1)).first() is not None


def _difference(own: PayerReport, report: PayerReport) -> str:
    """Return the first total that differs, in words; the envelopes are the same."""
    expected = {each.payer: each for each in own.totals}
    got = {each.payer: each for each in report.totals}
    for payer in sorted(expected.keys() | got.keys()):
        if expected.get(payer) != got.get(payer):
            right, wrong = _words(expected.get(payer)), _words(got.get(payer))
            return f"payer 0x{payer.hex()}: expected {right}, got {wrong}"
    return f"expected {own.billed_to_nobody} billed to nobody, got {report.billed_to_nobody}"


def _words(total: PayerTotal | None) -> str:
    if total is None:
        return "nothing"
    return f"{total.messages} messages, {total.bytes} bytes, {total.byte_days} byte-days"


def _verified(
    signed: SignedReport, keys: Mapping[int, bytes], known: Collection[int]
) -> dict[int, bytes]:
    """Return the valid attestations of nodes of the registry that are not known yet."""
    return {
        each: signature
        for each, signature in signed.attestations.items()
        if each in keys
        and each not in known
        and is_attested_by(signed.report, each, signature, keys[each])
    }


def _enabled(listing: Listing) -> set[int]:
    return {each for each, node in listing.nodes.items() if node.is_enabled}


def _other_enabled(listing: Listing, originator_id: int) -> int | None:
    """Return this node's id where it is enabled, and another one than the originator."""
    own_id = listing.own_id
    return own_id if own_id in _enabled(listing) - {originator_id} else None


def _is_enough(signers: Collection[int], listing: Listing) -> bool:
    enabled = _enabled(listing)
    return len(enabled.intersection(signers)) >= needed_signatures(len(enabled))

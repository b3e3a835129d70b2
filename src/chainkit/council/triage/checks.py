"""Checks each piece of evidence as ``chainkit council verify`` does, apart from other pieces."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment
from chainkit.council.evidence.bundle import (
    PASSES,
    BundleVerdict,
    FindingVerdict,
    verify_bundle,
    verify_bundle_with_endpoint,
)
from chainkit.council.evidence.report import verify_report
from chainkit.council.triage.falls import Fall, find_fall
from chainkit.council.triage.files import EvidenceFiles, Piece
from chainkit.council.triage.values import Claim, Dismissed, RegisteredNodes
from chainkit.documents.untrusted import read_small
from chainkit.errors import (
    AccessRefused,
    ChainError,
    ChainkitError,
    EndpointUnavailable,
    RateLimited,
    WrongChain,
)
from chainkit.evidence.bundle import Bundle
from chainkit.evidence.folder import read_bundle
from chainkit.evidence.headers import Advance
from chainkit.evidence.verdict import EnvelopeVerdict, Verdict
from chainkit.misbehavior.evidence import Judgement, Weight, judge_safety
from chainkit.misbehavior.signed import SignedReport, parse_signed
from chainkit.misbehavior.types import Misbehavior
from chainkit.signatures import keccak256
from chainkit.types import BlockReference, Node

LARGEST_REPORT: Final = 2**26
"""Bytes of a report's file: many times what an endpoint takes as one transaction."""

_HOPELESS: Final = (AccessRefused, EndpointUnavailable, RateLimited, WrongChain)
"""Errors that no evidence causes: the next piece would have the same errors."""


@dataclass(frozen=True, slots=True)
class Witness:
    """An endpoint of the council's own, and its registry at a block."""

    endpoint: Endpoint
    block: BlockReference
    registered: RegisteredNodes
    now_ns: int
    """Nanoseconds since 1970: later than any honest node's signature on the evidence."""

    @property
    def keys(self) -> dict[int, bytes]:
        """The nodes' signing keys, 65 bytes each, by id."""
        return {each: found.node.signing_key for each, found in self.registered.items()}


@dataclass(frozen=True, slots=True)
class Examiner:
    """The reference for evidence: an endpoint, or else block hashes that are trusted."""

    record: DeploymentRecord | FollowedDeployment
    witness: Witness | None
    trusted: Collection[bytes] = ()
    """Hashes (32 bytes) of blocks; without a witness, a bundle must end in one of them."""

    def examine(
        self, files: EvidenceFiles, advance: Advance
    ) -> tuple[list[Claim], list[Dismissed]]:
        """Check all pieces of a folder; ``advance`` gets each finished part of ``work``.

        A fault in one piece does not affect the others. Raises ChainError where the endpoint stops
        answering, or serves another chain.
        """
        claims: list[Claim] = []
        dismissed = [Dismissed(source, reason) for source, reason in files.others.items()]
        for piece in files.pieces:
            meter = _Meter(_work(piece), advance)
            try:
                found = self._examine(piece, meter.advance)
            except _HOPELESS:
                raise
            except ChainkitError as error:
                found = Dismissed(piece.source, str(error), None, isinstance(error, ChainError))
            meter.finish()
            if isinstance(found, Claim):
                claims.append(found)
            else:
                dismissed.append(found)
        return claims, dismissed

    def _examine(self, piece: Piece, advance: Advance) -> Claim | Dismissed:
        return self._bundle(piece, advance) if piece.is_bundle else self._report(piece)

    def _bundle(self, piece: Piece, advance: Advance) -> Claim | Dismissed:
        bundle = read_bundle(piece.path)
        last = bundle.trusted_block
        if self.witness is None and last.hash not in self.trusted:
            # Not the bundle's own hash, which would be pasted back.
            reason = (
                f"no --trust is the hash of block {last.number}, in which it says that it ends: "
                "take that from a node or explorers of your choice"
            )
            return Dismissed(piece.source, reason, is_unchecked=True)
        result = self._verified(piece, bundle, advance)
        if result.verdict is not Verdict.PROVED:
            return _not_proved(piece, result.accused, result.verdict, result.findings)
        proved = [each for each in result.findings if each.verdict is Verdict.PROVED]
        # The page alone may name any reporter: only a report that he signed speaks for him.
        signed = [each for each in proved if each.is_reported]
        digests = [each.signed_digest for each in signed or proved]
        return Claim(
            piece.source,
            bundle.node_id,
            Misbehavior.BLOCKCHAIN_INCONSISTENCY,
            bundle.reporter_public_key if signed else None,
            frozenset(each for each in digests if each is not None),
            keccak256(b"".join(sorted(each for each in digests if each is not None))),
            None if result.accused is None else result.accused.signing_key,
        )

    def _verified(self, piece: Piece, bundle: Bundle, advance: Advance) -> BundleVerdict:
        if self.witness is None:
            last = bundle.trusted_block
            return verify_bundle(piece.path, bundle, last.hash, self.record, advance)
        endpoint, block = self.witness.endpoint, self.witness.block
        return verify_bundle_with_endpoint(
            piece.path, bundle, endpoint, self.record, block, advance
        )

    def _report(self, piece: Piece) -> Claim | Dismissed:
        data = read_small(piece.path, LARGEST_REPORT)
        signed = parse_signed(data)
        witness = self.witness
        if witness is None:
            reason = "a report alone holds nothing of the chain: it needs --rpc"
            return Dismissed(piece.source, reason, is_unchecked=True)
        if signed.report.misbehavior.is_liveness:
            return _claim(piece, signed, witness.registered)
        if signed.report.misbehavior is not Misbehavior.BLOCKCHAIN_INCONSISTENCY:
            judgement = judge_safety(signed.report, witness.keys, witness.now_ns)
            return _judged(piece, signed, witness.registered, judgement)
        result = verify_report(data, witness.endpoint, self.record, witness.block)
        if result.verdict is not Verdict.PROVED:
            return _not_proved(piece, result.accused, result.verdict, result.envelopes)
        proofs = [each for each in result.envelopes if each.verdict is Verdict.PROVED]
        digests = [each.signed_digest for each in proofs if each.signed_digest is not None]
        return _claim(piece, signed, witness.registered, digests)


def work(found: EvidenceFiles) -> int:
    """Return how much there is to do for all pieces, for a bar."""
    return sum(map(_work, found.pieces))


def _work(piece: Piece) -> int:
    return 1 + (PASSES if piece.is_bundle else 1) * piece.size


def _claim(
    piece: Piece,
    signed: SignedReport,
    registered: RegisteredNodes,
    proofs: Iterable[bytes] = (),
    reason: str = "",
    fall: Fall | None = None,
) -> Claim:
    accused = registered.get(signed.report.node_id)
    return Claim(
        piece.source,
        signed.report.node_id,
        signed.report.misbehavior,
        signed.reporter,
        frozenset(proofs),
        signed.digest,
        None if accused is None else accused.node.signing_key,
        signed.report.is_from_node,
        fall,
        reason,
    )


def _judged(
    piece: Piece, signed: SignedReport, registered: RegisteredNodes, judgement: Judgement
) -> Claim | Dismissed:
    node_id = signed.report.node_id
    if judgement.weight is Weight.REFUTED:
        accused = node_id if node_id in registered else None
        return Dismissed(piece.source, f"refuted: {judgement.reason}", accused)
    if judgement.needs_chain:
        # Honest nodes serve such payloads in another order after a reorg, and many peers see the
        # change.
        return Dismissed(piece.source, f"not proved: {judgement.reason}", node_id)
    if judgement.weight is Weight.CLAIMED:
        return _claim(piece, signed, registered, reason=judgement.reason)
    fall = find_fall(signed.report)
    return _claim(piece, signed, registered, [judgement.subject], judgement.reason, fall)


def _not_proved(
    piece: Piece,
    accused: Node | None,
    verdict: Verdict,
    parts: Iterable[EnvelopeVerdict | FindingVerdict],
) -> Dismissed:
    first = next((f": {part.reason}" for part in parts if part.verdict is verdict), "")
    return Dismissed(
        piece.source, f"{verdict}{first}", None if accused is None else accused.node_id
    )


class _Meter:
    """A piece's part of the bar: never more than the piece's work, and all of it at the end."""

    def __init__(self, size: int, advance: Advance) -> None:
        self._left = size
        self._advance = advance

    def advance(self, more: int) -> None:
        step = min(more, self._left)
        self._left -= step
        self._advance(step)

    def finish(self) -> None:
        self.advance(self._left)

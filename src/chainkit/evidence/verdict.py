"""Verdicts on evidence, and the steps by which somebody else can follow them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from chainkit.protocol.envelope import ServedEnvelope, blockchain_proof_digest


class Verdict(StrEnum):
    """The verdict on a report, a finding, or one envelope of it."""

    PROVED = "proved"
    """The node signed data that no branch of the chain can contain."""
    NOT_PROVED = "not proved"
    """An honest node could have done this; that the node is innocent is not shown either."""
    REFUTED = "refuted"
    """The node served data that the chain contains."""


@dataclass(frozen=True, slots=True)
class Step:
    """One check and its result, safe to print."""

    name: str
    found: str
    is_quoted: bool = False
    """Whether a stranger wrote ``found``: then it is printed so that it passes for no line of
    ours."""


@dataclass(frozen=True, slots=True)
class EnvelopeVerdict:
    """The verdict on one envelope."""

    verdict: Verdict
    reason: str
    steps: tuple[Step, ...]
    served: ServedEnvelope | None
    """None if the bytes are no envelope."""
    is_signed: bool | None = False
    """Whether the accused node's key signed the envelope; None where the node's key is not
    known."""

    @property
    def signed_digest(self) -> bytes | None:
        """The digest that the node signed, 32 bytes: the same from any reporter."""
        served = self.served
        if served is None:
            return None
        return blockchain_proof_digest(served.unsigned_originator_envelope, served.transaction_hash)


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """Return what several verdicts show: proved by any one, refuted only if every one is."""
    found = set(verdicts)
    if Verdict.PROVED in found:
        return Verdict.PROVED
    return Verdict.REFUTED if found == {Verdict.REFUTED} else Verdict.NOT_PROVED

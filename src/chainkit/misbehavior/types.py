"""The types of misbehavior that XIP-49 §3.2.7 names, and how grave each is."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

SLOW_SECONDS: Final = 1.0
"""An answer that takes longer is reported as slow: ``t`` of the specification."""

UNRESPONSIVE_SECONDS: Final = 4.0
"""A node without an answer for this long is unreachable: ``T``. The field of a report holds at most
4.29 s."""


class Severity(StrEnum):
    """How grave a misbehavior is, in the words of the audit; the gravest first."""

    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"

    @property
    def rank(self) -> int:
        """0 for the gravest."""
        return list(Severity).index(self)


class Misbehavior(IntEnum):
    """A report's type, by its number in the protocol; without the prefix ``MISBEHAVIOR_``."""

    UNRESPONSIVE_NODE = 1
    SLOW_NODE = 2
    FAILED_REQUEST = 3
    OUT_OF_ORDER = 4
    DUPLICATE_SEQUENCE_ID = 5
    CAUSAL_ORDERING = 6
    INVALID_PAYLOAD = 7
    BLOCKCHAIN_INCONSISTENCY = 8

    @property
    def is_liveness(self) -> bool:
        """Whether the type is of liveness, which nothing proves; all others are of safety."""
        return self <= Misbehavior.FAILED_REQUEST

    @property
    def severity(self) -> Severity:
        """The severity of the type; equal to that of the audit's findings that name the type."""
        return _SEVERITIES[self]


_SEVERITIES = {
    # A client leaves such a node and asks another node.
    Misbehavior.UNRESPONSIVE_NODE: Severity.MAJOR,
    Misbehavior.SLOW_NODE: Severity.MINOR,
    Misbehavior.FAILED_REQUEST: Severity.MINOR,
    Misbehavior.OUT_OF_ORDER: Severity.MAJOR,
    # Where the payloads differ, the audit also finds that one is not the chain's, which is graver.
    Misbehavior.DUPLICATE_SEQUENCE_ID: Severity.MINOR,
    Misbehavior.CAUSAL_ORDERING: Severity.MAJOR,
    Misbehavior.INVALID_PAYLOAD: Severity.MAJOR,
    Misbehavior.BLOCKCHAIN_INCONSISTENCY: Severity.CRITICAL,
}

"""Why a report is not stored: each reason is counted by its name."""

from __future__ import annotations

from enum import StrEnum

from chainkit.errors import StoreError
from chainkit.service.refusals import InvalidRequest, NotReady, Overloaded


class Reason(StrEnum):
    """A reason, as the metrics name it."""

    INVALID = "invalid"
    """It is no report, or states what it must not."""
    REFUTED = "refuted"
    """Its evidence does not show what it says."""
    TOO_LARGE = "too_large"
    FULL = "full"
    """As many about this node are stored already."""
    WAITING = "waiting"
    """Too many wait to be judged."""
    RATE = "rate"
    """One address submits too many."""
    UNAVAILABLE = "unavailable"
    """The database or the registry is not there."""
    FAULT = "fault"
    """Anything else: the log has more."""


class InvalidReport(InvalidRequest):
    """The report is none that a node may host."""

    reason = Reason.INVALID


class RefutedReport(InvalidReport):
    """The evidence does not show what the report says."""

    reason = Reason.REFUTED


class LargeReport(InvalidReport):
    """The report has more bytes than a node hosts."""

    reason = Reason.TOO_LARGE


class TooManyReports(Overloaded):
    """No more reports like this one are taken; ``reason`` says which bound it is."""

    def __init__(self, reason: Reason, expected: object, got: object) -> None:
        """Take the bound, and what went beyond it."""
        super().__init__("misbehavior report", expected, got)
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling, as every error does."""
        return type(self), (self.reason, self.expected, self.got), self.__dict__


def reason_of(error: BaseException) -> Reason:
    """Return under which reason an error is counted."""
    if isinstance(error, InvalidReport | TooManyReports):
        return error.reason
    if isinstance(error, Overloaded):
        return Reason.WAITING
    return Reason.UNAVAILABLE if isinstance(error, NotReady | StoreError) else Reason.FAULT

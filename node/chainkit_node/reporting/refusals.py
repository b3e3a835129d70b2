"""Why a report is not stored: each reason is counted by its name."""

from __future__ import annotations

from enum import StrEnum

from chainkit.errors import MalformedData, StoreError
from chainkit.service.refusals import InvalidRequest, NotReady, Overloaded


class Reason(StrEnum):
    """A reason, as the metrics name it."""

    INVALID = "invalid"
    """The bytes are no report, or the report states what it must not."""
    REFUTED = "refuted"
    """The evidence does not show what the report says."""
    TOO_LARGE = "too_large"
    FULL = "full"
    """Enough reports about the accused are stored already."""
    WAITING = "waiting"
    """Too many reports wait to be judged."""
    RATE = "rate"
    """One address submits too many reports."""
    LATE = "late"
    """This node was late itself while it waited for the answer."""
    UNAVAILABLE = "unavailable"
    """The database or the registry is not there."""
    FAULT = "fault"
    """Anything else: the log has more."""


class InvalidReport(InvalidRequest):
    """No node may host the report."""

    reason = Reason.INVALID


class RefutedReport(InvalidReport):
    """The evidence does not show what the report says."""

    reason = Reason.REFUTED


class LargeReport(InvalidReport):
    """The report has more bytes than a node hosts."""

    reason = Reason.TOO_LARGE


class TooManyReports(Overloaded):
    """Enough reports like this one are stored."""

    reason = Reason.FULL


class TooManyWaiting(TooManyReports):
    """Too many reports wait to be judged."""

    reason = Reason.WAITING


class TooOften(TooManyReports):
    """The address submitted too many reports."""

    reason = Reason.RATE


def reason_of(error: BaseException) -> Reason:
    """Return under which reason an error is counted."""
    if isinstance(error, InvalidReport | TooManyReports):
        return error.reason
    if isinstance(error, Overloaded):
        return Reason.WAITING
    if isinstance(error, MalformedData):
        return Reason.INVALID
    return Reason.UNAVAILABLE if isinstance(error, NotReady | StoreError) else Reason.FAULT

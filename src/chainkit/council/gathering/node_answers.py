"""Checks one node's answers, page after page, within the node's share; no I/O and no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from chainkit.errors import InconsistentAnswer, MalformedData
from chainkit.misbehavior.signed import SignedReport, take_apart
from chainkit.protocol.proto import message_api_pb2
from chainkit.text.counting import counted

MOST_STALE_PAGES: Final = 8
"""Pages in a row without a new report: an honest node has stored few reports twice."""

_LAST_TIME_NS: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Share:
    """The most that one node may answer."""

    reports: int
    """Reports, valid or not."""
    bytes: int
    """Bytes of the node's answers; after them no other page is asked for."""
    seconds: float


@dataclass(frozen=True, slots=True)
class HostedReport:
    """A report that the node which hosts it signed."""

    host_id: int
    signed: SignedReport
    data: bytes
    """The MisbehaviorReport in one form: without the server's time, and what nobody signed."""

    @property
    def name(self) -> str:
        """The name of the report's file: one for each host and each digest that the host signed."""
        return f"node-{self.host_id}-{self.signed.digest.hex()}.pb"


class NodePages:
    """The reports of one node, asked for after the time of the latest one.

    ``request`` and ``take`` are called in turn until there is no request more.
    """

    def __init__(self, node_id: int, signing_key: bytes, after_ns: int, share: Share) -> None:
        """Take the node as the registry has it, and the server time to begin after."""
        self.wrong_key = 0
        """Reports that another key signed."""
        self.malformed = 0
        """Reports that nobody signed, or that lack what their type requires."""
        self.repeated = 0
        self.cut: str | None = None
        """Why the node is asked no more, though it may have more reports."""
        self.after_ns = after_ns
        """The latest server time of what was taken: the next gathering begins there."""
        self._node_id = node_id
        self._key = signing_key
        self._share = share
        self._known: set[bytes] = set()
        self._stale_pages = 0
        self._seen = 0
        self._bytes = 0
        self._is_done = False

    @property
    def reports(self) -> int:
        """Different reports that the node signed."""
        return len(self._known)

    def request(self) -> bytes | None:
        """Return the next QueryMisbehaviorReportsRequest; None once there is nothing to ask."""
        if self._is_done or self.cut is not None:
            return None
        request = message_api_pb2.QueryMisbehaviorReportsRequest(after_ns=self.after_ns)
        return request.SerializeToString()

    def take(self, answer: bytes) -> list[HostedReport]:
        """Return the new reports of an answer that the node signed.

        Raises InconsistentAnswer where the answer is no page, or leads nowhere. A page that exceeds
        the node's share is taken up to there, the earliest reports first, and is the last one.
        """
        page = sorted(self._page(answer), key=lambda each: each.server_time_ns)
        if not page:
            self._is_done = True
            return []
        if (earliest := page[0].server_time_ns) <= self.after_ns:
            expected = f"reports stored after {self.after_ns}"
            raise InconsistentAnswer(self._subject, expected, f"one of {earliest}")
        taken = page[: self._share.reports - self._seen]
        self._seen += len(taken)
        found = [each for each in map(self._judged, taken) if each is not None]
        self._stale_pages = 0 if found else self._stale_pages + 1
        if self._stale_pages == MOST_STALE_PAGES:
            expected, got = "a new report", f"{MOST_STALE_PAGES} pages without one"
            raise InconsistentAnswer(self._subject, expected, got)
        self.after_ns = page[-1].server_time_ns
        if len(taken) < len(page):
            # Another one of the same time may be cut off: the next gathering asks for both.
            self.after_ns = page[len(taken)].server_time_ns - 1
        self._look_at_share(len(taken) < len(page))
        # No time is later than the last one.
        self._is_done = self.after_ns == _LAST_TIME_NS
        return found

    def _page(self, answer: bytes) -> Sequence[message_api_pb2.MisbehaviorReport]:
        self._bytes += len(answer)
        try:
            return message_api_pb2.QueryMisbehaviorReportsResponse.FromString(answer).reports
        except DecodeError as error:
            got = f"{len(answer)} other bytes"
            raise InconsistentAnswer(self._subject, "a page of reports", got) from error

    def _look_at_share(self, is_cut: bool) -> None:
        """Ask no more once the share is used up."""
        if is_cut or self._seen == self._share.reports:
            self.cut = f"it has {counted(self._share.reports, 'report')} or more"
        elif self._bytes >= self._share.bytes:
            self.cut = f"its answers have {self._share.bytes} bytes or more"

    def _judged(self, message: message_api_pb2.MisbehaviorReport) -> HostedReport | None:
        try:
            signed = take_apart(message)
        except MalformedData:
            self.malformed += 1
            return None
        if signed.reporter != self._key:
            self.wrong_key += 1
            return None
        if signed.digest in self._known:
            self.repeated += 1
            return None
        self._known.add(signed.digest)
        return HostedReport(self._node_id, signed, _in_one_form(message))

    @property
    def _subject(self) -> str:
        return f"node {self._node_id}"


def _in_one_form(message: message_api_pb2.MisbehaviorReport) -> bytes:
    kept = message_api_pb2.MisbehaviorReport(
        unsigned_misbehavior_report=message.unsigned_misbehavior_report
    )
    kept.signature.bytes = message.signature.bytes
    return kept.SerializeToString()

"""Reads the ends of all logs from one node, as a stranger, and measures the time of each answer.

Used on one event loop. Requests to one node go one after the other, so that no request delays
another one. A node may answer anything: pages must advance, and the number of pages is bounded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from chainkit.errors import ChainkitError, MalformedAnswer, MalformedData
from chainkit.misbehavior.types import SLOW_SECONDS, UNRESPONSIVE_SECONDS, Misbehavior
from chainkit.nodes.connection import NodeConnection
from chainkit.nodes.highest import find_highest
from chainkit.nodes.outcomes import ConnectionLost, NodeLost, NodeUnreached
from chainkit.protocol.envelope import stated_place
from chainkit.protocol.envelope_queries import page_behind
from chainkit.protocol.proto import message_api_pb2
from chainkit.service.refusals import LIMIT_CODES, PassedOn
from chainkit_client.breach import Breach
from chainkit_client.checking.comparison import NodeLog
from chainkit_client.checking.findings import Finding, found_delay
from chainkit_client.reading.answer import read_answer
from chainkit_client.reading.held import MemoryLogs
from chainkit_client.reading.verified import Keys

PAGE: Final = 200
"""Envelopes of one request."""

MOST_PATIENCES: Final = 5
"""The time for all ends, and for all logs, in times of one answer."""

_AGAIN_SECONDS: Final = 0.2


class NodeGone(ChainkitError):
    """A node does not answer; the finding says so, and the node is not asked again."""


@dataclass(slots=True)
class NodeAnswers:
    """A node's answers of one check."""

    node_id: int
    logs: dict[int, NodeLog] = field(default_factory=dict)
    """The logs by originator."""
    highest: dict[int, int] = field(default_factory=dict)
    """The highest id by originator."""
    seconds: list[float] = field(default_factory=list)
    """The time of each answer."""
    breaches: list[Breach] = field(default_factory=list)
    """The broken rules that the answers prove, by any signer."""
    findings: list[Finding] = field(default_factory=list)
    """All other faults of the answers."""
    error: str | None = None
    """Why the node was not asked again; None where it answered everything."""


class NodeAsker:
    """One node."""

    def __init__(
        self,
        connection: NodeConnection,
        keys: Keys,
        now_ns: Callable[[], int],
        patience_seconds: float,
    ) -> None:
        """Take the node, the registry's keys, a clock, and how long one answer may take.

        ``patience_seconds`` are more than UNRESPONSIVE_SECONDS, the least time of a node.
        """
        self.node_id = connection.node_id
        self._connection = connection
        self._keys = keys
        self._now_ns = now_ns
        self._patience_seconds = patience_seconds

    async def find_ends(
        self, originator_ids: Iterable[int], guesses: Mapping[int, int], answers: NodeAnswers
    ) -> None:
        """Find the highest ids that the node holds; a good guess saves most of the queries."""
        if answers.error is not None:
            return
        async with self._in_time(answers):
            for each in originator_ids:
                end = await self._find_end(each, guesses.get(each, 0), answers)
                answers.highest[each] = end

    async def read_logs(self, after: Mapping[int, int], most: int, answers: NodeAnswers) -> None:
        """Read each log behind an id to the found end, at most ``most`` envelopes."""
        if answers.error is not None:
            return
        async with self._in_time(answers):
            for originator_id, after_id in after.items():
                log = await self._read_log(originator_id, after_id, most, answers)
                answers.logs[originator_id] = log

    @asynccontextmanager
    async def _in_time(self, answers: NodeAnswers) -> AsyncIterator[None]:
        """Record why the node is not asked again, if it failed."""
        seconds = MOST_PATIENCES * self._patience_seconds
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            answers.error = f"not done after {seconds:g} s"
        except MalformedData as error:
            answers.error = str(error)
            answers.findings.append(Finding(self.node_id, str(error)))
        except NodeGone as error:
            answers.error = str(error)

    async def _find_end(self, originator_id: int, guess: int, answers: NodeAnswers) -> int:
        async def first_behind(after: int) -> int | None:
            page = await self._page(originator_id, after, 1, answers)
            return stated_place(page[0])[1] if page else None

        highest = await find_highest(first_behind, guess)
        if highest is None:
            subject, expected = f"answers of node {self.node_id}", "one end of a log"
            raise MalformedAnswer(subject, expected, f"several, of originator {originator_id}")
        return highest

    async def _read_log(
        self, originator_id: int, after_id: int, most: int, answers: NodeAnswers
    ) -> NodeLog:
        served: list[bytes] = []
        last_id, end = after_id, answers.highest.get(originator_id, 0)
        while last_id < end and len(served) < most:
            page = await self._page(originator_id, last_id, PAGE, answers)
            if not page:
                break
            served += page
            highest = max(stated_place(each)[1] for each in page)
            if highest <= last_id:
                subject = f"answer of node {self.node_id}"
                raise MalformedAnswer(subject, f"ids above {last_id}", highest)
            last_id = highest
        reading = read_answer(served, None, self.node_id, self._keys, MemoryLogs(), self._now_ns())
        answers.breaches += reading.breaches
        answers.findings += [Finding(self.node_id, str(each)) for each in reading.refused]
        own = [each for each in reading.accepted if each.originator_id == originator_id]
        void = [each.held for (one, _), each in reading.void.items() if one == originator_id]
        held = {each.sequence_id: each for each in (*void, *(each.held for each in own))}
        verified = {each.sequence_id: each for each in own}
        return NodeLog(self.node_id, originator_id, after_id, verified, held)

    async def _page(
        self, originator_id: int, after_id: int, limit: int, answers: NodeAnswers
    ) -> Sequence[bytes]:
        request = page_behind(originator_id, after_id, limit)
        began = asked = time.monotonic()
        while True:
            try:
                await self._connection.connect()
                asked = time.monotonic()
                page = await self._connection.query(request, self._patience_seconds)
                seconds = time.monotonic() - asked
                break
            except (NodeUnreached, ConnectionLost) as error:
                silent = time.monotonic() - began
                if silent < UNRESPONSIVE_SECONDS:
                    await asyncio.sleep(_AGAIN_SECONDS)
                    continue
                self._note(answers, Misbehavior.UNRESPONSIVE_NODE, request, silent, str(error))
                raise NodeGone(error.subject, error.expected, error.got) from error
            except NodeLost as error:
                taken = time.monotonic() - asked
                kind = Misbehavior.FAILED_REQUEST
                if taken >= UNRESPONSIVE_SECONDS:
                    kind = Misbehavior.UNRESPONSIVE_NODE
                self._note(answers, kind, request, taken, str(error))
                raise NodeGone(error.subject, error.expected, error.got) from error
            except PassedOn as error:
                if error.code not in LIMIT_CODES:
                    taken, text = time.monotonic() - asked, f"it refused a query: {error}"
                    self._note(answers, Misbehavior.FAILED_REQUEST, request, taken, text)
                raise NodeGone(f"node {self.node_id}", "an answer", error) from error
        answers.seconds.append(seconds)
        if seconds > SLOW_SECONDS:
            text = f"an answer took more than {SLOW_SECONDS:g} s"
            self._note(answers, Misbehavior.SLOW_NODE, request, seconds, text)
        return page

    def _note(
        self,
        answers: NodeAnswers,
        misbehavior: Misbehavior,
        request: message_api_pb2.QueryEnvelopesRequest,
        seconds: float,
        text: str,
    ) -> None:
        finding = found_delay(self.node_id, misbehavior, request, seconds, text, self._now_ns())
        if all(each.key != finding.key for each in answers.findings):
            answers.findings.append(finding)

"""One check of all nodes: the ends of their logs, read as a stranger and compared."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chainkit.evidence.verdict import Verdict
from chainkit.misbehavior.evidence import Weight
from chainkit.misbehavior.received_batch import HeldEnvelope
from chainkit.misbehavior.types import Misbehavior
from chainkit_client.breach import Breach
from chainkit_client.checking.comparison import (
    NodeLog,
    Omission,
    find_dangling,
    find_equivocations,
    find_omissions,
    find_own_gaps,
    ids_in_words,
)
from chainkit_client.checking.findings import Finding, found_breach
from chainkit_client.checking.node_asker import NodeAnswers, NodeAsker
from chainkit_client.reading.verified import Keys

SETTLE_SECONDS: Final = 5.0
"""How long a node may take to repair its log, before an omission counts."""

MOST_CHAIN_PAYLOADS: Final = 100
"""The newest payloads of one check, which are looked up on the chain."""

JudgeByChain = Callable[[int, bytes], Awaitable[Verdict]]
"""Returns whether a node vouched for a payload that the chain lacks; raises ChainError."""

ReportStage = Callable[[str], None]
"""Gets a line for each stage."""


@dataclass(frozen=True, slots=True)
class NodeCheck:
    """The outcome for one node."""

    node_id: int
    error: str | None
    """Why the node was not asked, or not asked again; None where it answered everything."""
    seconds: tuple[float, ...]
    """The time of each answer."""
    envelopes: int
    """The number of answered envelopes with a valid signature."""
    highest: Mapping[int, int]
    """The highest id that the node holds, by originator."""
    findings: tuple[Finding, ...]


class Checker:
    """Checks nodes; used on one event loop."""

    def __init__(
        self,
        askers: Sequence[NodeAsker],
        keys: Keys,
        now_ns: Callable[[], int],
        judge_by_chain: JudgeByChain,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        """Take the nodes, the registry's keys, a clock, and a look-up on the chain."""
        self._askers = {each.node_id: each for each in askers}
        self._keys = keys
        self._now_ns = now_ns
        self._judge_by_chain = judge_by_chain
        self._settle_seconds = settle_seconds

    async def check(
        self, latest: int, report_stage: ReportStage = lambda stage: None
    ) -> list[NodeCheck]:
        """Compare the latest ids of each log at all nodes.

        The outcome also has nodes that were not asked, where other nodes' answers have evidence
        against them. Raises ChainError where the chain does not answer.
        """
        report_stage(f"asking {len(self._askers)} nodes for the ends of their logs")
        answers = await self._find_ends(self._askers, {})
        after = self._beginnings(answers, latest)
        report_stage("reading the logs")
        await self._read(after, latest, answers)
        # Several nodes may answer the same evidence: each breach is judged once.
        breaches = [breach for each in answers for breach in each.breaches]
        findings = [finding for each in answers for finding in each.findings]
        for originator_id, logs in _by_originator(answers).items():
            if originator_id in self._keys.chain_ids:
                report_stage(f"comparing payloads of originator {originator_id} with the chain")
                findings += await self._chain_findings(logs)
            else:
                breaches += find_equivocations(logs)
                breaches += self._own_gaps(logs)
        lasting = await self._find_lasting(answers, after, latest, report_stage)
        breaches += lasting.breaches
        findings += lasting.findings
        now_ns = self._now_ns()
        findings += [found_breach(each, self._keys, now_ns) for each in dict.fromkeys(breaches)]
        return list(_node_checks(answers, findings))

    async def _find_ends(
        self, node_ids: Iterable[int], guesses: Mapping[int, int]
    ) -> list[NodeAnswers]:
        """Ask nodes for the ends of all logs: first of the chain's logs and the node's own log.

        The end at the originator is a good guess for the end of the other nodes' copies.
        """
        answers = [NodeAnswers(each) for each in node_ids]

        def asked(
            ids_of: Callable[[int], Iterable[int]], guesses: Mapping[int, int]
        ) -> Iterator[Awaitable[None]]:
            for each in answers:
                asker, ids = self._askers[each.node_id], ids_of(each.node_id)
                yield asker.find_ends(ids, guesses, each)

        chain_ids, node_logs = sorted(self._keys.chain_ids), sorted(self._keys.by_node)
        await asyncio.gather(*asked(lambda own_id: (*chain_ids, own_id), guesses))
        own = {each.node_id: each.highest.get(each.node_id, 0) for each in answers}
        others = asked(lambda own_id: (each for each in node_logs if each != own_id), own)
        await asyncio.gather(*others)
        return answers

    def _beginnings(self, answers: Iterable[NodeAnswers], latest: int) -> dict[int, int]:
        """Return the id behind which each log is read.

        The median of all ends decides: a node that invents a high id does not move the start.
        """
        found = {}
        for originator_id in (*sorted(self._keys.chain_ids), *sorted(self._keys.by_node)):
            ends = [
                each.highest[originator_id] for each in answers if originator_id in each.highest
            ]
            middle = statistics.median_low(ends) if ends else 0
            found[originator_id] = max(0, middle - latest)
        return found

    async def _read(
        self, after: Mapping[int, int], latest: int, answers: Iterable[NodeAnswers]
    ) -> None:
        # A node's log is read up to twice the wanted number of envelopes.
        reads = (self._askers[each.node_id].read_logs(after, 2 * latest, each) for each in answers)
        await asyncio.gather(*reads)

    def _own_gaps(self, logs: Iterable[NodeLog]) -> list[Breach]:
        own = (each for each in logs if each.node_id == each.originator_id)
        return [breach for log in own for breach in find_own_gaps(log, self._now_ns())]

    async def _find_lasting(
        self,
        answers: Sequence[NodeAnswers],
        after: Mapping[int, int],
        latest: int,
        report_stage: ReportStage,
    ) -> _Lasting:
        """Return the omissions that are still there after SETTLE_SECONDS."""
        first = self._left_out(answers)
        if not first and not _dangling(answers, answers):
            return _Lasting([], [])
        report_stage(f"waiting {self._settle_seconds:g} s: nodes may be repairing what they lack")
        await asyncio.sleep(self._settle_seconds)
        # A node that failed is not asked again.
        willing = [each.node_id for each in answers if each.error is None]
        again = await self._find_ends(willing, _highest(answers))
        if first:
            await self._read(after, latest, again)
        before = {(each.node_id, each.originator_id): each.missing for each in first}
        findings = []
        for omission in self._left_out(again):
            known = before.get((omission.node_id, omission.originator_id), ())
            if missing := sorted({*omission.missing} & {*known}):
                findings.append(_omitted(omission, missing))
        return _Lasting(_dangling(answers, again), findings)

    def _left_out(self, answers: Iterable[NodeAnswers]) -> list[Omission]:
        return [
            omission
            for originator_id, logs in _by_originator(answers).items()
            # A node that lags has later ids, and not yet those that came below them (ADR 50).
            if originator_id not in self._keys.sparse_ids
            for omission in find_omissions(logs, self._now_ns())
        ]

    async def _chain_findings(self, logs: Sequence[NodeLog]) -> list[Finding]:
        """Return findings for the payloads that nodes vouched for and the chain lacks."""
        # A single node that invents high ids does not displace other payloads.
        end = statistics.median_low(each.last_id for each in logs)
        vouched: dict[int, dict[bytes, list[tuple[int, HeldEnvelope]]]] = {}
        for log in logs:
            for sequence_id, each in log.held.items():
                if sequence_id <= end:
                    by_digest = vouched.setdefault(sequence_id, {})
                    by_digest.setdefault(each.digest, []).append((log.node_id, each))
        found = []
        for sequence_id in sorted(vouched)[-MOST_CHAIN_PAYLOADS:]:
            for voices in vouched[sequence_id].values():
                found += await self._judged(voices, len(vouched[sequence_id]) > 1)
        return found

    async def _judged(
        self, voices: Sequence[tuple[int, HeldEnvelope]], is_disputed: bool
    ) -> list[Finding]:
        """Look one payload up for all nodes that vouched for it."""
        node_id, envelope = voices[0]
        verdict = await self._judge_by_chain(node_id, envelope.envelope)
        if verdict is Verdict.PROVED:
            return [self._not_of_chain(*each) for each in voices]
        if verdict is Verdict.NOT_PROVED and is_disputed:
            text = (
                f"payload {envelope.sequence_id} of the chain differs from other nodes', and the "
                "chain does not show who is right"
            )
            return [Finding(each, text) for each, _ in voices]
        return []

    def _not_of_chain(self, node_id: int, envelope: HeldEnvelope) -> Finding:
        kind = Misbehavior.BLOCKCHAIN_INCONSISTENCY
        text = f"payload {envelope.sequence_id} is not the chain's"
        report = Breach(node_id, kind, text, (envelope.envelope,)).report(self._now_ns())
        return Finding(node_id, text, kind, Weight.PROVED, report)


@dataclass(frozen=True, slots=True)
class _Lasting:
    breaches: Sequence[Breach]
    findings: Sequence[Finding]


def _highest(answers: Iterable[NodeAnswers]) -> dict[int, int]:
    """Return the highest id of each originator at any node."""
    highest: dict[int, int] = {}
    for each in answers:
        for originator_id, end in each.highest.items():
            highest[originator_id] = max(highest.get(originator_id, 0), end)
    return highest


def _dangling(answers: Iterable[NodeAnswers], asked_later: Iterable[NodeAnswers]) -> list[Breach]:
    """Return envelopes with dependencies that no node has, by the later ends."""
    logs = [log for each in answers for log in each.logs.values()]
    return find_dangling(logs, _highest(asked_later))


def _omitted(omission: Omission, missing: Sequence[int]) -> Finding:
    witnesses = ", ".join(map(str, omission.witnesses))
    text = f"it leaves out {ids_in_words(missing)} of originator {omission.originator_id}"
    return Finding(omission.node_id, f"{text}, held by node {witnesses}")


def _by_originator(answers: Iterable[NodeAnswers]) -> dict[int, list[NodeLog]]:
    found: dict[int, list[NodeLog]] = {}
    for each in answers:
        for originator_id, log in each.logs.items():
            found.setdefault(originator_id, []).append(log)
    return found


def _node_checks(
    answers: Sequence[NodeAnswers], findings: Iterable[Finding]
) -> Iterator[NodeCheck]:
    # The same fault may show in several answers.
    by_node: dict[int, dict[object, Finding]] = {each.node_id: {} for each in answers}
    for finding in findings:
        by_node.setdefault(finding.node_id, {})[finding.key] = finding
    own = {each.node_id: each for each in answers}
    for node_id, found in by_node.items():
        of_node = own.get(node_id) or NodeAnswers(node_id, error="it was not asked")
        yield NodeCheck(
            node_id=node_id,
            error=of_node.error,
            seconds=tuple(of_node.seconds),
            envelopes=sum(len(each.held) for each in of_node.logs.values()),
            highest=dict(of_node.highest),
            findings=tuple(found.values()),
        )

"""One check of all nodes: the ends of their logs, read as a stranger and compared."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chainkit.evidence.verdict import Verdict
from chainkit.misbehavior.evidence import Weight
from chainkit.misbehavior.judging import HeldEnvelope
from chainkit.misbehavior.types import Misbehavior
from chainkit_client.breach import Breach
from chainkit_client.checking.asking import NodeAnswers, NodeAsker
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
from chainkit_client.reading.verified import Keys

SETTLE_SECONDS: Final = 5.0
"""A node that repairs its log has so long for it, before an omission counts."""

MOST_CHAIN_PAYLOADS: Final = 100
"""Payloads of one check that are looked up on the chain, the newest ones."""

JudgeByChain = Callable[[Breach], Awaitable[Verdict]]
"""Compares a payload that a node vouched for with the chain; raises ChainError."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The logs that are looked at."""

    originator_ids: Sequence[int]
    """The chain's and the nodes'."""
    latest: int
    """Ids of each log, up to its end."""


@dataclass(frozen=True, slots=True)
class NodeCheck:
    """The outcome for one node."""

    node_id: int
    error: str | None
    """Why it was asked no more; None where it answered everything."""
    seconds: tuple[float, ...]
    """The time of each answer."""
    envelopes: int
    """Envelopes of its answers that somebody signed who may."""
    highest: Mapping[int, int]
    """The highest id that it holds of each originator."""
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
        """Take the nodes, the registry's keys, a clock, and what asks the chain."""
        self._askers = {each.node_id: each for each in askers}
        self._keys = keys
        self._now_ns = now_ns
        self._judge_by_chain = judge_by_chain
        self._settle_seconds = settle_seconds

    async def check(
        self, scope: Scope, told: Callable[[str], None] = lambda stage: None
    ) -> list[NodeCheck]:
        """Check all nodes once; ``told`` gets a line for each stage.

        Raises ChainError where the chain does not answer.
        """
        told(f"asking {len(self._askers)} nodes for the ends of their logs")
        answers = await self._find_ends(scope, self._askers)
        after = _beginnings(answers, scope)
        told("reading the logs")
        await self._read(after, scope, answers)
        findings = [finding for each in answers for finding in each.findings]
        for originator_id, logs in _by_originator(answers).items():
            if originator_id in self._keys.chain_ids:
                told(f"comparing payloads of originator {originator_id} with the chain")
                findings += await self._chain_findings(logs)
            else:
                own = [each for each in logs if each.node_id == originator_id]
                gaps = [gap for log in own for gap in find_own_gaps(log, self._now_ns())]
                findings += map(self._found, (*find_equivocations(logs), *gaps))
        findings += await self._lasting(answers, after, scope, told)
        asked_ids = {each.node_id for each in answers}
        others = sorted({each.node_id for each in findings} - asked_ids)
        not_asked = [NodeAnswers(each, error="it was not asked") for each in others]
        return [_node_check(each, findings) for each in (*answers, *not_asked)]

    async def _find_ends(self, scope: Scope, node_ids: Iterable[int]) -> list[NodeAnswers]:
        """Ask nodes for the ends of all logs: first for the chain's and their own.

        An originator's own end is a good guess for where the others' copies end.
        """
        answers = [NodeAnswers(each) for each in node_ids]
        chain_ids = [each for each in scope.originator_ids if each in self._keys.chain_ids]
        asked = (
            self._askers[each.node_id].find_ends((*chain_ids, each.node_id), {}, each)
            for each in answers
        )
        await asyncio.gather(*asked)
        own = {each.node_id: each.highest.get(each.node_id, 0) for each in answers}
        others = []
        for each in answers:
            rest = [one for one in scope.originator_ids if one not in (*chain_ids, each.node_id)]
            others.append(self._askers[each.node_id].find_ends(rest, own, each))
        await asyncio.gather(*others)
        return answers

    async def _read(
        self, after: Mapping[int, int], scope: Scope, answers: Iterable[NodeAnswers]
    ) -> None:
        # A node whose log goes on for longer than twice what was asked for is cut off there.
        most = 2 * scope.latest
        reads = (self._askers[each.node_id].read_logs(after, most, each) for each in answers)
        await asyncio.gather(*reads)

    def _found(self, breach: Breach) -> Finding:
        return found_breach(breach, self._keys, self._now_ns())

    async def _lasting(
        self,
        answers: Sequence[NodeAnswers],
        after: Mapping[int, int],
        scope: Scope,
        told: Callable[[str], None],
    ) -> list[Finding]:
        """Return what is missing, and is still missing after a while."""
        first = self._left_out(answers)
        if not first and not _dangling(answers, answers):
            return []
        told(f"waiting {self._settle_seconds:g} s: nodes may be repairing what they lack")
        await asyncio.sleep(self._settle_seconds)
        # A node that gave up is not asked again.
        again = await self._find_ends(scope, [each.node_id for each in answers if not each.error])
        found = list(map(self._found, _dangling(answers, again)))
        if first:
            await self._read(after, scope, again)
        before = {(each.node_id, each.originator_id): set(each.missing) for each in first}
        for omission in self._left_out(again):
            known = before.get((omission.node_id, omission.originator_id), set())
            missing = [each for each in omission.missing if each in known]
            if missing:
                found.append(_omitted(omission, missing))
        return found

    def _left_out(self, answers: Iterable[NodeAnswers]) -> list[Omission]:
        by_originator = _by_originator(answers)
        return [
            omission
            for logs in by_originator.values()
            for omission in find_omissions(logs, self._now_ns())
        ]

    async def _chain_findings(self, logs: Sequence[NodeLog]) -> list[Finding]:
        """Return the payloads that are not the chain's, by the node that vouched for them."""
        vouched: dict[int, dict[bytes, list[tuple[int, HeldEnvelope]]]] = {}
        for log in logs:
            for sequence_id, each in log.held.items():
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
        """Look one payload up for all nodes that vouched for the same."""
        node_id, envelope = voices[0]
        verdict = await self._judge_by_chain(_not_of_chain(node_id, envelope))
        if verdict is Verdict.PROVED:
            return [
                Finding(
                    breach.node_id,
                    breach.reason,
                    breach.misbehavior,
                    Weight.PROVED,
                    breach.report(self._now_ns()),
                )
                for breach in (_not_of_chain(*each) for each in voices)
            ]
        if verdict is Verdict.NOT_PROVED and is_disputed:
            text = (
                f"payload {envelope.sequence_id} of the chain is another one at other nodes, and "
                "the chain has it neither here nor elsewhere"
            )
            return [Finding(each, text) for each, _ in voices]
        return []


def _dangling(answers: Iterable[NodeAnswers], asked_later: Iterable[NodeAnswers]) -> list[Breach]:
    """Return envelopes with dependencies that no node has, by ends that were asked for later."""
    highest: dict[int, int] = {}
    for each in asked_later:
        for originator_id, end in each.highest.items():
            highest[originator_id] = max(highest.get(originator_id, 0), end)
    logs = [log for each in answers for log in each.logs.values()]
    return find_dangling(logs, highest)


def _omitted(omission: Omission, missing: Sequence[int]) -> Finding:
    witnesses = ", ".join(map(str, omission.witnesses))
    text = f"it leaves out {ids_in_words(missing)} of originator {omission.originator_id}"
    return Finding(omission.node_id, f"{text}, held by node {witnesses}")


def _not_of_chain(node_id: int, envelope: HeldEnvelope) -> Breach:
    reason = f"payload {envelope.sequence_id} is not the chain's"
    kind = Misbehavior.BLOCKCHAIN_INCONSISTENCY
    return Breach(node_id, kind, reason, (envelope.envelope,))


def _beginnings(answers: Iterable[NodeAnswers], scope: Scope) -> dict[int, int]:
    """Return behind which id each log is read.

    The middle of all ends decides: a node that makes up a high id turns nobody's eyes away.
    """
    found = {}
    for originator_id in scope.originator_ids:
        ends = [each.highest[originator_id] for each in answers if originator_id in each.highest]
        middle = statistics.median_low(ends) if ends else 0
        found[originator_id] = max(0, middle - scope.latest)
    return found


def _by_originator(answers: Iterable[NodeAnswers]) -> dict[int, list[NodeLog]]:
    found: dict[int, list[NodeLog]] = {}
    for each in answers:
        for originator_id, log in each.logs.items():
            found.setdefault(originator_id, []).append(log)
    return found


def _node_check(answers: NodeAnswers, findings: Iterable[Finding]) -> NodeCheck:
    # The same fault may show in several answers.
    own = {each.key: each for each in findings if each.node_id == answers.node_id}
    return NodeCheck(
        node_id=answers.node_id,
        error=answers.error,
        seconds=tuple(answers.seconds),
        envelopes=sum(len(each.held) for each in answers.logs.values()),
        highest=dict(answers.highest),
        findings=tuple(own.values()),
    )

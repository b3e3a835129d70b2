"""The conclusion of an audit: its outcome, and its reservations.

The conclusion claims no more than was checked: an audit is clean only if the chain export was
proved, the signatures were checked, and no sequence was served that the export cannot decide about.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from chainkit.text.counting import counted
from chainkit_jobs.findings import Severity
from chainkit_jobs.proof.result import WHOLE_BLOCKS, ChainProof
from chainkit_jobs.reconcile.audit import Audit
from chainkit_jobs.reconcile.scope import AuditScope

SUMMARY_FORMAT: Final = 2
"""The format of summary.json. An audit that was kept in another one is made again."""


class Outcome(StrEnum):
    """The outcome of an audit. Words are never renamed: scripts refer to them."""

    CLEAN = "clean"
    NO_DIFFERENCE = "no difference found"
    """Nothing was found, but not everything was proved or checked."""
    FINDINGS = "findings"
    UNDECIDED = "could not decide"
    """A node serves what the chain export can neither confirm nor deny."""
    COULD_NOT_COMPARE = "could not compare"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The claim that an audit may make."""

    outcome: Outcome
    lacking: tuple[str, ...]
    """A few words for each thing that was not proved or checked."""
    undecided: tuple[str, ...]
    """A sentence for each node that serves what cannot be decided about."""
    verdict: str
    """One line: the outcome, and what was lacking."""


def conclude(audit: Audit) -> Conclusion:
    """Return the outcome of an audit with its reservations."""
    lacking, undecided = _lacking(audit), _undecided(audit)
    outcome = _outcome(audit, lacking, undecided)
    parts = [_words(audit, outcome), *lacking]
    if (proof := audit.scope.proof) is not None:
        parts.insert(1, f"the chain export is proved from block {proof.to_block}")
    return Conclusion(outcome, lacking, undecided, "; ".join(parts))


def _outcome(audit: Audit, lacking: tuple[str, ...], undecided: tuple[str, ...]) -> Outcome:
    if audit.reasons:
        return Outcome.COULD_NOT_COMPARE
    if undecided:
        return Outcome.UNDECIDED
    # Notes are no findings against anybody.
    if any(row["severity"] != Severity.NOTE for row in audit.findings):
        return Outcome.FINDINGS
    return Outcome.NO_DIFFERENCE if lacking else Outcome.CLEAN


def _words(audit: Audit, outcome: Outcome) -> str:
    total = len(audit.findings)
    findings = counted(total, "finding")
    if outcome is Outcome.CLEAN:
        return "clean: every node compared serves what the chain demands, under its own signature"
    if outcome is Outcome.FINDINGS:
        return findings
    return f"{outcome}, {findings}" if total and outcome is not Outcome.NO_DIFFERENCE else outcome


def _lacking(audit: Audit) -> tuple[str, ...]:
    scope = audit.scope
    words = []
    if scope.proof is None:
        words.append("not proved: the chain export (see --trust)")
    elif gaps := _gaps(scope.proof):
        words.append(f"not proved: {gaps} parts of the chain export")
    if not scope.options.with_signatures:
        words.append("not checked: signatures")
    if ends := _ends(scope):
        words.append(f"not known: the end of {ends}")
    if not scope.has_registry:
        words.append("not known: whose keys the exports name, since no registry is followed")
    return tuple(words)


def _gaps(proof: ChainProof) -> int:
    return sum(each.gap.code in WHOLE_BLOCKS for each in proof.unproved)


def _ends(scope: AuditScope) -> str:
    """Name the counters whose end is not known; nothing where all are."""
    unread = scope.unread_counters
    if not unread or not scope.is_listed:
        return "the contracts' counter" if unread else ""
    whose = " and ".join(f"originator {originator_id}" for originator_id in unread)
    return f"the counter of {whose}"


def _undecided(audit: Audit) -> tuple[str, ...]:
    last = audit.payloads.last_sequence or 0
    why = (
        f"above {last}, the last that the chain export contains: it names no end of the contracts' "
        "counter (sequence_after)"
    )
    if audit.scope.is_listed:
        why = (
            "that the chain export does not contain: it is not proved to be whole (--trust), or it "
            "may end before a block that the node knew when it was asked"
        )
    return tuple(
        f"node {node_id}: {counted(counts['undecided'], 'sequence')} {why}, so nothing tells "
        "whether they are invented"
        for node_id, counts in sorted(audit.counts.items())
        if counts["undecided"]
    )


def not_compared(audit: Audit) -> list[str]:
    """Return a sentence for everything that a reader might think was compared."""
    scope = audit.scope
    sentences = [*audit.reasons, *_undecided(audit)]
    sentences += scope.comparability.left_out
    if ends := _ends(scope):
        field = "counters" if scope.is_listed else "sequence_after"
        sentences.append(
            "whether payloads follow the last one of the chain export: it names no end of "
            f"{ends} ({field})"
        )
    if scope.is_listed:
        sentences.append(
            "who ruled the contracts, their pauses and payload bounds: the contracts are not "
            "chainkit's own"
        )
    elif scope.administration is None:
        sentences.append(
            "who ruled the contracts, their pauses and payload bounds: the chain export begins "
            "after their deployment"
        )
    for node_id, counts in sorted(audit.counts.items()):
        if known := counts["outside"] - counts["undecided"]:
            sentences.append(
                f"node {node_id}: {counted(known, 'sequence')} that the chain export lacks or "
                f"repeats, though the contracts must have given them out"
            )
    return [*sentences, *audit.tables_not_compared]

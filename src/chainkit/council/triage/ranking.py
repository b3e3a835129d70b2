"""Which nodes should be disabled, by many reports at once (XIP-49 §3.2.7).

    In order for these reports to be actionable, they must be trustworthy. For report types that
    contain cryptographic proof of the failure, a single report is sufficient for verification. For
    other report types, particularly liveness failures, we rely on MisbehaviorReports from a
    sufficiently large sample size of the node's peers.

These rules follow from that, since keys cost nothing and a report may be copied:

- **One proof suffices**, but for a time that fell, which load explains (``falls``). It is valid
  from any reporter: a node signs what clients report of itself, too, and that proves no less. The
  same envelope is one proof, however often it is brought.
- **A reporter is established by the registry alone.** A changed report recovers to some other key,
  so a key that no node has is shown as not established, and is not counted.
- **Liveness is counted by peers**: registered nodes that state that they saw it themselves. A
  report that a node only stored for a client (``submitted_by_node`` is false) may have been handed
  to many. The nodes of one holder are one reporter, so is one node with many reports. A node that
  is disabled by now counts, and is marked.
- **Other safety failures** are judged by the envelopes of their report. A proof is one, and a
  claim of OUT_OF_ORDER is counted by peers, as liveness is, but by itself. All other claims are
  listed, and people judge them. ``thresholds`` has the table.

Nothing here reads anything: the same claims give the same ranks, in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from chainkit.contracts.registry import status_word
from chainkit.council.triage.falls import falls_in_words
from chainkit.council.triage.thresholds import THRESHOLDS, Sample
from chainkit.council.triage.values import (
    Action,
    Claim,
    Dismissed,
    RankedNode,
    Ranking,
    RegisteredNodes,
    Reporter,
    Tally,
    peers_by_sample,
)
from chainkit.misbehavior.types import Misbehavior, Severity

MOST_GROUNDS: Final = 10
"""Sources about a node that a proposal names, so that people read all, unless more are needed."""

_PROVED_BUT: Final = "proved, but "


def rank(
    claims: Iterable[Claim],
    dismissed: Iterable[Dismissed],
    registered: RegisteredNodes | None,
    needed: int,
) -> Ranking:
    """Rank the nodes that claims and dismissed evidence accuse.

    ``registered`` is the registry at one block, None where none was read; ``needed`` is how many
    independent reporters of a sample suffice where nothing is proved.
    """
    everything = sorted(claims, key=lambda claim: claim.source)
    counted, more = _sorted_out(everything, registered)
    left_out = [*dismissed, *more]
    accused = {claim.node_id for claim in counted} | {each.node_id for each in left_out}
    nodes = [
        _ranked(node_id, everything, counted, registered, needed)
        for node_id in accused
        if node_id is not None
    ]
    return Ranking(
        tuple(sorted(nodes, key=_urgency)),
        tuple(sorted(left_out, key=lambda each: (each.source, each.reason))),
    )


def _sorted_out(
    claims: Iterable[Claim], registered: RegisteredNodes | None
) -> tuple[list[Claim], list[Dismissed]]:
    """Return the claims that count, and the reasons for those that do not count, or not alone."""
    counted, left_out = [], []
    first: dict[tuple[object, ...], str] = {}
    for claim in claims:
        # Anybody can accuse nodes that never existed: such nodes have no rank.
        node_id = claim.node_id if _is_registered(claim, registered) else None
        if (reason := _objection(claim, registered)) is not None:
            left_out.append(Dismissed(claim.source, reason, node_id))
        elif (earlier := first.setdefault(_identity(claim), claim.source)) != claim.source:
            left_out.append(Dismissed(claim.source, f"says the same as {earlier}", node_id))
        else:
            counted.append(claim)
            if not claim.proofs and claim.sample is None:
                reason = f"{claim.misbehavior.name} is not proved: judge its envelopes"
                reason += f" ({claim.reason})" if claim.reason else ""
                left_out.append(Dismissed(claim.source, reason, node_id))
    return counted, left_out


def _is_registered(claim: Claim, registered: RegisteredNodes | None) -> bool:
    return claim.accused_key is not None and (registered is None or claim.node_id in registered)


def _identity(claim: Claim) -> tuple[object, ...]:
    """The identity of a claim: equal for claims with the same content in different files."""
    words = claim.proofs or claim.digest
    return claim.node_id, claim.misbehavior, claim.reporter, words


def _objection(claim: Claim, registered: RegisteredNodes | None) -> str | None:
    """Return why a claim does not count, or None."""
    if not _is_registered(claim, registered):
        return f"node {claim.node_id} is not registered"
    if claim.reporter is None:
        return f"{_PROVED_BUT if claim.proofs else ''}nobody signed a report of it"
    if claim.proofs:
        return None
    if claim.reporter == claim.accused_key:
        return "the accused reports itself: somebody else must sign the report"
    if claim.sample is None:
        return None
    name = "liveness" if claim.misbehavior.is_liveness else f"{claim.misbehavior.name} unproved"
    counted = "peers are counted (XIP-49 3.2.7)"
    if not claim.is_from_node:
        return f"{name}, and its signer only stored it for a client: {counted}"
    if registered is None or _reporter(claim.reporter, registered).node is None:
        return f"{name}, and its signer is no registered node: {counted}"
    return None


def _ranked(
    node_id: int,
    everything: Sequence[Claim],
    counted: Sequence[Claim],
    registered: RegisteredNodes | None,
    needed: int,
) -> RankedNode:
    claims = [claim for claim in counted if claim.node_id == node_id]
    is_shown = any(claim.proofs for claim in everything if claim.node_id == node_id)
    status = "unknown" if registered is None else status_word(registered[node_id].node)
    tallies = _tallies(claims, registered)
    action, words = _recommendation(tallies, needed, is_shown)
    if action is Action.DISABLE and status == "disabled":
        action, words = Action.NOTHING, f"disabled already ({words.removeprefix('disable: ')})"
    peers = peers_by_sample(tallies)
    enough = {sample for sample, count in peers.items() if count >= needed}
    grounds = _grounds(claims, registered, needed, enough) if action is Action.DISABLE else ()
    return RankedNode(node_id, status, tallies, action, words, grounds)


def _recommendation(tallies: Sequence[Tally], needed: int, is_shown: bool) -> tuple[Action, str]:
    """Return the recommendation; ``is_shown``: something proves it, even if no report counts."""
    peers = max(peers_by_sample(tallies).values(), default=0)
    if any(map(_is_enough, tallies)):
        proved = sum(tally.proved - len(tally.falls) for tally in tallies)
        words = "one safety proof" if proved == 1 else f"{proved} safety proofs"
        return Action.DISABLE, f"disable: {words}"
    if peers >= needed:
        return Action.DISABLE, f"disable: {peers} of {needed} reporters"
    if falls := [fall for tally in tallies for fall in tally.falls]:
        return Action.JUDGE, f"judge by hand: {falls_in_words(falls)}"
    if is_shown:
        return Action.WAIT, "wait: proved, but no report counts"
    if peers:
        return Action.WAIT, f"wait: {peers} of {needed} reporters"
    return (Action.JUDGE, "judge by hand") if tallies else (Action.NOTHING, "nothing proved")


def _is_enough(tally: Tally) -> bool:
    """Return whether enough things are proved, besides times that fell."""
    suffice = THRESHOLDS[tally.misbehavior].proofs
    return suffice is not None and tally.proved - len(tally.falls) >= suffice


def _tallies(claims: Sequence[Claim], registered: RegisteredNodes | None) -> tuple[Tally, ...]:
    found = {claim.misbehavior for claim in claims}
    return tuple(
        _tally(each, [claim for claim in claims if claim.misbehavior is each], registered)
        for each in sorted(found, key=lambda each: (each.severity.rank, each))
    )


def _tally(
    misbehavior: Misbehavior, claims: Sequence[Claim], registered: RegisteredNodes | None
) -> Tally:
    keys = {claim.reporter for claim in claims if claim.reporter is not None}
    peers = {each.reporter for each in claims if each.reporter is not None and each.fall is None}
    falls = {claim.proofs: claim.fall for claim in claims if claim.fall is not None}
    return Tally(
        misbehavior,
        len(frozenset().union(*(claim.proofs for claim in claims))),
        sum(not claim.proofs for claim in claims),
        tuple(_reporter(key, registered) for key in sorted(keys)),
        tuple(_reporter(key, registered) for key in sorted(peers)),
        tuple(sorted(falls.values())),
    )


def _reporter(key: bytes, registered: RegisteredNodes | None) -> Reporter:
    nodes = registered.values() if registered else ()
    return Reporter(key, next((each for each in nodes if each.node.signing_key == key), None))


def _grounds(
    claims: Sequence[Claim],
    registered: RegisteredNodes | None,
    needed: int,
    enough: Collection[Sample],
) -> tuple[str, ...]:
    """Return sources that suffice together: each brings a proof or a reporter of its own."""

    def order(claim: Claim) -> tuple[int, bool, str]:
        return -len(claim.proofs), claim.sample not in enough, claim.source

    shown: set[object] = set()
    chosen: list[str] = []
    for claim in sorted(claims, key=order):
        if claim.reporter is None or not (claim.proofs or claim.sample):
            continue
        holder = _reporter(claim.reporter, registered).independent
        brings = {*claim.proofs, *({(claim.sample, holder)} if holder else ())}
        if not brings <= shown and len(chosen) < max(needed, MOST_GROUNDS):
            chosen.append(claim.source)
            shown |= brings
    return tuple(chosen)


def _urgency(node: RankedNode) -> tuple[int, ...]:
    severity = len(Severity) if node.severity is None else node.severity.rank
    action = list(Action).index(node.action)
    return action, severity, -node.proved, -node.reporters, -node.claimed, node.node_id

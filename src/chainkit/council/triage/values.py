"""Values of triage: claims, their reporters, and the rank of the accused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from chainkit.contracts.registry import RegisteredNode
from chainkit.council.triage.falls import Fall
from chainkit.council.triage.thresholds import THRESHOLDS, Sample
from chainkit.misbehavior.types import Misbehavior, Severity

RegisteredNodes: TypeAlias = Mapping[int, RegisteredNode]
"""The registered nodes by id, at one block."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A report's or a bundle's claim about one node, after its check."""

    source: str
    """Path of the claim's file or folder; a stranger chose it."""
    node_id: int
    misbehavior: Misbehavior
    reporter: bytes | None
    """65 bytes: the public key that signed; None where the claim is unsigned."""
    proofs: frozenset[bytes]
    """Digests of data that the node signed and no honest node can sign; empty where nothing is
    proved."""
    digest: bytes
    """The same for the same words of a reporter."""
    accused_key: bytes | None
    """65 bytes; None where no such node is registered."""
    is_from_node: bool = False
    """Whether the reporter states that it is a node and saw this itself."""
    fall: Fall | None = None
    """The time that fell, if the proof shows that; None otherwise."""
    reason: str = ""
    """A few words about evidence that does not contradict the claim, and does not prove it."""

    @property
    def sample(self) -> Sample | None:
        """The sample in which the reporter counts; None for a proof, and where people decide."""
        return None if self.proofs else THRESHOLDS[self.misbehavior].sample


@dataclass(frozen=True, slots=True)
class Dismissed:
    """A path that does not count, and why."""

    source: str
    reason: str
    node_id: int | None = None
    """The accused node, if the evidence was read and the node is registered."""
    is_unchecked: bool = False
    """Whether the evidence was not checked for lack of a clear answer, an endpoint or a trusted
    hash."""


class Action(StrEnum):
    """Recommendations about a node, the most urgent first."""

    DISABLE = "disable"
    WAIT = "wait"
    JUDGE = "judge"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Reporter:
    """A signer of reports that count."""

    key: bytes
    """65 bytes. Any signature over any bytes gives a key: alone it establishes nobody."""
    node: RegisteredNode | None
    """None for a key that no node has, or where no registry was read."""

    @property
    def independent(self) -> str | None:
        """The reporter's identity, None if not established; one for all nodes of a holder."""
        return None if self.node is None else self.node.holder


@dataclass(frozen=True, slots=True)
class Tally:
    """The reports of one type about one node."""

    misbehavior: Misbehavior
    proved: int
    """Different things that are proved."""
    claimed: int
    """Different reports that prove nothing by themselves."""
    reporters: tuple[Reporter, ...]
    """Reporters whose reports count, in the order of their keys."""
    peers: tuple[Reporter, ...] = ()
    """Those of the reporters who count in a sample: they report more than times that fell."""
    falls: tuple[Fall, ...] = ()
    """Those of ``proved`` that are falls of times, by their times."""


@dataclass(frozen=True, slots=True)
class RankedNode:
    """Reports about one node, and the recommendation."""

    node_id: int
    status: str
    """``enabled``, ``disabled``, or ``unknown`` where no registry was read."""
    tallies: tuple[Tally, ...]
    """The gravest type first."""
    action: Action
    recommendation: str
    """A few words."""
    grounds: tuple[str, ...]
    """Sources for a proposal to disable the node; empty unless the node should be disabled."""

    @property
    def severity(self) -> Severity | None:
        """Severity of the gravest type; None where no report counts."""
        return self.tallies[0].misbehavior.severity if self.tallies else None

    @property
    def proved(self) -> int:
        """Different things that are proved."""
        return sum(tally.proved for tally in self.tallies)

    @property
    def claimed(self) -> int:
        """Different reports that prove nothing by themselves."""
        return sum(tally.claimed for tally in self.tallies)

    @property
    def reporters(self) -> int:
        """How many independent reporters there are."""
        return independent(each for tally in self.tallies for each in tally.reporters)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The nodes, the most urgent first, and what was not counted, by path."""

    nodes: tuple[RankedNode, ...]
    dismissed: tuple[Dismissed, ...]

    @property
    def to_disable(self) -> tuple[RankedNode, ...]:
        """Nodes that should be disabled and are not."""
        return tuple(node for node in self.nodes if node.action is Action.DISABLE)

    @property
    def is_complete(self) -> bool:
        """Whether all evidence was checked that could be read."""
        return not any(each.is_unchecked for each in self.dismissed)


def peers_by_sample(tallies: Iterable[Tally]) -> dict[Sample, int]:
    """Return how many independent reporters each sample has; only those that have any."""
    found: dict[Sample, list[Reporter]] = {}
    for tally in tallies:
        if (sample := THRESHOLDS[tally.misbehavior].sample) is not None:
            found.setdefault(sample, []).extend(tally.peers)
    counts = {sample: independent(reporters) for sample, reporters in found.items()}
    return {sample: count for sample, count in counts.items() if count}


def independent(reporters: Iterable[Reporter]) -> int:
    """Return the number of independent reporters among some reporters, of those established."""
    return len({each.independent for each in reporters} - {None})

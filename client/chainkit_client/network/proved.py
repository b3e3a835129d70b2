"""The nodes against which this client has a proof: others are asked in their place.

A proof holds whatever a clock says, and whoever judges the bytes. A claim excludes nobody: an
honest node may be late, or a reorg may have taken back what the node served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.report import parse_unsigned
from chainkit_client.breach import Breach
from chainkit_client.reading.verified import Keys
from chainkit_client.storage.evidence import KeptBreach

MOST_JUDGED: Final = 20
"""Stored payloads of one start that are compared with the chain."""

_NO_CLOCK_NS: Final = 2**63 - 1
"""A time that lies ahead of this clock is no proof here: this clock may be wrong."""

IsFalse = Callable[[int, bytes], bool]
"""Returns whether no branch of the chain has a payload for which a node vouched; blocks."""


class ProvedNodes:
    """A container of node ids."""

    def __init__(self) -> None:
        """Begin without a proof."""
        self._node_ids: set[int] = set()

    def __contains__(self, node_id: object) -> bool:
        """Return whether there is a proof against a node."""
        return node_id in self._node_ids

    def add(self, node_id: int) -> None:
        """Take note of a proof that the chain gave."""
        self._node_ids.add(node_id)

    def judge(self, breaches: Iterable[Breach], keys: Keys) -> None:
        """Judge broken rules that were just seen."""
        for each in breaches:
            if each.node_id not in self and (report := each.report(0)) is not None:
                self._judge(report, keys)

    def judge_kept(self, kept: Iterable[KeptBreach], keys: Keys, is_false: IsFalse) -> None:
        """Judge stored broken rules; blocks, and raises what ``is_false`` raises."""
        of_chain: list[tuple[int, bytes]] = []
        for each in kept:
            if each.report is not None and each.node_id not in self:
                of_chain += self._judge(each.report, keys)
        for node_id, envelope in islice(of_chain, MOST_JUDGED):
            if node_id not in self and is_false(node_id, envelope):
                self.add(node_id)

    def _judge(self, report: bytes, keys: Keys) -> list[tuple[int, bytes]]:
        """Judge a report; return the payloads that only the chain can judge."""
        parsed = parse_unsigned(report)
        judgement = judge_safety(parsed, keys.by_node, _NO_CLOCK_NS)
        if judgement.weight is Weight.PROVED:
            self.add(parsed.node_id)
        return [(parsed.node_id, each) for each in parsed.envelopes if judgement.needs_chain]

"""Reports that nodes host, counted over several looks; what they prove is judged here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from chainkit.errors import MalformedData
from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.report import Report, parse_unsigned
from chainkit.protocol.proto import message_api_pb2
from chainkit_node.inspection.network import Accusation

MOST_PROOFS: Final = 10_000
"""Proved failures that are counted separately."""


class Reported:
    """Everything that was read of all nodes' reports; used by one thread at a time."""

    def __init__(self) -> None:
        """Begin with no report."""
        self._proofs: dict[int, set[bytes]] = defaultdict(set)
        self._claims: Counter[int] = Counter()
        self._hosts: dict[int, set[int]] = defaultdict(set)

    def add(
        self,
        host_id: int,
        reports: Iterable[message_api_pb2.MisbehaviorReport],
        keys: Mapping[int, bytes],
        now_ns: int,
    ) -> None:
        """Count reports of a host that were not counted before.

        ``keys`` are the registry's, 65 bytes each, by node id; ``now_ns`` counts from 1970.
        """
        for each in reports:
            try:
                report = parse_unsigned(each.unsigned_misbehavior_report)
            except MalformedData:
                # Bytes that are no report accuse nobody.
                continue
            if report.node_id in keys:
                self._hosts[report.node_id].add(host_id)
                self._count(report, keys, now_ns)

    def accusations(self) -> tuple[Accusation, ...]:
        """Return the reports about each node, by its id."""
        return tuple(
            Accusation(
                node_id=each,
                proved=len(self._proofs.get(each, ())),
                claimed=self._claims[each],
                hosts=tuple(sorted(self._hosts[each])),
            )
            for each in sorted(self._hosts)
        )

    def _count(self, report: Report, keys: Mapping[int, bytes], now_ns: int) -> None:
        if not report.misbehavior.is_liveness:
            judgement = judge_safety(report, keys, now_ns)
            proofs = self._proofs[report.node_id]
            if judgement.weight is Weight.PROVED:
                if len(proofs) < MOST_PROOFS:
                    proofs.add(judgement.subject)
                return
        self._claims[report.node_id] += 1

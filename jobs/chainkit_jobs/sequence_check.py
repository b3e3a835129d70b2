"""Holds the logs of a chain export to the contracts' own counter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainkit.chain import Endpoint
from chainkit.decode import decode_payload_event, payload_topics
from chainkit.deployment import DeploymentRecord
from chainkit.errors import InconsistentAnswer, MalformedLog
from chainkit.types import BlockReference, Log


class SequenceCheck:
    """Holds payload logs to the counter: from the one after ``before`` on, without a gap."""

    def __init__(self, endpoint: Endpoint, record: DeploymentRecord, before: int) -> None:
        """Begin after ``before``, the counter in the parent of the first block."""
        self._name = endpoint.name
        self._last = before
        self._topics = payload_topics(record)

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Take in logs in the chain's order, of any contract. Raises InconsistentAnswer."""
        for row in rows:
            if row["topics"][:1] == [self._topics.get(row["address"])]:
                self._advance(row)

    def _advance(self, row: dict[str, Any]) -> None:
        log = Log(**row | {"topics": tuple(row["topics"])})
        try:
            sequence_id = decode_payload_event(log).sequence_id
        except MalformedLog as error:
            raise InconsistentAnswer(
                error.subject, error.expected, error.got, error.place
            ) from error
        if sequence_id != self._last + 1:
            expected = f"sequence id {self._last + 1}"
            raise InconsistentAnswer(f"logs at {self._name}", expected, sequence_id, log.place)
        self._last = sequence_id

    def finish(self, after: int, block: BlockReference) -> None:
        """Prove that the last payload is the one that the counter names at the last block."""
        if after != self._last:
            raise InconsistentAnswer(
                f"logs at {self._name}",
                f"all up to sequence id {after}",
                f"up to {self._last}",
                f"block {block}",
            )

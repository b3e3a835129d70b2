"""Holds the logs of a chain export to the contracts' own counter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chainkit.contracts.deployment import DeploymentRecord, payload_topics
from chainkit.errors import InconsistentAnswer, MalformedLog
from chainkit.protocol.events import decode_payload_event
from chainkit.types import BlockReference, Log


class PayloadLogs:
    """Finds the logs that are payload events of a deployment."""

    def __init__(self, record: DeploymentRecord) -> None:
        """Take the contracts and the topic of their one payload event."""
        self._topics = payload_topics(record)

    def of(self, rows: Iterable[Mapping[str, Any]]) -> list[Log]:
        """Return those among rows of logs, in their order."""
        return [
            Log(**{**row, "topics": tuple(row["topics"])})
            for row in rows
            if row["topics"][:1] == [self._topics.get(row["address"])]
        ]


class SequenceCheck:
    """Holds payload logs to the counter: from the one after ``before`` on, without a gap."""

    def __init__(self, name: str, before: int) -> None:
        """Begin after ``before``, the counter in the parent of the first block.

        ``name`` is the endpoint's, for error messages.
        """
        self._name = name
        self._last = before

    def add(self, logs: Iterable[Log]) -> None:
        """Take in payload logs in the chain's order. Raises InconsistentAnswer."""
        for log in logs:
            sequence_id = sequence_id_of(log)
            if sequence_id != self._last + 1:
                expected = f"sequence id {self._last + 1}"
                raise InconsistentAnswer(f"logs at {self._name}", expected, sequence_id, log.place)
            self._last = sequence_id

    def finish(self, after: int, block: BlockReference) -> None:
        """Prove that the last payload is the one that the counter names at a block."""
        if after != self._last:
            raise InconsistentAnswer(
                f"logs at {self._name}",
                f"all up to sequence id {after}",
                f"up to {self._last}",
                f"block {block}",
            )


def sequence_id_of(log: Log) -> int:
    """Return the sequence id of a payload log. Raises InconsistentAnswer where it holds none."""
    try:
        return decode_payload_event(log).sequence_id
    except MalformedLog as error:
        raise InconsistentAnswer(error.subject, error.expected, error.got, error.place) from error

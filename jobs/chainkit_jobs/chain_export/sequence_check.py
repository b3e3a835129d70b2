"""Holds the logs of a chain export to the contracts' own counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chainkit.errors import InconsistentAnswer, MalformedLog
from chainkit.protocol.events import decode_payload_event
from chainkit.protocol.payload_contract import PayloadContract, sparse_originators
from chainkit.types import BlockReference, Log, PayloadEvent


class PayloadLogs:
    """Finds the logs that are payload events of a deployment, and decodes them."""

    def __init__(self, contracts: Sequence[PayloadContract]) -> None:
        """Take the contracts, each with the topic of its one payload event."""
        self._contracts = {contract.address: contract for contract in contracts}
        self.counted = {each.originator_id for each in contracts} - sparse_originators(contracts)
        """The originators whose sequence ids count up by one."""

    def of(self, rows: Iterable[Mapping[str, Any]]) -> list[Log]:
        """Return the payload logs among rows of logs, in their order."""
        return [
            Log(**{**row, "topics": tuple(row["topics"])})
            for row in rows
            if (contract := self._contracts.get(row["address"])) is not None
            and row["topics"][:1] == [contract.topic]
        ]

    def event_of(self, log: Log) -> PayloadEvent:
        """Decode a log of the contracts. Raises InconsistentAnswer where it holds no payload."""
        try:
            return decode_payload_event(log, self._contracts[log.address])
        except MalformedLog as error:
            expected, got, place = error.expected, error.got, error.place
            raise InconsistentAnswer(error.subject, expected, got, place) from error


class SequenceCheck:
    """Holds payload logs to counters: from the one after ``before`` on, without a gap.

    Sparse sequence ids are held to nothing: there, the receipts root proves that no log is missing
    (docs/adr/0050).
    """

    def __init__(self, name: str, payload_logs: PayloadLogs, before: Mapping[int, int]) -> None:
        """Begin after ``before``: counter by originator id, in the parent of the first block.

        ``name`` is the endpoint's, for error messages. The first payload of an originator without
        a counter may have any sequence id.
        """
        self._name = name
        self._payload_logs = payload_logs
        self._last: dict[int, int] = dict(before)

    def add(self, logs: Iterable[Log]) -> None:
        """Take in payload logs in the chain's order. Raises InconsistentAnswer."""
        for log in logs:
            event = self._payload_logs.event_of(log)
            originator_id, sequence_id = event.originator_id, event.sequence_id
            if originator_id not in self._payload_logs.counted:
                continue
            last = self._last.get(originator_id, sequence_id - 1)
            if sequence_id != last + 1:
                expected = f"sequence id {last + 1}"
                raise InconsistentAnswer(f"logs at {self._name}", expected, sequence_id, log.place)
            self._last[originator_id] = sequence_id

    def finish(self, after: Mapping[int, int | None], block: BlockReference) -> None:
        """Prove that the last payloads are those that the counters name at a block.

        A counter whose number is None was not read, and proves nothing.
        """
        for originator_id, number in after.items():
            last = self._last[originator_id]
            if number is not None and number != last:
                raise InconsistentAnswer(
                    f"logs at {self._name}",
                    f"all up to sequence id {number}",
                    f"up to {last}",
                    f"block {block}",
                )

"""The contract's own counter: logs cut off at an end of a range leave no gap within it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from chainkit.chain import Endpoint
from chainkit.decode import (
    IDENTITY_UPDATE_CREATED_TOPIC,
    MESSAGE_SENT_TOPIC,
    decode_payload_event,
)
from chainkit.deployment import DeploymentRecord
from chainkit.errors import AccessRefused, InconsistentAnswer, MalformedLog, RefusedRequest
from chainkit.signatures import keccak256
from chainkit.types import BlockReference, Log

_LAST_SELECTOR: Final = keccak256(b"last()")[:4]
_WORD_BYTES: Final = 32


def read_counter(endpoint: Endpoint, record: DeploymentRecord, block: BlockReference) -> int:
    """Return the last sequence id given out up to a block, 0 below the counter's deployment.

    Raises InconsistentAnswer where the endpoint has no state of the block or answers no uint64:
    without the number nobody could tell that logs are missing at an end.
    """
    sequence = record.originator_sequence
    if block.number < sequence.block:
        return 0
    try:
        answer = endpoint.call(sequence.address, _LAST_SELECTOR, block)
    except AccessRefused:
        raise
    except RefusedRequest as error:
        subject, expected = f"counter at {endpoint.name}", f"its state at block {block}"
        raise InconsistentAnswer(subject, expected, error.got) from error
    value = int.from_bytes(answer, "big")
    if len(answer) != _WORD_BYTES or value >= 2**64:
        subject = f"last() at {endpoint.name}"
        raise InconsistentAnswer(subject, "a uint64", f"0x{answer.hex()}", f"block {block}")
    return value


class SequenceCheck:
    """Holds payload logs to the counter: from the one after ``before`` on, without a gap."""

    def __init__(self, endpoint: Endpoint, record: DeploymentRecord, before: int) -> None:
        """Begin after ``before``, the counter in the parent of the first block."""
        self._name = endpoint.name
        self._last = before
        self._topics = {
            record.group_messages.address: MESSAGE_SENT_TOPIC,
            record.identity_updates.address: IDENTITY_UPDATE_CREATED_TOPIC,
        }

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
